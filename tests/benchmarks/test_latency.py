"""Which paths and sizes latencies of devices are measured over."""

import pytest

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.latency import FEW_SIZES, SIZES
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.model.machine import Device, Node

ROW = CATALOG["latency_copy_pingpong"]


def over(count, profile=None, sizes=()):
    devices = tuple(
        Device(memory=f"x:{n}", model="m", memory_bytes=1, largest_buffer=1, near=n % 2)
        for n in range(count)
    )
    return ROW.lay_out(
        DeviceSet("x", (Node(0, (0,)), Node(1, (1,))), devices, None, profile, sizes)
    )


@pytest.mark.parametrize(
    ("profile", "sizes", "pairs"),
    [("standard", FEW_SIZES, ["0-1", "0-2"]),
     ("full", SIZES, ["0-1", "0-2", "1-0", "1-2", "2-0", "2-1"])],
)  # fmt: skip
def test_each_device_with_its_near_node_and_pairs_of_devices_by_size(profile, sizes, pairs):
    laid_out = over(3, profile)
    rows = list(dict.fromkeys(cell.row for cell in laid_out.cells))
    assert rows == ["host:0-0", "host:1-1", "host:0-2", *pairs]
    for row in rows:
        cells = [cell for cell in laid_out.cells if cell.row == row]
        assert [cell.transfers[0].scale for cell in cells] == list(sizes)
        assert {cell.operation for cell in cells} == {"copy-ping-pong"}
        assert {cell.transfers[0].engine.kind for cell in cells} == {"ce"}
    assert laid_out.size == 1
    assert laid_out.unit.symbol == "s"


def test_sizes_are_from_one_byte_to_a_mebibyte():
    assert (SIZES[0], SIZES[-1]) == (FEW_SIZES[0], FEW_SIZES[-1]) == (1, 1 << 20)
    assert set(FEW_SIZES) < set(SIZES)


@pytest.mark.parametrize(
    ("asked", "measured"),
    [((64, 100), (64, 100)), ((1 << 29,), FEW_SIZES), ((64, 1 << 29), (64,))],
)
def test_sizes_that_are_asked_for_are_measured_as_far_as_latency_counts(asked, measured):
    assert [c.transfers[0].scale for c in over(1, sizes=asked).cells] == list(measured)


def test_one_device_alone_has_its_host_and_none_has_no_cells():
    assert {cell.row for cell in over(1).cells} == {"host:0-0"}
    none = over(0)
    assert none.cells == ()
    assert none.reason
