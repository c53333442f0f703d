"""A run is held against earlier ones by their medians alone."""

import pytest
from msgspec.structs import replace

from gate_kit import Trial, medians_of, normal
from linkgauge.judge.compare.earlier import changes_since, held_against


def runs(loss, before=8):
    """A run whose cell 0 lost so much, and the runs before it, the latest first."""
    trial = Trial(1, normal, 8, loss=loss)
    past = trial.runs(before, current=False)[::-1]
    (run,) = trial.runs(1, current=True)
    return past, run


@pytest.mark.parametrize("loss", [0.0, 0.5])
def test_medians_show_what_whole_runs_show(loss):
    past, run = runs(loss)
    by_medians, by_runs = changes_since(medians_of(past), run), held_against(past, run)
    assert by_medians.runs == by_runs.runs == 8
    assert by_medians.cells == by_runs.cells == len(run.cells)
    lost, same = by_medians.earlier.lost, by_runs.earlier.lost
    assert [one.cell for one in lost] == [one.cell for one in same] == [0] * (loss > 0)
    assert [one.share for one in lost] == pytest.approx([0.5] * (loss > 0), rel=0.05)
    assert by_medians.earlier.unknown == by_runs.earlier.unknown == ()


def test_a_loss_that_began_in_the_run_before_is_found_although_it_was_measured():
    past, run = runs(0.5)
    (cell, *others) = past[0].cells
    fallen = replace(past[0], cells=(replace(cell, figure=cell.figure / 2), *others))
    found = changes_since(medians_of([fallen, *past[1:]]), run).earlier
    assert (found.runs, found.since, [one.cell for one in found.lost]) == (7, 1, [0])


def test_few_runs_judge_no_part():
    past, run = runs(0.5, before=4)
    assert changes_since(medians_of(past), run).earlier is None


def test_without_a_figure_in_common_nothing_is_compared():
    past, run = runs(0.0)
    assert changes_since(medians_of(past), replace(run, cells=())) is None
    failed = tuple(replace(cell, figure=None, status="fail") for cell in run.cells)
    assert changes_since(medians_of(past), replace(run, cells=failed)) is None


def test_a_cell_that_the_history_has_twice_keeps_its_figures():
    """Versions, or copies that a user specifies, may say otherwise what a cell copies."""
    past, run = runs(0.5, before=10)
    medians = medians_of(past)
    (cell, known), *others = medians.cells
    old = {number: figure for number, figure in known.items() if number > 2}
    new = {number: figure for number, figure in known.items() if number <= 2}
    twice = medians._replace(cells=[(cell, old), (cell, new), *others])
    found, same = (changes_since(one, run).earlier for one in (twice, medians))
    assert found == same
