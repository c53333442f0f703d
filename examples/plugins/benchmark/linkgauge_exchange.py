"""A benchmark is a row: its name, its title, the layout of its matrix, and the transfers of one
cell. In a layout over NUMA nodes, r is the row's node and c the column's.

The figure is the sum of both directions in bytes/s. Each direction counts the bytes that it copies
once. The clock starts before the first copy and stops after the last one."""

from linkgauge.benchmarks.table import Layout, Row
from linkgauge.model.transfer import Report

ROWS = (
    Row(
        "host_exchange_cpu",
        "memcpy CPU node(row) -> node(column) and back, at the same time",
        Layout.NODES,
        "r -> c by r.cpu & c -> r by c.cpu",
        report=Report.TOTAL,
        profiles=("standard", "full"),
    ),
)
