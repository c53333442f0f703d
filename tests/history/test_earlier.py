"""Earlier runs of the history, to compare a run with: whole runs, or their medians alone."""

import msgspec
import pytest
from msgspec.structs import replace

from configurations_kit import cell, result
from history_kit import BENCHMARK, run_at
from linkgauge.engine.kept.ranges import with_todays_ranges
from linkgauge.history.address import address
from linkgauge.history.reading import earlier_medians, earlier_runs
from linkgauge.history.store import opened
from linkgauge.history.writing import add
from linkgauge.model.notation import parse_transfers
from linkgauge.model.recorded import RECORDED
from linkgauge.uses.earlier_runs import since
from recorded_kit import OF_ONE, recorded_of_one

BOTH_WAYS = "host_to_device_bidirectional_memcpy_ce"


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


def test_other_transfers_at_the_place_of_a_cell_are_no_earlier_figures_of_it(url):
    """All copies that a user specifies are at one place of one benchmark."""
    copies = [
        replace(cell("0", "0", 1e9), transfers=parse_transfers(text))
        for text in ("host:0 -> host:0 by cpu", "host:0 -> null by host:0.cpu")
    ]
    own, other = (result(BENCHMARK, one) for one in copies)
    with opened(url) as store:
        for number, kept in enumerate((own, other, other)):
            add(store, run_at(number, results=(kept,)), None)
        for results, count in ((own, 1), (other, 2)):
            found = earlier_medians(store, run_at(9, results=(results,)), 9, lambda *_: True)
            assert [len(medians) for _, medians in found.cells] == [count]


@pytest.mark.parametrize("count", [4, 5])
def test_ranges_count_what_earlier_runs_of_the_machine_vary_by(count, tmp_path, monkeypatch):
    """Five are enough. On this machine, copies that cross to the host vary less than on others."""
    place = tmp_path / "history.db"
    *before, now = [
        replace(recorded_of_one(name), ranges=msgspec.UNSET) for name in OF_ONE[: count + 1]
    ]
    with opened(address(str(place))) as store:
        for run in before:
            add(store, run, None)
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(place))
    found, said = since(now)
    assert "earlier run" in said
    widths = [width_of(run) for run in (now, found)]
    if count < 5:
        assert (found.between_runs, widths[0]) == (msgspec.UNSET, widths[1])
        return
    kind = "host and device"
    assert 0 < found.between_runs[kind] < RECORDED[kind].furthest / 2
    assert widths[1] < 0.9 * widths[0]
    assert with_todays_ranges(found) == found  # as its file is read


def width_of(run):
    """The relative width of a range of a copy to the device, while another comes back."""
    (table,) = (one for one in run.results if one.benchmark == BOTH_WAYS)
    low, high = table.cells[0].summary.ci95
    return high / low - 1
