"""Recorded runs of H200s, judged anew: healthy runs are quiet, a neighbour is named first."""

import pytest

from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.report.blocks import text_of
from linkgauge.report.words.worst import worst_of
from recorded_kit import BESIDE_A_LOAD, OF_ANOTHER, OF_ONE, OF_TWO, recorded_of_one


@pytest.mark.parametrize("name", OF_ONE + OF_ANOTHER + OF_TWO)
def test_a_healthy_run_ends_without_a_warning(name):
    run = judge(recorded_of_one(name))
    outcome = outcome_of(run)
    assert (outcome.code, worst_of(run, outcome)) == (0, None)


@pytest.mark.parametrize("name", [name for name in BESIDE_A_LOAD if "memory" not in name])
def test_a_process_that_used_the_card_comes_first_and_fails_nothing(name):
    run = judge(recorded_of_one(name))
    outcome = outcome_of(run)
    assert outcome.code == 0
    assert text_of(worst_of(run, outcome).what).startswith(
        "warn processes  cuda:0: other processes use it"
    )
    assert any(cell.verdict == "low" for result in run.results for cell in result.cells)


@pytest.mark.parametrize("name", [name for name in BESIDE_A_LOAD if "memory" in name])
def test_a_process_that_keeps_the_host_busy_is_named(name):
    run = judge(recorded_of_one(name))
    outcome = outcome_of(run)
    assert outcome.code == 0
    assert text_of(worst_of(run, outcome).what).startswith("warn busy  host: other programs")
