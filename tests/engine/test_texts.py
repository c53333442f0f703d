"""run.json says once what cells share, samples.bin has samples: once read, each cell has all."""

import json
from pathlib import Path

import msgspec
import pytest

from linkgauge.engine.kept.runs import read_run
from linkgauge.model.documents.result import Expected
from linkgauge.model.errors import InputError
from linkgauge.report.files import document_of, json_document, write_run
from report.samples import RUN

MADE = Path(__file__).parents[1] / "data" / "made"
ODD = (5e-324, -0.0, 0.1 + 0.2, 1.7976931348623157e308, 2.0**53 + 2, 1e-9)
APART = ("samples", "seconds", "summary")
BECAUSE = "18 nvlink × 50 GB/s = 900 GB/s"


def expecting(*expected):
    """The first result, with what its cells expect, and odd samples."""
    result = RUN.results[0]
    cells = tuple(
        msgspec.structs.replace(cell, expected=own, samples=ODD)
        for cell, own in zip(result.cells, expected, strict=True)
    )
    return msgspec.structs.replace(RUN, results=(msgspec.structs.replace(result, cells=cells),))


def made():
    """The document of a run whose cells share a text."""
    return json_document(document_of(expecting(*[Expected(9e11, 8e11, BECAUSE)] * 2)))


@pytest.mark.parametrize(
    "expected",
    [
        (Expected(9e11, 8e11, BECAUSE), Expected(9e11, 7e11, BECAUSE)),
        (Expected(9e11, None, BECAUSE), Expected(because="unknown")), (None, Expected(1.0)),
        (None, None),
    ],
)  # fmt: skip
def test_what_is_read_is_what_was_written(tmp_path, expected):
    run = expecting(*expected)
    write_run(tmp_path, run)
    assert repr(read_run(tmp_path)) == repr(run)  # to the bit


def cells_of(result):
    """Those of a result of run.json, as docs/run-json.md has it."""
    for cell in ({**result["common"], **own} for own in result["cells"]):
        for name, table in (("placement", "placements"), ("readings", "readings")):
            cell[name] = [result[table][place] for place in cell.get(name, ())]
        yield {name: value for name, value in cell.items() if value not in (None, [])}


def without_samples(cell):
    del cell["samples"]
    for part in (*cell["parts"], *cell["iterations"]):
        for name in [name for name in part if part[name] is None or name in APART]:
            del part[name]
    return {name: value for name, value in cell.items() if value not in (None, [])}


@pytest.mark.parametrize("path", sorted(MADE.glob("*.json")), ids=lambda path: path.stem)
def test_a_run_of_schema_1_is_kept_as_it_is(tmp_path, path):
    assert b"linkgauge.run/1" in path.read_bytes()[:40]
    run = read_run(path)
    write_run(tmp_path, run)
    assert repr(read_run(tmp_path)) == repr(run)
    stored = json.loads((tmp_path / "run.json").read_text())["results"]
    every = json.loads(json_document(document_of(run)))["results"]
    for result, whole in zip(stored, every, strict=True):
        assert [*cells_of(result)] == [without_samples(cell) for cell in whole["cells"]]


def test_a_text_is_written_once_a_result():
    document = made()
    assert document.count(BECAUSE) == 1
    (result,) = json.loads(document)["results"]
    for cell in result["cells"]:
        assert result["texts"][cell["expected"]["text"]] == BECAUSE
        assert cell["expected"]["theoretical"] == 9e11


@pytest.mark.parametrize("text", [-1, 1, 10**6])
@pytest.mark.parametrize("texts", [[BECAUSE], []])
def test_a_text_that_is_not_there_is_bad_input(tmp_path, texts, text):
    document = json.loads(made())
    document["results"][0]["cells"][0]["expected"]["text"] = text
    document["results"][0]["texts"] = texts
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="refers to a text that is missing"):
        read_run(tmp_path)
