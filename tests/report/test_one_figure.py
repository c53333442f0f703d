"""Every output gives a figure one share and one verdict, and a run one verdict."""

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest
from msgspec.structs import replace

from exporter_kit import page
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.engine.kept.runs import read_run
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.history import figures_by_result
from linkgauge.report.files import json_document, write_run
from linkgauge.report.forms import shade
from linkgauge.report.rows import OneRun
from linkgauge.report.run_texts import run_markdown, run_sarif, summary_junit
from linkgauge.report.tables import CELLS
from linkgauge.rooms.exporter.families import VERDICTS
from linkgauge.rooms.exporter.results import FromFolder, Which

COPIES = ("host_to_device_memcpy_ce", "device_to_device_memcpy_read_ce")
SITUATIONS = [
    ("dgx-h200-8", ("sim:0",), (), "ok"),
    ("dgx-h200-8", ("sim:0", "sim:1"), (), "ok"),
    ("dgx-h200-8", (), (), "ok"),
    ("dgx-h200-8", ("sim:0",), ("slow sim:0 rate=50%",), "fail"),
    ("dgx-h200-8", ("sim:0", "sim:1"), ("slow sim:1 rate=25%",), "fail"),
    ("dgx-h200-8", (), ("slow sim:3 rate=25%",), "fail"),
    ("dgx-h200-8", (), ("slow sim:2-nvswitch rate=50%",), "fail"),
    ("dgx-h200-8", (), ("jitter sim:3 sigma=9%",), None),
    ("riscv-2gpu", (), (), None),
    ("ppu-2x2", (), (), None),
    ("vm-degraded", (), (), "fail"),
]


@pytest.mark.parametrize(("name", "devices", "faults", "word"), SITUATIONS)
def test_each_output_gives_a_figure_one_share_and_one_verdict(
    tmp_path, name, devices, faults, word
):
    text = load(name)[1]
    run = judge(run_of(name, text, *COPIES, size=1 << 28, devices=devices, faults=faults))
    began = "2026-01-01T00:00:00+00:00"
    run = replace(run, started=began, finished=began)
    one = OneRun(run, outcome_of(run))
    cells = [(result, cell) for result in run.results for cell in result.cells]
    known = [(cell.reached, cell.verdict) for _, cell in cells]
    assert known
    if name == "vm-degraded":
        assert "degraded" in {verdict for _, verdict in known}

    rows = list(csv.DictReader(io.StringIO(CELLS.csv(one))))
    rows = [row for row in rows if row["row"] or row["column"]]
    assert [(float(r["share"]) if r["share"] else None, r["verdict"]) for r in rows] == known

    document = json.loads(CELLS.json(one))
    objects = [row for row in document["cells"] if row["row"] or row["column"]]
    assert [(row["share"], row["verdict"]) for row in objects] == known

    whole = json.loads(json_document(one))
    assert [*whole][:4] == ["schema", "verdict", "exit_code", "findings"]
    for told in (document, whole):
        assert (told["verdict"], told["exit_code"]) == (one.outcome.word, one.outcome.code)
    assert word in (None, one.outcome.word)

    percents = ["" if share is None else f"{share:.0%}" for share, _ in known]
    shades = [shade(cell, result.unit) for result, cell in cells if cell.status == "pass"]
    passed = [at for at, (_, cell) in enumerate(cells) if cell.status == "pass"]
    assert [one.share for one in shades] == [percents[at] for at in passed]

    head, _, *lines = (
        [entry.strip() for entry in line.split("|")[1:-1]]
        for line in run_markdown(one).splitlines()
        if line.startswith("|")
    )
    told = [dict(zip(head, line, strict=True)) for line in lines if len(line) == len(head)]
    told = [row for row in told if row.get("Row") or row.get("Column")]
    shares = [(row.get("Of expected", ""), row["Verdict"]) for row in told]
    words = [verdict for _, verdict in known]
    assert shares == list(zip(percents, words, strict=True))

    cases = [
        case for case in ET.fromstring(summary_junit(one)).iter("testcase")
        if case.get("name").startswith(tuple(f"{each}[" for each in COPIES))
    ]  # fmt: skip
    for case, (_, cell), percent, verdict in zip(cases, cells, percents, words, strict=True):
        out = case.findtext("system-out") or ""
        assert (f"{percent} of " in out) == bool(percent)
        assert (f", {verdict}, SIMULATED" in out) == (cell.status == "pass")
        assert (case.find("failure") is not None) == (verdict == "low")

    (log,) = json.loads(run_sarif(one))["runs"]
    told = log["properties"]
    assert (told["verdict"], told["exit_code"]) == (one.outcome.word, one.outcome.code)
    assert [(each["share"], each["verdict"]) for each in told["figures"]] == known

    figures = [figure for _, own in figures_by_result(run.results) for figure in own]
    assert [(figure.share, figure.verdict) for figure in figures] == known

    folder = tmp_path / "l" / "1"
    folder.mkdir(parents=True)
    assert not {"verdict", "findings"} & json.loads(write_run(folder, run).read_text()).keys()
    shown = page(source=FromFolder(tmp_path, Which())).text(10.0).decode()
    assert f'verdict="{one.outcome.word}"}} 1.0\n' in shown
    for metric, wanted in (
        ("linkgauge_cell_share_ratio", [share for share, _ in known]),
        ("linkgauge_cell_verdict", [VERDICTS.get(verdict) for _, verdict in known]),
    ):
        found = [float(line.rsplit(" ", 1)[1]) for line in shown.splitlines()
                 if line.startswith(f"{metric}{{")]  # fmt: skip
        assert sorted(found) == pytest.approx(sorted(v for v in wanted if v is not None))

    (folder / "run.json").write_text(json_document(one))
    again = judge(read_run(folder))
    kept = [(c.reached, c.verdict) for result in again.results for c in result.cells]
    assert kept == known
