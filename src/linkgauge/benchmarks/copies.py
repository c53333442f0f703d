"""The 44 single-node tests of nvbandwidth 0.10 in its order, and host copies.

In the text of a cell, d is the column's device, e stands for every other device, h is the host node
near a device, and K the kind of engine. In a matrix, r is the row's device or node, c the column's.
`by x` names the device that moves the bytes, with its copy engine (`ce`) or a kernel (`sm`): the
destination in a read, the source in a write. Interfering copies move twice the bytes, to run longer
than the measured copy. Sources: testcases_ce.cpp, testcases_sm.cpp of 0.8, and `--list` of 0.10."""

from __future__ import annotations

from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY

from .table import Layout, Profile, Row

CHASE_SIZE = 2 << 20
"""The size of a pointer chase in bytes, as in nvbandwidth."""

_H2D = "host(row) -> device(column)"
_D2H = "host(row) <- device(column)"
_BOTH = "host(row) <-> device(column)"

# name, title, layout, the cell by copy engines, the cell by kernels (None: the same), report, parts
_COPIES: tuple[tuple[str, str, Layout, str, str | None, Report, tuple[str, ...]], ...] = (
    ("host_to_device_memcpy", _H2D, Layout.EACH_DEVICE,
     "h -> d by d.K", None, Report.FIRST, ()),
    ("device_to_host_memcpy", _D2H, Layout.EACH_DEVICE,
     "d -> h by d.K", None, Report.FIRST, ()),
    ("host_to_device_bidirectional_memcpy", _BOTH, Layout.EACH_DEVICE,
     "h -> d by d.K & d -> h by d.K x2", "h <-> d by d.K", Report.FIRST, ()),
    ("device_to_host_bidirectional_memcpy", _BOTH, Layout.EACH_DEVICE,
     "d -> h by d.K & h -> d by d.K x2", "d <-> h by d.K", Report.FIRST, ()),
    ("device_to_device_memcpy_read", "device(row) <- device(column)", Layout.PAIRS,
     "c -> r by r.K", None, Report.FIRST, ()),
    ("device_to_device_memcpy_write", "device(row) -> device(column)", Layout.PAIRS,
     "r -> c by r.K", None, Report.FIRST, ()),
    ("device_to_device_bidirectional_memcpy_read", "device(row) <-> device(column)", Layout.PAIRS,
     "c -> r by r.K & r -> c by c.K", None, Report.SUM, ("read1", "read2")),
    ("device_to_device_bidirectional_memcpy_write", "device(row) <-> device(column)", Layout.PAIRS,
     "c -> r by c.K & r -> c by r.K", None, Report.SUM, ("write1", "write2")),
    ("all_to_host_memcpy", "host(row) <- device(column), all others at once", Layout.OTHERS,
     "d -> h by d.K & e -> h by e.K x2", None, Report.FIRST, ()),
    ("all_to_host_bidirectional_memcpy",
     "host(row) <- device(column), all others at once, both ways", Layout.OTHERS,
     "d -> h by d.K & h -> d by d.K x2 & e -> h by e.K x2 & h -> e by e.K x2",
     "d <-> h by d.K & e <-> h by e.K", Report.FIRST, ()),
    ("host_to_all_memcpy", "host(row) -> device(column), all others at once", Layout.OTHERS,
     "h -> d by d.K & h -> e by e.K x2", None, Report.FIRST, ()),
    ("host_to_all_bidirectional_memcpy",
     "host(row) -> device(column), all others at once, both ways", Layout.OTHERS,
     "h -> d by d.K & d -> h by d.K x2 & h -> e by e.K x2 & e -> h by e.K x2",
     "h <-> d by d.K & h <-> e by e.K", Report.FIRST, ()),
    ("all_to_one_write", "all others -> device(column), written by the sources",
     Layout.ALL_DEVICES, "e -> d by e.K", None, Report.TOTAL, ()),
    ("all_to_one_read", "device(column) -> all others", Layout.ALL_DEVICES,
     "d -> e by e.K", "d -> e by d.K", Report.TOTAL, ()),
    ("one_to_all_write", "device(column) -> all others, written by the source",
     Layout.ALL_DEVICES, "d -> e by d.K", None, Report.TOTAL, ()),
    ("one_to_all_read", "all others -> device(column)", Layout.ALL_DEVICES,
     "e -> d by d.K", "e -> d by e.K", Report.TOTAL, ()),
)  # fmt: skip


def _engine_rows(kind: str) -> tuple[Row, ...]:
    return tuple(
        Row(
            f"{name}_{kind}",
            f"memcpy {kind.upper()} {title}",
            layout,
            ((by_kernel if kind == "sm" else None) or by_copy_engine).replace(".K", f".{kind}"),
            report,
            parts=parts,
        )
        for name, title, layout, by_copy_engine, by_kernel, report, parts in _COPIES
    )


_FULL: tuple[Profile, ...] = ("full",)


def _bulk(name: str, title: str, layout: Layout, cell: str, parts: tuple[str, ...] = ()) -> Row:
    """Returns a test of the GPU's bulk copy unit (NVIDIA's TMA), which kernels control."""
    return Row(
        f"{name}_tma",
        f"memcpy TMA {title}",
        layout,
        cell.replace(".K", ".sm"),
        Report.SUM if parts else Report.FIRST,
        operation="bulk-copy",
        parts=parts,
        profiles=_FULL,
    )


NVBANDWIDTH: tuple[Row, ...] = (
    *_engine_rows("ce"),
    *_engine_rows("sm"),
    Row("host_device_latency_sm", "latency SM host(row) <- device(column)", Layout.EACH_DEVICE,
        "h -> null by d.sm", Report.LATENCY, LATENCY, "chase", size=CHASE_SIZE),
    Row("device_to_device_latency_sm", "latency SM device(row) <- device(column)", Layout.PAIRS,
        "c -> null by r.sm", Report.LATENCY, LATENCY, "chase", size=CHASE_SIZE),
    *(_bulk(name, title, layout, cell, parts)
      for name, title, layout, cell, _, _, parts in _COPIES if layout is Layout.PAIRS),
    Row("device_local_copy", "memcpy CE within device(column)", Layout.EACH_DEVICE,
        "d -> d by d.ce"),
    Row("device_local_copy_sm", "memcpy SM within device(column)", Layout.EACH_DEVICE,
        "d -> d by d.sm", profiles=_FULL),
    Row("device_local_read_sm", "read SM of device(column)", Layout.EACH_DEVICE,
        "d -> null by d.sm", profiles=_FULL),
    Row("device_local_write_sm", "write SM of device(column)", Layout.EACH_DEVICE,
        "null -> d by d.sm", profiles=_FULL),
    Row("device_to_device_latency_tma", "latency TMA device(row) <- device(column)", Layout.PAIRS,
        "c -> null by r.sm", Report.LATENCY, LATENCY, "bulk-chase", size=CHASE_SIZE,
        profiles=_FULL),
    _bulk("device_local_copy", "within device(column)", Layout.EACH_DEVICE, "d -> d by d.K"),
)  # fmt: skip
WITH_HOST = tuple(row for row in NVBANDWIDTH if "host" in row.name)
BETWEEN_DEVICES = tuple(row for row in NVBANDWIDTH if "host" not in row.name)
_LATER = ("device_local_copy_sm", "device_local_read_sm", "device_local_write_sm")
NVBANDWIDTH_0_8 = tuple(
    row for row in NVBANDWIDTH if not row.name.endswith("_tma") and row.name not in _LATER
)
"""The tests that nvbandwidth 0.8 and 0.9 have, in their order."""

HOST: tuple[Row, ...] = (
    Row("host_to_host_memcpy_read_cpu", "read CPU threads of node(row) <- memory of node(column)",
        Layout.NODES, "c -> null by r.cpu"),
    Row("host_to_host_memcpy_write_cpu", "write CPU threads of node(row) -> memory of node(column)",
        Layout.NODES, "null -> c by r.cpu"),
    Row("host_to_host_memcpy_copy_cpu", "memcpy CPU node(row) -> node(column)",
        Layout.NODES, "r -> c by r.cpu"),
)  # fmt: skip
