"""What the fabric of one machine carries when all of its devices copy at the same time: each to
every other, each to the other of its pair, and each across the middle.

Each has one cell, whose headline is the total; every copy's own rate is measured with it. The
notation is that of copies.py; o is the device that comes half of all further on, p the other of the
pair. Source of the definitions: TransferBench's preset `a2a` (between all pairs of devices, by the
source, or with USE_REMOTE_READ by the destination; src/client/Presets/AllToAll.hpp) and
nvbandwidth 0.8's multinode_bisect_write_ce.
"""

from __future__ import annotations

from linkgauge.model.transfer import Report

from .table import Layout, Row

# name, title, the cell
_AT_ONCE: tuple[tuple[str, str, str], ...] = (
    ("all_to_all_write", "every device -> all others by it", "d -> e by d.K"),
    ("all_to_all_read", "every device <- all others by it", "e -> d by d.K"),
    ("disjoint_pairs_write", "devices 0 <-> 1, 2 <-> 3 …", "d -> p by d.K"),
    ("bisect_write", "every device -> the one half of all further on", "d -> o by d.K"),
)

WITHIN_NODE: tuple[Row, ...] = tuple(
    Row(
        f"{name}_{kind}",
        f"memcpy {kind.upper()} {title}, all at once, total",
        Layout.TOGETHER,
        cell.replace(".K", f".{kind}"),
        Report.TOTAL,
        profiles=("full",),
    )
    for kind in ("ce", "sm")
    for name, title, cell in _AT_ONCE
)
