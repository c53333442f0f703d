"""The gate's judgement as CI systems read it: what a machine names cannot break their formats."""

import xml.etree.ElementTree as ET

import pytest
from junitparser import JUnitXml
from msgspec.structs import replace

from gate_kit import AIM, cell, run
from linkgauge.judge.gate import hold
from linkgauge.report.gate_ci import gate_annotations, gate_junit, gate_markdown


def several(name, count, scales):
    """So many runs, quietly different, with a cell of each kind of outcome."""
    found = []
    for n in range(count):
        shake = 1 + 0.002 * (n - count / 2)
        cells = [cell(at, scale * shake * (55e9 if at < 4 else 2e-6), busy=0.05,
                      better="higher" if at < 4 else "lower")
                 for at, scale in enumerate(scales) if scale]  # fmt: skip
        found.append(run(f"{name}{n}", *cells))
    return found


@pytest.fixture(scope="module")
def gate():
    """One cell is measured while a process with a hostile name runs."""
    after = []
    for one in several("after", 3, (0.9, 1.08, 0.95, 0, 1, 1.3)):
        cells = list(one.cells)
        load = replace(cells[2].load, others=12.0, process="backup|\n::x", pid=99)
        cells[2] = replace(cells[2], load=load)
        after.append(replace(one, cells=tuple(cells)))
    return hold(several("before", 4, (1, 1, 1, 1, 1, 1)), after, [], AIM)


def test_junit_has_a_case_for_each_cell_and_a_failure_for_each_that_fails(gate):
    text = gate_junit(gate)
    ET.fromstring(text)
    suites = list(JUnitXml.fromstring(text.encode()))
    counts = [(suite.tests, suite.failures, suite.skipped) for suite in suites]
    assert tuple(map(sum, zip(*counts, strict=True))) == (6, 3, 1)


def test_annotations_are_one_line_each(gate):
    lines = list(gate_annotations(gate))
    assert [line.split(" ")[0] for line in lines].count("::error") == 3
    (warning,) = (line for line in lines if line.startswith("::warning "))
    assert "backup|�::x" in warning
    for line in lines:
        assert "\n" not in line
        assert "%" not in line.replace("%25", "").replace("%0A", "").replace("%3A", "")


def test_markdown_escapes_what_would_break_its_table(gate):
    text = gate_markdown(gate)
    assert text.startswith("# linkgauge gate: fail")
    assert "backup\\|" in text
    assert len([line for line in text.splitlines() if line.startswith("| ")]) == 2 + 4
