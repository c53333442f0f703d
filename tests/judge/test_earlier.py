"""Which earlier runs count, wherever they are kept."""

import pytest
from msgspec.structs import replace

from gate_kit import run
from history_kit import run_at
from judge.test_trends import past
from linkgauge.judge.earlier import as_figures, earlier
from linkgauge.judge.machine_state import state_of
from linkgauge.judge.run_figures import figures_of
from linkgauge.model.history import CellOf, EarlierRun, Figure
from linkgauge.model.settings import Settings, Simulation


def at(moment, name="r", **more):
    return replace(run(name, **more), started=f"2026-11-{moment:02}T12:00:00.123Z")


def test_no_run_counts_that_is_compared_or_that_is_later_than_the_first_side():
    first, second = at(10, "a"), at(12, "b")
    found = [at(9, "x"), at(11, "y"), first, second]
    assert [one.id for one in earlier([first], [first, second], found, 50)] == ["x"]


def test_a_run_that_lies_in_a_folder_and_in_the_history_counts_once():
    folder = at(5, "x")
    kept = replace(folder, started="2026-11-05T12:00:00Z")
    assert earlier([at(10)], [], [folder, kept], 50) == [folder]


def test_the_latest_count_and_the_oldest_of_them_is_the_first():
    found = earlier([at(20)], [], [at(n, f"r{n}") for n in (3, 1, 2, 4)], 3)
    assert [one.id for one in found] == ["r2", "r3", "r4"]


def test_of_simulated_runs_with_the_same_noise_or_another_fault_none_counts():
    def simulated(moment, draw, faults=()):
        settings = Settings((1,), simulation=Simulation("m", "text", faults, draw))
        return at(moment, f"r{moment}", settings=settings)

    first = simulated(10, 0)
    others = [simulated(1, 0), simulated(2, 1), simulated(3, 1), simulated(4, 2, ("slow sim:0",))]
    assert [one.id for one in earlier([first], [first], others, 50)] == ["r3"]


def remembered(of, **state):
    """What the history says of a run."""
    (found,) = of.results
    key = (found.benchmark, found.backend, found.size)
    figures = {
        CellOf(*key, cell.row, cell.column, "t"): Figure(
            found.unit, found.better, cell.status, median=cell.summary.median,
        )
        for cell in found.cells
    }  # fmt: skip
    return EarlierRun(past(1, 1), figures, of.settings, {**state_of(of), **state})


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        ({}, True), ({"PCIe": "2.5 GT/s x16", "microcode": "0x1"}, True),
        ({"driver": "560"}, False),
        *(({name: "other"}, False)
          for name in ("kernel", "kernel options", "governor", "faults", "linkgauge")),
    ],
)  # fmt: skip
def test_runs_of_the_history_count_if_nothing_changed_that_figures_depend_on(state, counts):
    like, run = figures_of(run_at(9)), run_at(3)
    found = as_figures(remembered(run, **state), like)
    assert (found is not None) is counts
    if found:
        names = ("key", "unit", "better", "status", "figure")
        assert [[getattr(one, name) for name in names] for one in found.cells] == [
            [getattr(one, name) for name in names] for one in figures_of(run).cells
        ]
        assert earlier([like], [like], [found], 50) == [found]
        other = replace(found, settings=Settings(sizes=(128,)))
        assert earlier([like], [like], [other], 50) == []
