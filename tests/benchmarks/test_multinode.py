"""The table between processes says what nvbandwidth's multinode tests do, and between hosts the
same with MPI."""

from itertools import permutations

import pytest

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.hardware.machine import Device, Node
from linkgauge.model.transfer import Report

ORDER = """
device_to_device_memcpy_read_ce device_to_device_memcpy_write_ce
device_to_device_bidirectional_memcpy_read_ce device_to_device_bidirectional_memcpy_write_ce
device_to_device_memcpy_read_sm device_to_device_memcpy_write_sm
device_to_device_bidirectional_memcpy_read_sm device_to_device_bidirectional_memcpy_write_sm
device_to_device_all_to_one_write_sm device_to_device_all_from_one_read_sm
device_to_device_broadcast_one_to_all_sm device_to_device_broadcast_all_to_all_sm
bisect_write_ce latency_flag_pingpong
""".split()
ALL = [(a, (a + step) % 4) for a in range(4) for step in (1, 2, 3)]

# The cell of row 1, column 2 where processes have devices; of column 1 where there is one row.
CELLS = {
    "device_to_device_memcpy_read_ce": ("1", "2", ["x:0@2 -> x:1@1 by x:1@1.ce"], "first"),
    "device_to_device_memcpy_write_ce": ("1", "2", ["x:1@1 -> x:0@2 by ce"], "first"),
    "device_to_device_bidirectional_memcpy_read_ce": (
        "1", "2", ["x:0@2 -> x:1@1 by x:1@1.ce", "x:1@1 -> x:0@2 by x:0@2.ce"], "sum"),
    "device_to_device_bidirectional_memcpy_write_ce": (
        "1", "2", ["x:0@2 -> x:1@1 by ce", "x:1@1 -> x:0@2 by ce"], "sum"),
    "device_to_device_memcpy_read_sm": ("1", "2", ["x:0@2 -> x:1@1 by x:1@1.sm"], "first"),
    "device_to_device_memcpy_write_sm": ("1", "2", ["x:1@1 -> x:0@2 by sm"], "first"),
    "device_to_device_bidirectional_memcpy_read_sm": (
        "1", "2", ["x:0@2 -> x:1@1 by x:1@1.sm", "x:1@1 -> x:0@2 by x:0@2.sm"], "sum"),
    "device_to_device_bidirectional_memcpy_write_sm": (
        "1", "2", ["x:0@2 -> x:1@1 by sm", "x:1@1 -> x:0@2 by sm"], "sum"),
    "device_to_device_all_to_one_write_sm": (
        "0", "1", ["x:0@0 -> x:1@1 by sm", "x:0@2 -> x:1@1 by sm", "x:1@3 -> x:1@1 by sm"], "sum"),
    "device_to_device_all_from_one_read_sm": (
        "0", "1",
        ["x:1@1 -> x:0@0 by x:0@0.sm", "x:1@1 -> x:0@2 by x:0@2.sm", "x:1@1 -> x:1@3 by x:1@3.sm"],
        "sum"),
    "device_to_device_broadcast_one_to_all_sm": (
        "0", "1", ["x:1@1 -> x:0@0 by sm", "x:1@1 -> x:0@2 by sm", "x:1@1 -> x:1@3 by sm"],
        "first"),
    "device_to_device_broadcast_all_to_all_sm": (
        "0", "0", [f"x:{a % 2}@{a} -> x:{b % 2}@{b} by sm" for a, b in ALL], "sum"),
    "bisect_write_ce": ("1->3", "0", ["x:1@1 -> x:1@3 by ce"], "first"),
    "latency_flag_pingpong": ("1", "2", ["x:1@1 -> x:0@2 by sm"], "latency"),
}  # fmt: skip
OPERATIONS = {
    "device_to_device_broadcast_one_to_all_sm": "broadcast",
    "device_to_device_broadcast_all_to_all_sm": "broadcast",
    "latency_flag_pingpong": "flag-ping-pong",
}


def device(memory):
    return Device(memory=memory, model="m", memory_bytes=1 << 30, largest_buffer=1 << 30)


def over(*memories):
    """Processes on two hosts, each with one of these memories."""
    hosts = tuple(f"host {n // 2}" for n in range(len(memories)))
    return DeviceSet("x", (Node(0, (0,)),), tuple(map(device, memories)), hosts=hosts)


DEVICES = over("x:0@0", "x:1@1", "x:0@2", "x:1@3")
HOSTS = over("host:0@0", "host:1@1", "host:0@2", "host:1@3")


def row(name):
    return CATALOG[f"multinode_{name}"]


def the_cell(benchmark, place):
    (cell,) = (cell for cell in benchmark.cells if (cell.row, cell.column) == place)
    return cell


@pytest.mark.parametrize("name", ORDER)
def test_a_cell_between_devices(name):
    at_row, column, transfers, report = CELLS[name]
    cell = the_cell(row(name).lay_out(DEVICES), (at_row, column))
    assert [str(transfer) for transfer in cell.transfers] == transfers
    assert cell.report == Report(report)
    assert cell.operation == OPERATIONS.get(name, "copy")


PLACES = {
    "pairs": {(str(a), str(b)) for a, b in permutations(range(4), 2)},
    "all": {("0", str(a)) for a in range(4)},
    "halves": {("0->2", "0"), ("1->3", "0"), ("2->0", "0"), ("3->1", "0")},
    "once": {("0", "0")},
}


@pytest.mark.parametrize("fabric", [DEVICES, HOSTS], ids=["devices", "hosts"])
@pytest.mark.parametrize("name", ORDER)
def test_rows_and_columns_are_ranks(name, fabric):
    shape = {"bisect_write_ce": "halves", "device_to_device_broadcast_all_to_all_sm": "once"}.get(
        name, "all" if "_one_" in name else "pairs"
    )
    laid_out = row(name).lay_out(fabric)
    assert {(cell.row, cell.column) for cell in laid_out.cells} == PLACES[shape]
    assert len(laid_out.cells) == len(PLACES[shape])
    assert (bool(laid_out.rounds), laid_out.pairs) == (shape == "halves", shape == "pairs")


def test_an_odd_process_writes_to_the_one_half_of_all_further_on():
    cells = row("bisect_write_ce").lay_out(over("x:0@0", "x:0@1", "x:0@2")).cells
    assert [cell.row for cell in cells] == ["0->1", "1->2", "2->0"]


@pytest.mark.parametrize("name", ORDER)
def test_one_process_is_not_enough(name):
    for fabric in (over("x:0@0"), over("host:0@0")):
        laid_out = row(name).lay_out(fabric)
        assert (laid_out.cells, laid_out.reason) == ((), "needs two devices; of x, 1 is selected")
    alone = row(name).lay_out(over("x:0", "x:1"))
    assert alone.cells == ()
    assert alone.reason == (
        f"needs several processes, one for each device: mpiexec -n 2 linkgauge run multinode_{name}"
    )
