"""Defines nvbandwidth's 44 tests for one process and its 13 tests for several, whose names, order
and headings are its interface. The headings of the nine that 0.8 does not have are linkgauge's own,
because no output of theirs is public."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.copies import MULTINODE, NVBANDWIDTH, NVBANDWIDTH_0_8
from linkgauge.benchmarks.table import Layout, Row
from linkgauge.cli.tool_options import digits
from linkgauge.model.transfer import Report
from linkgauge.model.units import BANDWIDTH

_PREFIX = "multinode_"
_ENDS = {
    "host_to_device_memcpy": "CPU(row) -> GPU(column)",
    "device_to_host_memcpy": "CPU(row) <- GPU(column)",
    "host_to_device_bidirectional_memcpy": "CPU(row) <-> GPU(column)",
    "device_to_host_bidirectional_memcpy": "CPU(row) <-> GPU(column)",
    "device_to_device_memcpy_read": "GPU(row) -> GPU(column)",
    "device_to_device_memcpy_write": "GPU(row) <- GPU(column)",
    "device_to_device_bidirectional_memcpy_read": "GPU(row) <-> GPU(column)",
    "device_to_device_bidirectional_memcpy_write": "GPU(row) <-> GPU(column)",
    "all_to_host_memcpy": "CPU(row) <- GPU(column)",
    "all_to_host_bidirectional_memcpy": "CPU(row) <-> GPU(column)",
    "host_to_all_memcpy": "CPU(row) -> GPU(column)",
    "host_to_all_bidirectional_memcpy": "CPU(row) <-> GPU(column)",
    "all_to_one_write": "GPU(row) <- GPU(column)",
    "all_to_one_read": "GPU(row) -> GPU(column)",
    "one_to_all_write": "GPU(row) -> GPU(column)",
    "one_to_all_read": "GPU(row) <- GPU(column)",
}
"""What stands between the engine and the unit in the heading of a copy, by the test's name without
the engine."""
_BETWEEN = f"{_PREFIX}device_to_device_"
_HEADINGS = {
    "host_device_latency_sm": "memory latency SM CPU(row) <-> GPU(column) (ns)",
    "device_to_device_latency_sm": "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)",
    "device_to_device_latency_tma": "Device to Device Latency TMA GPU(row) <-> GPU(column) (ns)",
    "device_local_copy": "memcpy local GPU(column) bandwidth (GB/s)",
    "device_local_copy_sm": "memcpy local SM GPU(column) bandwidth (GB/s)",
    "device_local_read_sm": "memcpy local SM read GPU(column) bandwidth (GB/s)",
    "device_local_write_sm": "memcpy local SM write GPU(column) bandwidth (GB/s)",
    "device_local_copy_tma": "memcpy local TMA GPU(column) bandwidth (GB/s)",
    f"{_BETWEEN}all_to_one_write_sm": "memcpy SM All Gpus -> GPU(column) total bandwidth (GB/s)",
    f"{_BETWEEN}all_from_one_read_sm": "memcpy SM All Gpus <- GPU(column) total bandwidth (GB/s)",
    f"{_BETWEEN}broadcast_one_to_all_sm":
        "multicast SM GPU(column) -> All Gpus total bandwidth (GB/s)",
    f"{_BETWEEN}broadcast_all_to_all_sm": "multicast SM All -> All Gpus total bandwidth (GB/s)",
    f"{_PREFIX}bisect_write_ce": "Bisect benchmarking, simultaneous write CE BW",
}  # fmt: skip


class Testcase(msgspec.Struct, frozen=True):
    """The title of `row` describes it in the list of tests. `heading` is above its matrix, or above
    the total."""

    row: Row
    heading: str

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def row_with_local_copies(self) -> Row:
        """Within a device, for copies between pairs of devices in one process."""
        pairs = self.row.layout is Layout.PAIRS and not self.row.across_ranks
        return replace(self.row, diagonal=pairs and self.row.unit is BANDWIDTH)


def _case(row: Row) -> Testcase:
    if row.report is Report.TOTAL:
        row = replace(row, report=Report.SPAN)
    if (heading := _HEADINGS.get(row.name)) is None:
        name, _, kind = row.name.removeprefix(_PREFIX).rpartition("_")
        total = "Total " if row.parts else ""
        heading = f"memcpy {kind.upper()} {_ENDS[name]} {total}bandwidth (GB/s)"
    return Testcase(row, heading)


CASES = tuple(map(_case, NVBANDWIDTH))
CASES_0_8 = tuple(map(_case, NVBANDWIDTH_0_8))
OF_SEVERAL = tuple(map(_case, MULTINODE))
BY_NAME = {case.name: case for case in (*CASES, *OF_SEVERAL)}


def hint(command: str, asked: str) -> str:
    """How to run a test that needs several processes; empty for other tests."""
    if not any(case.name.startswith(asked) for case in OF_SEVERAL):
        return ""
    return (
        " (multinode tests need a process for each device: "
        f"mpirun -n 2 linkgauge as {command} {asked})"
    )


def find(asked: str, cases: Sequence[Testcase]) -> Testcase | str:
    """By name or index; the reason if it is not among `cases`."""
    if (index := digits(asked)) is not None:
        return cases[index] if index < len(cases) else f"Testcase index {asked} out of bound!"
    case = BY_NAME.get(asked)
    return case if case is not None and case in cases else f"Testcase {asked} not found!"
