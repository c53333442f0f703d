"""The 13 multinode tests of nvbandwidth 0.10 (multinode_testcases.cpp), and a ping-pong."""

from __future__ import annotations

from linkgauge.model.operations.operation import OperationName
from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY

from .table import FLAG_BYTES, Layout, Row

_PREFIX = "multinode_"

# name, title, layout, the cell, report, parts
_PAIRS: tuple[tuple[str, str, str, Report, tuple[str, ...]], ...] = (
    ("memcpy_read", "device(row) <- device(column)", "c -> r by r.K", Report.FIRST, ()),
    ("memcpy_write", "device(row) -> device(column)", "r -> c by r.K", Report.FIRST, ()),
    ("bidirectional_memcpy_read", "device(row) <-> device(column)",
     "c -> r by r.K & r -> c by c.K", Report.SUM, ("read1", "read2")),
    ("bidirectional_memcpy_write", "device(row) <-> device(column)",
     "c -> r by c.K & r -> c by r.K", Report.SUM, ("write1", "write2")),
)  # fmt: skip


def _row(
    name: str,
    title: str,
    layout: Layout,
    cell: str,
    report: Report = Report.SUM,
    *,
    operation: OperationName = "copy",
    parts: tuple[str, ...] = (),
) -> Row:
    return Row(
        _PREFIX + name, title, layout, cell, report,
        operation=operation, parts=parts, profiles=(), across_ranks=True,
    )  # fmt: skip


MULTINODE: tuple[Row, ...] = (
    *(
        _row(
            f"device_to_device_{name}_{kind}",
            f"memcpy {kind.upper()} {title} of other processes",
            Layout.PAIRS,
            cell.replace(".K", f".{kind}"),
            report,
            parts=parts,
        )
        for kind in ("ce", "sm")
        for name, title, cell, report, parts in _PAIRS
    ),
    _row("device_to_device_all_to_one_write_sm", "memcpy SM all others -> device(column), sum",
         Layout.ALL_DEVICES, "e -> d by e.sm"),
    _row("device_to_device_all_from_one_read_sm", "memcpy SM all others <- device(column), sum",
         Layout.ALL_DEVICES, "d -> e by e.sm"),
    _row("device_to_device_broadcast_one_to_all_sm", "multicast SM device(column) -> all others",
         Layout.ALL_DEVICES, "d -> e by d.sm", Report.FIRST, operation="broadcast"),
    _row("device_to_device_broadcast_all_to_all_sm", "multicast SM all -> all others, sum",
         Layout.TOGETHER, "d -> e by d.sm", operation="broadcast"),
    _row("bisect_write_ce", "memcpy CE device i -> device i + n/2 modulo n, all n at once",
         Layout.HALVES, "d -> e by d.ce", Report.FIRST),
)  # fmt: skip

PING_PONG = Row(
    _PREFIX + "latency_flag_pingpong",
    "half the round trip of a flag, device(row) -> device(column)",
    Layout.PAIRS, "r -> c by r.sm", Report.LATENCY, LATENCY, "flag-ping-pong", size=FLAG_BYTES,
    profiles=(), across_ranks=True,
)  # fmt: skip

BETWEEN_PROCESSES = (*MULTINODE, PING_PONG)
