"""A run's file says once what many cells share; a run that is read has it in each cell."""

import json

import msgspec
import pytest

from linkgauge.engine.runs import read_run
from linkgauge.model.errors import InputError
from linkgauge.model.result import Expected
from linkgauge.report.files import json_document, write_run
from report.samples import RUN

BECAUSE = "18 nvlink × 50 GB/s = 900 GB/s"


def expecting(*expected):
    """The first result, with what its cells expect."""
    result = RUN.results[0]
    cells = tuple(
        msgspec.structs.replace(cell, expected=own)
        for cell, own in zip(result.cells, expected, strict=True)
    )
    return msgspec.structs.replace(RUN, results=(msgspec.structs.replace(result, cells=cells),))


@pytest.mark.parametrize(
    "expected",
    [
        (Expected(9e11, 8e11, BECAUSE), Expected(9e11, 7e11, BECAUSE)),
        (Expected(9e11, None, BECAUSE), Expected(because="unknown")),
        (None, Expected(1.0)),
        (None, None),
    ],
)
def test_what_is_read_is_what_was_written(tmp_path, expected):
    run = expecting(*expected)
    write_run(tmp_path, run)
    assert read_run(tmp_path) == run


def test_a_text_is_written_once_a_result():
    document = json_document(expecting(*[Expected(9e11, 8e11, BECAUSE)] * 2))
    assert document.count(BECAUSE) == 1
    (result,) = json.loads(document)["results"]
    for cell in result["cells"]:
        assert result["texts"][cell["expected"]["text"]] == BECAUSE
        assert cell["expected"]["theoretical"] == 9e11


@pytest.mark.parametrize("text", [-1, 1, 10**6])
@pytest.mark.parametrize("texts", [[BECAUSE], []])
def test_a_text_that_is_not_there_is_bad_input(tmp_path, texts, text):
    document = json.loads(json_document(expecting(*[Expected(9e11, 8e11, BECAUSE)] * 2)))
    document["results"][0]["cells"][0]["expected"]["text"] = text
    document["results"][0]["texts"] = texts
    (tmp_path / "run.json").write_text(json.dumps(document))
    with pytest.raises(InputError, match="refers to a text that is missing"):
        read_run(tmp_path)
