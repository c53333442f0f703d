"""Reads collectives of all_reduce_bench.py (ml-engineering) and of Habana's hccl_demo. Both print
the rate on the bus and that of the algorithm, whose ratio tells how many ranks took part."""

from __future__ import annotations

import re
from collections.abc import Sequence

from linkgauge.model.operations.collective import CollectiveName

from ..lines import DECIMAL
from ..scan import TextScan
from .nccl import NAMES, TableRow, called, number_type, ranks_by_speeds

_HEAD = re.compile(r"\s*\| *payload *\| *busbw *\| *algbw *\|")
_ROW = re.compile(rf"\s*\| *({DECIMAL})([KMGT]?i?B) *\| *({DECIMAL})GBps *\| *({DECIMAL})GBps *\|")
_RULE = re.compile(r"\s*\|[ :|-]+\|\s*$")
_PREFIXES = ("B", "KiB", "MiB", "GiB", "TiB")


def _all_reduce_bench(seen: TextScan) -> None:
    if not seen.has(_HEAD):
        return
    rows = list[TableRow]()
    for _, match in seen.each(_HEAD, _ROW, _RULE):
        if match.re is _ROW and match[2] in _PREFIXES:
            size = round(float(match[1]) * 1024 ** _PREFIXES.index(match[2]))
            rows += _row(size, "float", float(match[4]), float(match[3]))
    _add(seen, "all_reduce", rows)
    seen.log("all_reduce_bench")


_DEMO = re.compile(
    r".{0,80}?\[BENCHMARK\] hccl(\w{4,20})\(.{0,20}?data_?[Ss]ize=(\d{1,15}),.*?dtype=(\w{1,10})"
)
_DEMO_RATE = re.compile(
    rf".{{0,80}}?\[BENCHMARK\]\s+(NW|Algo) Bandwidth\s*: ({DECIMAL}) ([KMG]?)B/s"
)


def _hccl_demo(seen: TextScan) -> None:
    """Reads hccl_demo. Each test is three lines: what it is, then both rates."""
    test: re.Match[str] | None = None
    rates = dict[str, float]()
    for _, match in seen.each(_DEMO, _DEMO_RATE):
        if match.re is _DEMO:
            test, rates = match, {}
            continue
        rates[match[1]] = float(match[2]) * 1e3 ** ("KMG".find(match[3] or "?") - 2)
        name = NAMES.get(test[1].lower()) if test is not None else None
        if test is not None and name is not None and len(rates) == 2:
            _add(seen, name, _row(int(test[2]), test[3], rates["Algo"], rates["NW"]))
    seen.log("hccl_demo", vendor="habana")


def _row(size: int, kind: str, algorithm: float, bus: float) -> list[TableRow]:
    """Returns the line of a table with these rates in GB/s, if they are rates of any numbers."""
    number = number_type(kind)
    if not size or not algorithm or number is None:
        return []
    seconds = (size / algorithm / 1e9, None)
    return [TableRow(size, number, "sum", 0, seconds, speeds=(algorithm, bus))]


def _add(seen: TextScan, name: CollectiveName, rows: Sequence[TableRow]) -> None:
    count = ranks_by_speeds(name, [row.speeds for row in rows])
    for row in rows:
        seen.figures += called(name, row, count)


READERS = {_all_reduce_bench: ("payload",), _hccl_demo: ("[BENCHMARK]",)}
