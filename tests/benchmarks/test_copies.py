"""The table of copies says what nvbandwidth's tests do, on any number of devices."""

import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.transfer import Report

ORDER = """
host_to_device_memcpy_ce device_to_host_memcpy_ce
host_to_device_bidirectional_memcpy_ce device_to_host_bidirectional_memcpy_ce
device_to_device_memcpy_read_ce device_to_device_memcpy_write_ce
device_to_device_bidirectional_memcpy_read_ce device_to_device_bidirectional_memcpy_write_ce
all_to_host_memcpy_ce all_to_host_bidirectional_memcpy_ce
host_to_all_memcpy_ce host_to_all_bidirectional_memcpy_ce
all_to_one_write_ce all_to_one_read_ce one_to_all_write_ce one_to_all_read_ce
host_to_device_memcpy_sm device_to_host_memcpy_sm
host_to_device_bidirectional_memcpy_sm device_to_host_bidirectional_memcpy_sm
device_to_device_memcpy_read_sm device_to_device_memcpy_write_sm
device_to_device_bidirectional_memcpy_read_sm device_to_device_bidirectional_memcpy_write_sm
all_to_host_memcpy_sm all_to_host_bidirectional_memcpy_sm
host_to_all_memcpy_sm host_to_all_bidirectional_memcpy_sm
all_to_one_write_sm all_to_one_read_sm one_to_all_write_sm one_to_all_read_sm
host_device_latency_sm device_to_device_latency_sm device_local_copy
""".split()

CELLS = {
    # name: (row, column, transfers of that cell over three devices 0, 1, 2), report
    "host_to_device_memcpy_ce": ("0", "1", ["host:0 -> x:1 by ce"], "first"),
    "device_to_host_memcpy_sm": ("0", "1", ["x:1 -> host:0 by sm"], "first"),
    "host_to_device_bidirectional_memcpy_ce": (
        "0", "1", ["host:0 -> x:1 by ce", "x:1 -> host:0 by ce x2"], "first"),
    "device_to_host_bidirectional_memcpy_ce": (
        "0", "1", ["x:1 -> host:0 by ce", "host:0 -> x:1 by ce x2"], "first"),
    "host_to_device_bidirectional_memcpy_sm": ("0", "1", ["host:0 <-> x:1 by sm"], "first"),
    "device_to_host_bidirectional_memcpy_sm": ("0", "1", ["x:1 <-> host:0 by sm"], "first"),
    "device_to_device_memcpy_read_ce": ("0", "1", ["x:1 -> x:0 by x:0.ce"], "first"),
    "device_to_device_memcpy_write_sm": ("0", "1", ["x:0 -> x:1 by sm"], "first"),
    "device_to_device_bidirectional_memcpy_read_ce": (
        "0", "1", ["x:1 -> x:0 by x:0.ce", "x:0 -> x:1 by x:1.ce"], "sum"),
    "device_to_device_bidirectional_memcpy_write_sm": (
        "0", "1", ["x:1 -> x:0 by sm", "x:0 -> x:1 by sm"], "sum"),
    "all_to_host_memcpy_ce": (
        "0", "1", ["x:1 -> host:0 by ce", "x:0 -> host:0 by ce x2", "x:2 -> host:0 by ce x2"],
        "first"),
    "all_to_host_bidirectional_memcpy_ce": (
        "0", "1", ["x:1 -> host:0 by ce", "host:0 -> x:1 by ce x2", "x:0 -> host:0 by ce x2",
                   "x:2 -> host:0 by ce x2", "host:0 -> x:0 by ce x2", "host:0 -> x:2 by ce x2"],
        "first"),
    "all_to_host_bidirectional_memcpy_sm": (
        "0", "1", ["x:1 <-> host:0 by sm", "x:0 <-> host:0 by sm", "x:2 <-> host:0 by sm"],
        "first"),
    "host_to_all_memcpy_sm": (
        "0", "1", ["host:0 -> x:1 by sm", "host:0 -> x:0 by sm x2", "host:0 -> x:2 by sm x2"],
        "first"),
    "host_to_all_bidirectional_memcpy_ce": (
        "0", "1", ["host:0 -> x:1 by ce", "x:1 -> host:0 by ce x2", "host:0 -> x:0 by ce x2",
                   "host:0 -> x:2 by ce x2", "x:0 -> host:0 by ce x2", "x:2 -> host:0 by ce x2"],
        "first"),
    "all_to_one_write_ce": ("0", "1", ["x:0 -> x:1 by ce", "x:2 -> x:1 by ce"], "total"),
    "all_to_one_read_ce": ("0", "1", ["x:1 -> x:0 by x:0.ce", "x:1 -> x:2 by x:2.ce"], "total"),
    "all_to_one_read_sm": ("0", "1", ["x:1 -> x:0 by sm", "x:1 -> x:2 by sm"], "total"),
    "one_to_all_write_ce": ("0", "1", ["x:1 -> x:0 by ce", "x:1 -> x:2 by ce"], "total"),
    "one_to_all_read_ce": ("0", "1", ["x:0 -> x:1 by x:1.ce", "x:2 -> x:1 by x:1.ce"], "total"),
    "one_to_all_read_sm": ("0", "1", ["x:0 -> x:1 by sm", "x:2 -> x:1 by sm"], "total"),
    "host_device_latency_sm": ("0", "1", ["host:0 -> null by x:1.sm"], "latency"),
    "device_to_device_latency_sm": ("0", "1", ["x:1 -> null by x:0.sm"], "latency"),
    "device_local_copy": ("0", "1", ["x:1 -> x:1 by ce"], "first"),
}  # fmt: skip


def fabric(devices: int, nodes: int = 1) -> DeviceSet:
    some = tuple(device(n, "x") for n in range(devices))
    return DeviceSet("x", machine(some, nodes).host.nodes, some)


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_is_made_of_the_defined_transfers(name):
    row, column, transfers, report = CELLS[name]
    benchmark = CATALOG[name].lay_out(fabric(3))
    (cell,) = [c for c in benchmark.cells if (c.row, c.column) == (row, column)]
    expected = transfers if "host_device_latency" not in name else ["host:0 -> null by x:1.sm"]
    assert [str(transfer) for transfer in cell.transfers] == expected
    assert cell.report == Report(report)


def places(name, *memories):
    some = tuple(device(index, space) for space, index in memories)
    laid_out = CATALOG[name].lay_out(DeviceSet("x", machine(some).host.nodes, some))
    return [(cell.row, cell.column) for cell in laid_out.cells], laid_out.reason


@pytest.mark.parametrize("name", ORDER)
def test_matrices_have_a_row_a_host_or_all_pairs_without_the_diagonal(name):
    """Devices keep their own numbers and, of different spaces, have places of their own."""
    between, needs_two = name.startswith("device_to_device"), "_one_" in name or "one_to" in name
    for memories, labels in (
        ((("x", 3), ("x", 5), ("x", 7)), ("3", "5", "7")),
        ((("torch:cuda", 0), ("torch:xpu", 0), ("torch:xpu", 1)), ("cuda:0", "xpu:0", "xpu:1")),
    ):
        found, _ = places(name, *memories)
        rows = {row for row, _ in found}
        pairs = {(r, c) for r in labels for c in labels if r != c}
        assert set(found) == (pairs if between else {(*rows, c) for c in labels})
        assert len(found) == len(set(found))
    alone, reason = places(name, ("x", 0))
    assert bool(alone) == (reason is None) == (not between and not needs_two)


def test_host_buffers_lie_on_the_node_near_the_device_they_serve():
    some = (device(0, "x", near=0), device(1, "x", near=1))
    cells = (
        CATALOG["all_to_host_memcpy_ce"]
        .lay_out(DeviceSet("x", machine(some, 2).host.nodes, some))
        .cells
    )
    assert [str(cell) for cell in cells] == [
        "x:0 -> host:0 by ce & x:1 -> host:1 by ce x2",
        "x:1 -> host:1 by ce & x:0 -> host:0 by ce x2",
    ]


def test_benchmarks_are_selected_by_name_and_prefix_in_the_catalogs_order():
    names = [row.name for row in select(["device_local_copy"], ["host_to_host"])]
    assert names == ["device_local_copy", *(n for n in CATALOG if n.startswith("host_to_host"))]
    assert len(select((), ())) == len(CATALOG)
