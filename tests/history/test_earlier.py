"""Earlier runs of the history, to compare a run with: whole runs, or their medians alone."""

from msgspec.structs import replace

from configurations_kit import cell, result
from history_kit import BENCHMARK, run_at
from linkgauge.history.reading import earlier_medians, earlier_runs
from linkgauge.history.store import opened
from linkgauge.history.writing import add


def test_earlier_runs_can_be_read_with_the_figures_of_some_benchmarks(url):
    """A run of a few cells is not compared with all that large runs of its machine measured."""
    other = result("device_local_copy", *(cell("0", str(n), 1e9) for n in range(50)))
    with opened(url) as store:
        add(store, run_at(1, results=(*run_at(1).results, other)), None)
        (whole,), (part,) = (
            earlier_runs(store, run_at(2), benchmarks=names) for names in (None, [BENCHMARK])
        )
    assert [len(one.figures) for one in (whole, part)] == [52, 2]


def test_medians_of_earlier_runs_are_those_of_the_whole_runs_in_the_latest_state(url):
    failed = replace(cell("0", "0", 1e9), status="error")
    with_failed = run_at(2, results=(result(BENCHMARK, failed, cell("1", "0", 2e9)),))
    kept = [run_at(0, driver="1"), run_at(1), with_failed, run_at(3)]
    now = run_at(9, results=(*run_at(9).results, result("device_local_copy", cell("0", "0", 1e9))))

    def same_driver(state, other):
        return state["driver"] == other["driver"]

    with opened(url) as store:
        assert earlier_medians(store, now, 9, same_driver) is None
        for run in kept:
            add(store, run, None)
        whole = earlier_runs(store, now, last=9, benchmarks=[BENCHMARK])
        found = earlier_medians(store, now, 9, same_driver)
    assert (found.runs, len(whole)) == (3, 4)
    assert found.state == whole[0].state
    assert {cell.cell: medians for cell, medians in found.cells} == {
        of: {
            number: figure.median
            for number, run in enumerate(whole[:3], start=1)
            for figure in run.figures
            if figure.cell == of and figure.status == "pass"
        }
        for of in {figure.cell for run in whole for figure in run.figures}
    }
