"""Where a benchmark's figures changed, and what changed in the machine with them."""

import pytest

from linkgauge.judge.trends import trend_of
from linkgauge.model.history import CellOf, History, PastRun, Point, Series

NOISE = (0.0, 0.004, -0.003, 0.006, -0.005, 0.002, -0.001, 0.005, -0.004, 0.001)
OLD, NEW = {"driver": "570", "kernel": "6.1"}, {"driver": "575", "kernel": "6.1"}


def past(number, state, label="nightly"):
    moment = f"2026-01-{number + 1:02}T12:00:00.000Z"
    return PastRun(
        number=number, id=f"r{number}", label=label, host="box", accelerators="H200",
        started=moment, finished=moment, simulated=False, profiled=False, profile="standard",
        status="pass", cells=1, passed=1, low=0, path=None, setup="0", state=state, machine=1,
    )  # fmt: skip


def history(runs, *columns, states=None, better="higher"):
    """Cells of which each has these figures, one for each run."""
    series = tuple(
        Series(
            CellOf("copy", "cuda", 64, "0", str(at), "host:0 -> cuda:0 by ce"), "B/s", better,
            tuple(Point(run.number, figure, None, None)
                  for run, figure in zip(runs, figures, strict=True)),
        )
        for at, figures in enumerate(columns)
    )  # fmt: skip
    return History("box", "H200", False, {}, tuple(runs), states or {1: OLD, 2: NEW}, series)


def noisy(levels, shift=0):
    return [level * (1 + NOISE[(at + shift) % 10]) for at, level in enumerate(levels)]


OPTIONS = {
    1: {"kernel options": "root=/dev/sda ro iommu=pt"},
    2: {"kernel options": "root=/dev/sda ro iommu=on quiet"},
}


@pytest.mark.parametrize(
    ("runs", "states", "facts"),
    [
        ([past(n, 1 if n < 10 else 2) for n in range(20)], None, {"driver": ("570", "575")}),
        ([past(n, 1, "before" if n < 10 else "after") for n in range(20)], None,
         {"label": ("before", "after")}),
        ([past(n, 1) for n in range(20)], None, {}),
        # Of the kernel's options those are named that changed.
        ([past(n, 1 if n < 10 else 2) for n in range(20)], OPTIONS,
         {"kernel options": ("iommu=pt", "iommu=on quiet")}),
    ],
)  # fmt: skip
def test_a_change_names_what_changed_in_the_machine(runs, states, facts):
    (change,) = trend_of(history(runs, noisy([50.0] * 10 + [47.5] * 10), states=states)).changes
    assert (change.until, change.since, change.direction) == (9, 10, "worse")
    assert change.ratio == pytest.approx(0.95, abs=0.005)
    assert {fact.name: fact.values for fact in change.facts} == facts


def test_cells_that_change_together_are_one_change_and_others_are_not_of_it():
    runs = [past(n, 1 if n < 10 else 2) for n in range(20)]
    slower = [noisy([50.0] * 10 + [47.5] * 10, shift) for shift in range(4)]
    found = trend_of(history(runs, *slower, noisy([50.0] * 20), noisy([47.5] * 10 + [50.0] * 10)))
    worse, better = found.changes
    assert [cell.cell.column for cell in worse.cells] == ["0", "1", "2", "3"]
    assert [(cell.cell.column, cell.direction) for cell in better.cells] == [("5", "better")]


def test_small_changes_are_left_out_unless_they_are_asked_for():
    runs = [past(n, 1) for n in range(20)]
    figures = [50.0 * (1 + noise / 20) for noise in NOISE] * 2
    figures[10:] = [figure * 0.996 for figure in figures[10:]]
    assert trend_of(history(runs, figures)).changes == ()
    assert len(trend_of(history(runs, figures), least=0.001).changes) == 1
