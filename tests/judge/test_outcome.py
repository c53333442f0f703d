"""What a run comes to: the exit code of every command that shows it, and the findings to report."""

import pytest
from msgspec.structs import replace

from doctor_kit import card, inventory, machine, measured
from linkgauge.judge.outcome import outcome_of
from linkgauge.model.notes import Profiled
from linkgauge.model.result import Run
from linkgauge.model.settings import Settings

WELL = inventory()
FAILING = inventory(cards=(card(remap_pending=True),))
WARNED = inventory(cards=(card(locked_clock=1e9, max_clock=2e9),))


def run(what=WELL, finished="f", **more):
    return Run(id="1", label="l", command=(), started="s", finished=finished,
               machine=machine(what), settings=Settings(sizes=()),
               results=(measured(**more),))  # fmt: skip


@pytest.mark.parametrize(
    ("run", "code"),
    [
        (run(), 0),
        (run(verdict="unknown"), 0),
        (run(verdict="high"), 0),
        (run(verdict="low"), 1),
        (run(FAILING), 1),
        (run(WARNED), 0),
        (run(status="fail", kind="wrong-bytes"), 1),
        (run(FAILING, status="error", kind="call"), 3),
        (run(FAILING, status="skip"), 4),
        (run(FAILING, finished=None, verdict="low"), 130),
    ],
)
def test_what_is_low_or_fails_is_not_success(run, code):
    assert outcome_of(run).code == code


def test_a_warning_is_reported_and_no_failure():
    outcome = outcome_of(run(WARNED))
    assert ([finding.check for finding in outcome.findings], outcome.code) == (["locked-clock"], 0)


@pytest.mark.parametrize("judged", [run(verdict="low"), run(FAILING), run(WARNED)])
def test_who_wants_figures_only_is_told_no_verdict(judged):
    outcome = outcome_of(judged, verdict=False)
    assert (outcome.code, outcome.findings) == (0, ())


@pytest.mark.parametrize("judged", [run(verdict="low"), run(FAILING), run(WARNED)])
def test_figures_under_a_profiler_are_not_judged(judged):
    (result,) = judged.results
    cells = tuple(replace(cell, notes=(Profiled("nsys"),)) for cell in result.cells)
    outcome = outcome_of(replace(judged, results=(replace(result, cells=cells),)))
    assert (outcome.code, outcome.findings, outcome.verdict) == (0, (), False)


def test_figures_that_are_wrong_fail_without_a_verdict_too():
    wrong = run(status="fail", kind="wrong-bytes")
    assert outcome_of(wrong, verdict=False).code == 1
    assert outcome_of(replace(wrong, finished=None), verdict=False).code == 130
