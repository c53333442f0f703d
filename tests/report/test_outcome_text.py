"""The last lines of a run: how many cells did how well, and the first cause."""

import pytest
from msgspec.structs import replace

from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.result import Expected
from linkgauge.report.outcome_text import outcome_lines
from linkgauge.report.run_text import render_result
from report.samples import RUN
from report.test_output import text_console

PAIRS = RUN.results[0]
FAIL = Finding("link-speed", "fail", "x:0", "it is slow")
WARN = Finding("stall", "warn", "x:1", "it stalls")


def run_of(*verdicts, **more):
    """A run of cells with these verdicts."""
    cells = (
        replace(PAIRS.cells[0], verdict=each, expected=Expected(221e9, 221e9), **more)
        for each in verdicts
    )
    return replace(RUN, results=(replace(PAIRS, cells=tuple(cells)),))


def lines(run, *findings, verdict=True):
    return [line.plain for line in outcome_lines(run, Outcome(1, findings, verdict))]


def test_cells_are_counted_by_their_verdicts():
    judged = run_of(*["ok"] * 30, *["low"] * 2, *["unknown"] * 10)
    assert lines(judged, FAIL)[0] == "42 measured: 30 ok, 2 low, 10 not judged"
    assert lines(run_of("ok", "high"))[0] == "2 measured: 1 ok, 0 low, 0 not judged, 1 high"


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ("fail", "1 measured: 0 ok, 0 low, 0 not judged, 1 fail"),
        ("error", "nothing measured; 1 error"),
        ("skip", "nothing measured; 1 skip"),
    ],
)
def test_what_did_not_pass_is_counted_apart(status, line):
    assert lines(run_of("low", status=status, reason="so"))[0] == line


def test_a_benchmark_without_cells_is_skipped():
    bare = replace(PAIRS, cells=(), status="skip", reason="needs two devices")
    assert lines(replace(RUN, results=(bare,))) == ["nothing measured; 1 skip"]


def test_the_cause_is_the_first_finding():
    assert lines(run_of("low"), FAIL, WARN)[1] == "cause: fail link-speed  x:0: it is slow"
    assert lines(run_of("ok"), WARN)[1:] == ["cause: warn stall  x:1: it stalls"]


def test_where_nothing_is_found_it_is_the_first_cell_that_is_not_as_it_should_be():
    assert lines(run_of("ok")) == ["1 measured: 1 ok, 0 low, 0 not judged"]
    assert lines(run_of("ok", "low"))[1] == (
        "cause: low host_to_device_memcpy_ce (0, 0) 25% of what is expected; no check tells why"
    )
    failed = run_of("low", status="fail", reason="below the limit")
    assert lines(failed)[1] == "cause: fail host_to_device_memcpy_ce (0, 0): below the limit"


def test_who_wants_figures_only_sees_no_verdict():
    assert lines(run_of("ok", "low"), verdict=False) == ["2 measured"]


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [(["ok", "unknown"], "ok"), (["ok", "low", "high"], "low"), (["ok", "high"], "high"),
     (["unknown"], None)],
)  # fmt: skip
def test_a_heading_has_the_worst_verdict_and_never_pass(verdicts, word):
    console = text_console()
    console.print(render_result(run_of(*verdicts).results[0]))
    heading = console.file.getvalue().splitlines()[0]
    expected = "host_to_device_memcpy_ce  x  64 MiB"
    assert heading == (f"{expected}  {word}" if word else expected)
