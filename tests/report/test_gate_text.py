"""Comparisons of runs and the gate's judgement as people, CI systems and programs read them,
against golden files (UPDATE_GOLDEN=1 writes them anew)."""

import csv
import io
import json
import xml.etree.ElementTree as ET

import pytest
from junitparser import JUnitXml
from msgspec.structs import replace

from gate_kit import AIM, cell, run, runs
from linkgauge.judge.baseline import baseline_of
from linkgauge.judge.gate import hold
from linkgauge.judge.limits import parse_bound, parse_limits
from linkgauge.judge.run_comparison import compare_runs
from linkgauge.judge.side_tests import Sides
from linkgauge.model.units import UNITS
from linkgauge.report.baseline_text import baseline_limits, baseline_lines
from linkgauge.report.formats import formats
from linkgauge.report.gate_ci import gate_annotations, gate_junit, gate_markdown
from linkgauge.report.gate_text import gate_csv, gate_document, gate_lines
from linkgauge.report.run_comparison_markdown import run_comparison_markdown
from linkgauge.report.run_comparison_text import (
    run_comparison_csv,
    run_comparison_document,
    run_comparison_lines,
)
from report.test_output import compare as compare_with_golden
from report.test_output import text_console


def several(name, kernel, count, scales):
    """So many runs, quietly different, with a cell of each kind of outcome."""
    found = []
    for n in range(count):
        shake = 1 + 0.002 * (n - count / 2)
        cells = [cell(at, scale * shake * (55e9 if at < 4 else 2e-6), busy=0.05,
                      better="higher" if at < 4 else "lower")
                 for at, scale in enumerate(scales) if scale]  # fmt: skip
        facts = {"kernel": kernel}
        found.append(run(f"{name}{n}", *cells, facts=facts))
    return found


BEFORE = several("before", "6.8.0", 4, (1, 1, 1, 1, 1, 1))
AFTER = several("after", "6.11.0", 3, (0.9, 1.08, 0.95, 0, 1, 1.3))
AFTER = [
    replace(one, cells=(*one.cells[:2],
                        replace(one.cells[2], load=replace(one.cells[2].load, others=12.0,
                                                           process="backup|\n::x", pid=99)),
                        *one.cells[3:]))
    for one in AFTER
]  # fmt: skip
GATE = hold(BEFORE, AFTER, [], AIM)
COMPARED = compare_runs(Sides(["before", "after"], [BEFORE, AFTER]), AIM)


def shown(lines, width=100):
    console = text_console(width)
    for line in lines:
        console.print(line)
    return console.file.getvalue()


def test_a_comparison_as_it_was_looked_at():
    text = shown(run_comparison_lines(COMPARED), 130)
    compare_with_golden("runs-compared.txt", text)


def test_the_gate_as_it_was_looked_at():
    compare_with_golden("gate.txt", shown(gate_lines(GATE)))


def test_differences_stand_before_all_figures():
    lines = shown(run_comparison_lines(COMPARED), 130).splitlines()
    assert "kernel" in lines[2]
    assert not any("GB/s" in line for line in lines[:3])


def test_noise_is_a_tilde_and_what_changed_has_its_direction():
    lines = shown(run_comparison_lines(COMPARED), 130).splitlines()
    rows = [line for line in lines if line.startswith("  0, ")]
    words = ("worse", "better", "worse", "there is no such cell", " ~ ", "worse")
    assert all(word in row for word, row in zip(words, rows, strict=True))


def test_the_documents_hold_what_is_shown():
    document = json.loads(gate_document(GATE))
    assert (document["schema"], document["code"]) == ("linkgauge.gate/1", 1)
    verdicts = [one["verdict"] for one in document["cells"]]
    assert verdicts == ["regression", "ok", "inconclusive", "missing", "ok", "regression"]
    rows = list(csv.DictReader(io.StringIO(gate_csv(GATE))))
    assert [row["verdict"] for row in rows] == verdicts
    compared = json.loads(run_comparison_document(COMPARED))
    assert compared["schema"] == "linkgauge.runs-compared/1"
    rows = list(csv.DictReader(io.StringIO(run_comparison_csv(COMPARED))))
    assert {row["side"] for row in rows} == {"before", "after"}
    assert sum(row["direction"] == "worse" for row in rows) == 3


def test_junit_has_a_case_for_each_cell_and_a_failure_for_each_that_fails():
    text = gate_junit(GATE)
    ET.fromstring(text)
    suites = list(JUnitXml.fromstring(text.encode()))
    assert sum(suite.tests for suite in suites) == 6
    assert sum(suite.failures for suite in suites) == 3
    assert sum(suite.skipped for suite in suites) == 1


def test_annotations_are_one_line_each_whatever_a_process_is_called():
    lines = list(gate_annotations(GATE))
    assert len(lines) == 4
    (warning,) = (line for line in lines if line.startswith("::warning "))
    assert sum(line.startswith("::error ") for line in lines) == 3
    assert not any("\n" in line for line in lines)
    assert "backup|�::x" in warning
    assert all("%" not in line.replace("%25", "").replace("%0A", "").replace("%3A", "")
               for line in lines)  # fmt: skip


def test_markdown_escapes_what_would_break_its_table():
    text = gate_markdown(GATE)
    assert text.startswith("# linkgauge gate: fail")
    assert "backup\\|" in text
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    assert len(rows) == 2 + 4
    table = run_comparison_markdown(COMPARED).splitlines()
    assert sum(line.startswith("| benchmark") for line in table) == 6


NOISY = [
    [run(name, *(cell(n, x, low=x / 2, high=2 * x, coverage=0.95, degrees=8)
                 for n, x in enumerate((55e9 * scale, 55e9))))]
    for name, scale in (("before", 1.0), ("after", 0.5))
]  # fmt: skip


def test_every_output_says_in_one_sentence_that_a_large_loss_may_be_unseen_and_what_to_do():
    gate = hold(*NOISY, [], AIM)
    sentence = (
        "a loss of 50% may be unseen in 2 of 2 cells: measure each side several times (--rerun 2), "
        "measure while the machine is quieter, or accept it with --allow-blind"
    )
    assert sentence in " ".join(shown(gate_lines(gate)).split())
    assert json.loads(gate_document(gate))["unseen"] == sentence
    assert sentence.replace("%", "%25") in "\n".join(gate_annotations(gate))
    assert sentence.split(":")[0] in gate_markdown(gate)
    assert gate_junit(gate).count('skipped message="blind: ') == 2
    allowed = shown(gate_lines(hold(*NOISY, [], AIM, allow_blind=True)))
    assert "which --allow-blind accepts" in allowed
    assert "gate: pass" in allowed
    assert json.loads(gate_document(GATE))["unseen"] is None


@pytest.mark.parametrize("kind", ["gate", "run comparison"])
def test_each_is_offered_in_the_formats_that_it_has(kind):
    able = {name for name, form in formats().items() if kind in form.renderers}
    assert able >= {"terminal", "json", "csv", "markdown"}
    assert ("junit" in able) == (kind == "gate")


def test_a_baseline_says_how_much_runs_vary_and_which_is_an_outlier():
    many = runs("a", 100e9, 100.2e9, 99.9e9, 100.1e9, 70e9)
    text = shown(baseline_lines(baseline_of(many, "now")))
    assert "baseline of 5 runs, 1 cell" in text
    assert "outlier: a4 in 1 cell" in text


def test_limits_of_a_baseline_leave_room_for_what_its_runs_vary_by():
    quiet = baseline_limits(baseline_of(runs("a", 100e9, 100.1e9, 99.9e9), "now"), 0.03)
    noisy = baseline_limits(baseline_of(runs("a", 100e9, 110e9, 90e9), "now"), 0.03)
    bounds = [parse_bound(text.split('limit: "')[1].split('"')[0]) for text in (quiet, noisy)]
    assert bounds[0].value == pytest.approx(97e9, rel=1e-3)
    assert bounds[1].value < 80e9
    slower = baseline_limits(baseline_of(runs("a", 2e-6, better="lower"), "now"), 0.03)
    bound = parse_bound(slower.split('limit: "')[1].split('"')[0])
    assert (bound.at_least, bound.value) == (False, pytest.approx(2.06e-6, rel=1e-3))
    unknown = baseline_limits(baseline_of(runs("a", 5.0, unit="m"), "now"), 0.03)
    assert "limits: []\n" in unknown


@pytest.mark.parametrize("unit", UNITS)
def test_a_baseline_writes_limits_of_every_unit_that_there_is(unit):
    better = UNITS[unit].better
    text = baseline_limits(baseline_of(runs("a", 0.5, better=better, unit=unit), "now"), 0.03)
    (limit,) = parse_limits(text)
    assert limit.bound.value == pytest.approx(0.485 if better == "higher" else 0.515)
