"""memory_stream_*: STREAM's operations over threads and nodes, in two modes."""

import pytest

from fakes import machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.plan import make_plan, peak_memory
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.worker import LocalWorker
from linkgauge.model.arrays import ARRAYS
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Node
from linkgauge.model.result import PlannedCell
from sim_kit import settings

KINDS = ("copy", "scale", "add", "triad", "read", "write")


def cells(kind, *nodes):
    benchmark = CATALOG[f"memory_stream_{kind}"].lay_out(DeviceSet("host", nodes))
    assert benchmark.unit.symbol == "B/s (STREAM)"
    return {(c.row, c.column): c for c in benchmark.cells}


def test_one_node_has_a_row_for_each_mode_and_a_column_for_each_number_of_threads():
    found = cells("triad", Node(0, (0, 1, 2)))
    assert list(found) == [
        (f"0 {mode}", threads) for mode in ("stream", "peak") for threads in ("1", "2", "3")
    ]
    assert str(found["0 peak", "2"]) == "host:0 -> host:0 by cpu*2"
    assert {c.operation for c in found.values()} == {"stream-triad", "peak-triad"}


def test_several_nodes_also_have_every_pair_and_all_threads_at_once():
    found = cells("copy", Node(0, (0, 1)), Node(1, (2, 3)))
    assert [column for row, column in found if row == "1 peak"] == ["1", "2", "host:0", "host:1"]
    assert str(found["1 peak", "host:0"]) == "host:0 -> host:0 by host:1.cpu"
    everything = found["all stream", "4"]
    assert str(everything) == "host:0 -> host:0 by cpu & host:1 -> host:1 by cpu"
    assert everything.report == "total"


def test_a_node_without_cpus_is_memory_for_others():
    found = cells("write", Node(0, (0,)), Node(1, ()))
    assert str(found["0 stream", "host:1"]) == "null -> host:1 by host:0.cpu"
    assert str(found["1 stream", "host:0"]) == "null -> host:0 by host:1.cpu"  # refused, with why
    assert ("1 stream", "1") not in found
    assert not any(row.startswith("all") for row, _ in found)


@pytest.mark.parametrize("kind", KINDS)
def test_operations_are_those_of_the_name(kind):
    for cell in cells(kind, Node(0, (0,))).values():
        work = ARRAYS[cell.operation]
        (transfer,) = cell.transfers
        assert work.kind == kind
        assert (transfer.source.is_null, transfer.destination.is_null) == (
            work.read == 0, work.written == 0,
        )  # fmt: skip


def test_they_replace_host_threads_which_keep_their_names():
    for profile in ("quick", "standard", "full"):
        names = {row.name for row in select((), (), profile=profile)}
        assert not any(name.startswith("host_threads") for name in names)
        assert {"memory_stream_copy", "memory_stream_triad"} <= names
    (kept,) = select(("host_threads_memcpy_copy_cpu",), (), profile="standard")
    (cell,) = kept.lay_out(DeviceSet("host", (Node(0, (0,)),))).cells
    assert (cell.operation, str(cell)) == ("copy", "host:0 -> host:0 by cpu*1")


@pytest.mark.parametrize(("mode", "modes"), [("stream", {"stream"}), (None, {"stream", "peak"})])
def test_a_mode_is_measured_alone_if_asked_for(mode, modes):
    names = "memory_stream_add", "host_threads_memcpy_copy_cpu"
    what = Selection(names, host_mode=mode)
    threads, arrays = what.lay_out(RunRequest(what=what), machine(nodes=2))
    assert {ARRAYS[cell.operation].mode for cell in arrays.cells} == modes
    assert {cell.operation for cell in threads.cells} == {"copy"}


def test_the_plan_counts_all_three_arrays():
    here = machine(available=(1 << 30) - 1)
    triad = CATALOG["memory_stream_triad"].lay_out(DeviceSet("host", here.host.nodes))
    size = 1 << 20
    assert peak_memory(make_plan([triad], here, [size])) == {"host:0": 3 * size}
    with pytest.raises(InputError, match=r"does not fit: needs 1.1 GiB, host:0 has 1024.0 MiB"):
        make_plan([triad], here, [384 << 20])
    with pytest.raises(InputError, match="arrays of numbers take a multiple of 8 bytes"):
        make_plan([triad], here, [1001])
    copy = CATALOG["memory_stream_copy"].lay_out(DeviceSet("host", here.host.nodes))
    assert peak_memory(make_plan([copy], here, [1001])) == {"host:0": 2002}


def test_a_simulated_machine_skips_them_with_a_reason():
    (cell, *_) = cells("add", Node(0, (0,))).values()
    planned = PlannedCell("0", "1", cell.transfers, cell.report, operation=cell.operation)
    (result,) = LocalWorker(settings()).measure((planned,), 4096)
    reason = "backend sim has no arrays: host threads do that"
    assert (result.status, result.reason) == ("skip", reason)
