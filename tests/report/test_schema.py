"""docs/*.schema.json say what each property is, and what linkgauge writes validates."""

import gzip
import json
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from command_kit import called
from linkgauge.cli.main import application
from linkgauge.engine.kept.reading import in_todays_words
from linkgauge.engine.kept.runs import read_run
from linkgauge.model.documents.result import RankTimes
from linkgauge.model.operations.collective import Collective
from linkgauge.model.transfer import Report
from linkgauge.report.files import document_of, json_document

ROOT = Path(__file__).parents[2]
KEPT = ("run", "scale", "vary", "gate", "history", "watch")
NAMES = sorted(
    path.name.removesuffix(".schema.json") for path in (ROOT / "docs").glob("*.schema.json")
)
GOLDEN = Path(__file__).parent / "golden"
RECORDED = sorted((ROOT / "tests" / "data").rglob("runs-*/*.json.gz"))
COPY = "host_to_device_memcpy_ce"
TWO_SETTINGS = ("--cpus", "0-15", "--cpus", "0-7", "--rounds", "4", "--significance", "0.2")
SIMULATED = ("--machine", "riscv-2gpu", "--size", "1M", "--samples", "3")


@cache
def schema(name):
    """The document, with every property of an object named: what is not named is refused."""
    found = json.loads((ROOT / "docs" / f"{name}.schema.json").read_text())
    for kind in found["$defs"].values():
        if "properties" in kind:
            kind["additionalProperties"] = False
    return found


@cache
def validator(name):
    return jsonschema.Draft202012Validator(schema(name))


def test_the_schemas_are_those_of_the_types():
    told = subprocess.run(
        [sys.executable, ROOT / "tools" / "schemas", "--check"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (told.returncode, told.stderr) == (0, "")


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_says_of_each_property_what_it_is(name):
    found = schema(name)
    jsonschema.Draft202012Validator.check_schema(found)
    assert found["$id"] == f"urn:linkgauge:schema:{name}:{ {'run': 3, 'gate': 2}.get(name, 1) }"
    described = [
        (kind, field, what.get("description", ""))
        for kind, of in found["$defs"].items()
        for field, what in of.get("properties", {}).items()
    ]
    assert len(described) >= (30 if name in KEPT else 3)
    assert [one[:2] for one in described if len(one[2]) < 5] == []


def written(folder):
    """What commands write of simulated machines, by the schema's name."""
    place = {"cwd": folder, "LINKGAUGE_HISTORY": folder / "history.db"}

    def of(*arguments, code=0):
        done = called(*arguments, **place)
        assert done.returncode == code, done.stderr
        return done.stdout

    slow = ("--fault", "slow host:0-sim:0 rate=60%")
    for which in [("--label", "before")] * 6 + [("--label", "after", *slow)] * 4:
        of("run", COPY, *SIMULATED, *which, code=int("--fault" in which))
    of("vary", "host_to_host_memcpy_copy_cpu", "--machine", "riscv-2gpu", "--size", "1M", "--out",
       "varied", *TWO_SETTINGS)  # fmt: skip
    machine = "results/simulated-riscv-2gpu"
    sides = ("--baseline", f"{machine}/before", "--current", f"{machine}/after")
    often = ("--probes", "6", "--every", "0.1s", "--budget", "90%", "--label", "before")
    events = of("watch", COPY, *SIMULATED, *slow, *often, "--json", code=1).splitlines()
    assert {"begun", "probe", "degraded", "ended"} <= {json.loads(line)["event"] for line in events}
    trend = of("history", "trend", COPY, "--json")
    assert json.loads(trend)["trends"][0]["changes"]
    return {
        "run": [path.read_text() for path in folder.rglob("run.json")],
        "scale": [of("scale", "--machine", "ring-8", "--size", "8,64K,512M", "--json")],
        "vary": [path.read_text() for path in folder.glob("varied/**/vary.json")],
        "gate": [of("gate", *sides, "--json", code=1)],
        "history": [of("history", "--json"), trend],
        "watch": events,
    }


def test_what_commands_write_validates(tmp_path):
    texts = written(tmp_path)
    assert texts.keys() == set(KEPT)
    for name, documents in texts.items():
        assert documents
        for text in documents:
            validator(name).validate(json.loads(text))


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_recorded_runs_validate(path):
    today = in_todays_words(gzip.decompress(path.read_bytes()))
    validator("run").validate(json.loads(today))


def test_a_damaged_run_does_not_validate():
    document = json.loads(in_todays_words((GOLDEN / "run.json").read_bytes()))
    validator("run").validate(document)
    document["results"][0]["cells"][0]["status"] = "fine"
    with pytest.raises(jsonschema.ValidationError):
        validator("run").validate(document)


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
    document = json_document(document_of(kept))
    validator("run").validate(json.loads(document))
    (tmp_path / "run.json").write_text(document)
    ((read,),) = (one.cells for one in read_run(tmp_path).results)
    assert (read.operation, read.iterations, read.wrong) == (work, times, 0)
    assert read.report is Report.TIME


DGX = ("--machine", "dgx-h200-8")
FEW = (COPY, *DGX, "--size", "1M", "--samples", "3")
LOG = ROOT / "tests/data/judge/public/p53-sixteen-at-10-of-25/log.txt"
TYPED = {
    ("", "glance"): (),
    ("check", "check"): ("check", *DGX, "--under", "20s"),
    ("compare", "runs-compared"): ("compare", "runs/one", "runs/two", "--no-history"),
    ("copy", "run"): ("copy", "host:0 -> sim:0 by ce", *FEW[1:]),
    ("devices", "machine"): ("devices", *DGX),
    ("doctor", "findings"): ("doctor", "--machine", "vm-degraded"),
    ("expect", "expect"): ("expect", "dgx-h200-8"),
    ("export", "summary"): ("export", "runs/one"),
    ("export", "samples"): ("export", "runs/one", "--samples"),
    ("gate", "gate"): ("gate", "--baseline", "runs/one", "--current", "runs/two", "--no-history"),
    ("history", "history"): ("history",),
    ("judge", "run"): ("judge", LOG, "--machine", "8 x H100 SXM"),
    ("latency", "run"): ("latency", *DGX, "--size", "64", "--iterations", "20"),
    ("list", "benchmarks"): ("list",),
    ("run", "run"): ("run", *FEW, "--out", "runs/other"),
    ("run", "plan"): ("run", *FEW, "--dry-run"),
    ("scale", "scale"): ("scale", "all_reduce", *DGX, "--size", "1M", "--samples", "3"),
    ("show", "run"): ("show", "kept-run"),
    ("show", "comparison"): ("show", "configurations"),
    ("show", "scale"): ("show", "kept-scale/scale.json"),
    ("show", "vary"): ("show", "kept-vary/vary.json"),
    ("traffic", "run"): ("traffic", *DGX, "--buffer", "1M"),
    ("vary", "vary"): ("vary", *FEW, "--memory", "pinned", "--memory", "pageable", "--rounds", "4",
                       "--significance", "0.2"),
    ("vm", "vm"): ("vm", ROOT / "tests/data/machines/gpu-vm.xml", "--root",
                   ROOT / "tests/data/machines/host.tgz"),
    ("watch", "watch"): ("watch", *FEW, "--probes", "1", "--budget", "90%"),
}  # fmt: skip
"""An example of each document of each command, by the schema's name. `ai` needs torch."""


def shown_on_the_page():
    page = (ROOT / "docs/schemas.md").read_text("utf-8")
    for command, kinds in re.findall(
        r"^\| `linkgauge ?(\w*) --json` \| (.*) \|$", page, re.MULTILINE
    ):
        for kind in re.findall(r"\(#([\w-]+)\)", kinds):
            yield command, kind


def test_the_page_has_every_command_that_writes_json():
    commands = {
        name
        for name, one in application().loaded().items()
        if any("--json" in option.opts for option in one.params)
    }
    shown = [*shown_on_the_page()]
    assert {command for command, _ in shown} == {"", *commands}
    assert sorted({*TYPED, ("ai", "run")}) == sorted(shown)


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A folder with runs, a scaling and a variation."""
    folder = tmp_path_factory.mktemp("measured")

    def of(*words):
        done = called(*words, cwd=folder, LINKGAUGE_HISTORY=folder / "history.db")
        assert done.returncode == 0, done.stderr

    for name in ("one", "two"):
        of("run", *FEW, "--out", f"runs/{name}")
    for label in ("one", "two"):
        of("run", "--profile", "vm", *SIMULATED, "--label", label, "--out", "configurations")
    of(*TYPED["scale", "scale"], "--out", "scaled")
    of(*TYPED["vary", "vary"], "--out", "varied")
    for kind, place in (("run", "runs/one"), ("scale", "scaled"), ("vary", "varied")):
        (kept,) = folder.glob(f"{place}/**/{kind}.json")
        (folder / f"kept-{kind}").symlink_to(kept.parent)
    return folder


@pytest.mark.parametrize(("command", "kind"), TYPED)
def test_what_a_command_writes_with_json_validates(measured, command, kind):
    words = [*TYPED[command, kind], "--json"]
    done = called(*words, cwd=measured, LINKGAUGE_HISTORY=measured / "history.db")
    assert done.returncode in (0, 1, 4), done.stderr
    documents = done.stdout.splitlines() if command == "watch" else [done.stdout]
    for text in documents:
        document = json.loads(text)
        validator(kind).validate(document)
        if "verdict" in document and command != "watch":
            assert [*document][:4] == ["schema", "verdict", "exit_code", "findings"]
