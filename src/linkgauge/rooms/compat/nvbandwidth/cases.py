"""Defines nvbandwidth's 44 tests for one process and 13 for several. Nine tests are newer than 0.8,
and no output of them is public, so their headings are linkgauge's own."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.copies import NVBANDWIDTH, NVBANDWIDTH_0_8
from linkgauge.benchmarks.processes import MULTINODE
from linkgauge.benchmarks.table import Layout, Row
from linkgauge.cli.tool_options import digits
from linkgauge.model.transfer import Report
from linkgauge.model.units import BANDWIDTH

_READ = "Read: the device of the row pulls from the device of the column."
_WRITE = "Write: the device of the row pushes to the device of the column."
_PAIRS = "Bandwidth between each pair of devices that reach each other."
_PAIRS_BOTH = "Both directions at once between each pair of devices; each of them and their total."
_PREFIX = "multinode_"
_OF_PROCESSES = "Each device belongs to another process."
_TOTAL = "Total bandwidth, from the first copy's start to the last one's end, for each device."

# Rows and columns, with the arrow between them in the heading, and the list text.
_COPIES: dict[str, tuple[str, ...]] = {
    "host_to_device_memcpy": ("CPU -> GPU", "Copy from the host to each device."),
    "device_to_host_memcpy": ("CPU <- GPU", "Copy from each device to the host."),
    "host_to_device_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from the host to each device while another goes back.",
        "Only the way to the device is reported.",
    ),
    "device_to_host_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from each device to the host while another goes back.",
        "Only the way to the host is reported.",
    ),
    "device_to_device_memcpy_read": ("GPU -> GPU", _PAIRS, _READ),
    "device_to_device_memcpy_write": ("GPU <- GPU", _PAIRS, _WRITE),
    "device_to_device_bidirectional_memcpy_read": (
        "GPU <-> GPU", _PAIRS_BOTH, "Read: each device pulls.",
    ),
    "device_to_device_bidirectional_memcpy_write": (
        "GPU <-> GPU", _PAIRS_BOTH, "Write: each device pushes.",
    ),
    "all_to_host_memcpy": (
        "CPU <- GPU", "Copy from one device to the host while all others copy to the host.",
    ),
    "all_to_host_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from one device to the host while all devices copy both ways.",
        "Only that one device's copies to the host are reported.",
    ),
    "host_to_all_memcpy": (
        "CPU -> GPU", "Copy from the host to one device while the host copies to all others.",
    ),
    "host_to_all_bidirectional_memcpy": (
        "CPU <-> GPU", "Copy from the host to one device while all devices copy both ways.",
        "Only the copies to that one device are reported.",
    ),
    "all_to_one_write": ("GPU <- GPU", "All other devices write to one device.", _TOTAL),
    "all_to_one_read": ("GPU -> GPU", "Copies from one device to all others.", _TOTAL),
    "one_to_all_write": ("GPU -> GPU", "One device writes to all others.", _TOTAL),
    "one_to_all_read": ("GPU <- GPU", "Copies from all others to one device.", _TOTAL),
}  # fmt: skip
_BY = {
    "ce": "By copy engines (memcpy calls of the driver).",
    "sm": "By a kernel on the multiprocessors.",
    "tma": "By the bulk copy unit (TMA), which a kernel controls.",
}

_OTHERS: dict[str, tuple[str, ...]] = {
    "host_device_latency_sm": (
        "memory latency SM CPU(row) <-> GPU(column) (ns)",
        "Latency of a device's access to host memory: a pointer chase through 2 MiB.",
        "--bufferSize has no effect.",
    ),
    "device_to_device_latency_sm": (
        "Device to Device Latency SM GPU(row) <-> GPU(column) (ns)",
        "Latency of the row's device reaching memory of the column's: a pointer chase through",
        "2 MiB. --bufferSize has no effect.",
    ),
    "device_to_device_latency_tma": (
        "Device to Device Latency TMA GPU(row) <-> GPU(column) (ns)",
        "Latency of the row's device reaching memory of the column's by the bulk copy unit (TMA):",
        "a pointer chase through 2 MiB. --bufferSize has no effect.",
    ),
    "device_local_copy": (
        "memcpy local GPU(column) bandwidth (GB/s)",
        "Copy between two buffers of the same device, by copy engines.",
    ),
    "device_local_copy_sm": (
        "memcpy local SM GPU(column) bandwidth (GB/s)",
        "Copy between two buffers of the same device, by a kernel.",
    ),
    "device_local_read_sm": (
        "memcpy local SM read GPU(column) bandwidth (GB/s)",
        "A kernel reads a buffer of its own device.",
    ),
    "device_local_write_sm": (
        "memcpy local SM write GPU(column) bandwidth (GB/s)",
        "A kernel writes to a buffer of its own device.",
    ),
    "device_local_copy_tma": (
        "memcpy local TMA GPU(column) bandwidth (GB/s)",
        "Copy between two buffers of the same device, by the bulk copy unit (TMA).",
    ),
    "multinode_device_to_device_all_to_one_write_sm": (
        "memcpy SM All Gpus -> GPU(column) total bandwidth (GB/s)",
        "All other devices write to one device; the sum of their rates.",
    ),
    "multinode_device_to_device_all_from_one_read_sm": (
        "memcpy SM All Gpus <- GPU(column) total bandwidth (GB/s)",
        "All other devices read from one device; the sum of their rates.",
    ),
    "multinode_device_to_device_broadcast_one_to_all_sm": (
        "multicast SM GPU(column) -> All Gpus total bandwidth (GB/s)",
        "One device stores in the memories of all others at once.",
    ),
    "multinode_device_to_device_broadcast_all_to_all_sm": (
        "multicast SM All -> All Gpus total bandwidth (GB/s)",
        "Each device stores in the memories of all others at once; the sum of their rates.",
    ),
    "multinode_bisect_write_ce": (
        "Bisect benchmarking, simultaneous write CE BW",
        "Device i of n writes to device i + n/2 modulo n, all at the same time.",
    ),
}  # fmt: skip
"""The line above the matrix, and the list text, by test."""


class Testcase(msgspec.Struct, frozen=True):
    """A test: its benchmark, the heading of its matrix, and its text in the list of tests."""

    row: Row
    heading: str
    about: tuple[str, ...]

    @property
    def name(self) -> str:
        return self.row.name

    @property
    def row_with_local_copies(self) -> Row:
        pairs = self.row.layout is Layout.PAIRS and not self.row.across_ranks
        return replace(self.row, diagonal=pairs and self.row.unit is BANDWIDTH)


def _case(row: Row) -> Testcase:
    if row.report is Report.TOTAL:
        row = replace(row, report=Report.SPAN)
    processes = (_OF_PROCESSES,) * row.across_ranks
    if row.name in _OTHERS:
        heading, *about = _OTHERS[row.name]
        return Testcase(row, heading, (*about, *processes))
    name, _, kind = row.name.rpartition("_")
    ends, *about = _COPIES[name.removeprefix(_PREFIX)]
    row_label, arrow, column_label = ends.split()
    total = "Total " if row.parts else ""
    between = f"{row_label}(row) {arrow} {column_label}(column)"
    heading = f"memcpy {kind.upper()} {between} {total}bandwidth (GB/s)"
    return Testcase(row, heading, (*about, *processes, _BY[kind]))


CASES = tuple(map(_case, NVBANDWIDTH))
CASES_0_8 = tuple(map(_case, NVBANDWIDTH_0_8))
OF_SEVERAL = tuple(map(_case, MULTINODE))
BY_NAME = {case.name: case for case in (*CASES, *OF_SEVERAL)}


def hint(command: str, asked: str) -> str:
    if not any(case.name.startswith(asked) for case in OF_SEVERAL):
        return ""
    return (
        " (multinode tests need a process for each device: "
        f"mpirun -n 2 linkgauge as {command} {asked})"
    )


def find(asked: str, cases: Sequence[Testcase]) -> Testcase | str:
    """Returns the test with this name or index, or the reason why there is none."""
    if (index := digits(asked)) is not None:
        return cases[index] if index < len(cases) else f"Testcase index {asked} out of bound!"
    case = BY_NAME.get(asked)
    return case if case is not None and case in cases else f"Testcase {asked} not found!"
