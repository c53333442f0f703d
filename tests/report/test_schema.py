"""docs/*.schema.json are made from the types, and real documents validate against them."""

import json
import os
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from linkgauge.engine.runs import read_run
from linkgauge.model.collective import Collective
from linkgauge.model.result import RankTimes
from linkgauge.model.transfer import Report
from linkgauge.report.console import make_console
from linkgauge.report.files import json_document, run_schema, scaling_schema, variation_schema
from linkgauge.report.run_text import render_result, render_transfers

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = DOCS / "run.schema.json"
GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize(
    ("name", "schema"),
    [("run", run_schema), ("vary", variation_schema), ("scale", scaling_schema)],
)
def test_the_checked_in_schema_is_that_of_the_types(name, schema):
    path = DOCS / f"{name}.schema.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(json_document(schema()))
    assert path.read_text() == json_document(schema())


def test_a_run_validates_and_a_damaged_one_does_not():
    schema = json.loads(SCHEMA.read_text())
    document = json.loads((GOLDEN / "run.json").read_text())
    jsonschema.validate(document, schema)
    document["results"][0]["cells"][0]["status"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema)


@pytest.mark.parametrize(
    "work",
    [
        Collective("sendrecv"),
        Collective("reduce", "bfloat16", "avg", 3, True, "MOD 2", 4, True, True, "symmetric"),
    ],
)
def test_a_collective_validates_and_is_read_as_it_was(tmp_path, work):
    """Its operation is an object, and its ranks have times of their own."""
    run = read_run(GOLDEN / "run.json")
    result = run.results[0]
    times = (RankTimes(0, (1e-6, 2e-6)), RankTimes(1, (3e-6, 4e-6)))
    cell = replace(result.cells[0], operation=work, iterations=times, wrong=0, report=Report.TIME)
    kept = replace(run, results=(replace(result, cells=(cell,)),))
    document = json_document(kept)
    jsonschema.validate(json.loads(document), json.loads(SCHEMA.read_text()))
    (tmp_path / "run.json").write_text(document)
    ((read,),) = (one.cells for one in read_run(tmp_path).results)
    assert (read.operation, read.iterations, read.wrong) == (work, times, 0)
    assert read.report is Report.TIME


@pytest.mark.parametrize("path", sorted((GOLDEN / "old").glob("*.json")), ids=lambda p: p.name)
def test_files_of_earlier_versions_still_load_and_show(path):
    run = read_run(path)
    assert run.results
    console = make_console()
    with console.capture() as shown:
        for result in run.results:
            console.print(render_result(result))
            console.print(render_transfers(result))
    assert "GB/s" in shown.get()
