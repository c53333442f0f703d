"""Which earlier runs count, wherever they are kept."""

from msgspec.structs import replace

from gate_kit import run
from history_kit import run_at
from linkgauge.judge.earlier import as_figures, earlier
from linkgauge.judge.machine_state import state_of
from linkgauge.judge.run_figures import figures_of
from linkgauge.model.history import CellOf, EarlierRun, Figure, PastRun
from linkgauge.model.settings import Settings, Simulation


def past(kept, **state):
    """What the history says of a run."""
    (found,) = kept.results
    return EarlierRun(
        PastRun(
            number=1, id=kept.id, label=kept.label, host="node1", accelerators="NVIDIA H200",
            started=kept.started, finished=kept.finished, simulated=False, profiled=False,
            profile="standard", status="pass", cells=2, passed=2, low=0, path=None, setup="",
            state=1, machine=1,
        ),
        {
            CellOf(found.benchmark, found.backend, found.size, cell.row, cell.column, "t"): Figure(
                found.unit, found.better, cell.status, median=cell.summary.median,
                slow_p95=cell.summary.slow_p95, slow_p99=cell.summary.slow_p99,
            )
            for cell in found.cells
        },
        kept.settings,
        {**state_of(kept), **state},
    )  # fmt: skip


def at(moment, name="r", **more):
    return replace(run(name, **more), started=f"2026-11-{moment:02}T12:00:00.123Z")


def test_a_run_of_the_history_has_the_figures_that_it_had():
    like, kept = figures_of(run_at(9)), run_at(3)
    found, own = as_figures(past(kept), like), figures_of(kept)
    names = ("key", "unit", "better", "status", "definition", "figure", "slow_p95", "slow_p99")
    assert [[getattr(one, name) for name in names] for one in found.cells] == [
        [getattr(one, name) for name in names] for one in own.cells
    ]
    assert (found.id, found.label, found.started) == (own.id, own.label, own.started)


def test_another_state_of_the_machine_does_not_count_and_what_changes_no_figure_does():
    like = figures_of(run_at(9))
    assert as_figures(past(run_at(3, driver="560")), like) is None
    for name in ("kernel", "kernel options", "governor", "faults", "linkgauge"):
        assert as_figures(past(run_at(3), **{name: "other"}), like) is None
    assert as_figures(past(run_at(3), PCIe="2.5 GT/s x16", microcode="0x1"), like) is not None


def test_other_settings_do_not_count():
    like = figures_of(run_at(9))
    other = as_figures(past(run_at(3, settings=Settings(sizes=(128,)))), like)
    assert earlier([like], [like], [other], 50) == []
    same = as_figures(past(run_at(3)), like)
    assert earlier([like], [like], [same], 50) == [same]


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
