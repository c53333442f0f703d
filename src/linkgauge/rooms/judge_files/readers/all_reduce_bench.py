"""Reads the table of all_reduce_bench.py (ml-engineering): payload, busbw and algbw. Their ratio
tells how many ranks took part."""

from __future__ import annotations

import re

from ..lines import DECIMAL
from ..scan import TextScan
from .nccl import TableRow, called, ranks_by_speeds

_HEAD = re.compile(r"\s*\| *payload *\| *busbw *\| *algbw *\|")
_ROW = re.compile(rf"\s*\| *({DECIMAL})([KMGT]?i?B) *\| *({DECIMAL})GBps *\| *({DECIMAL})GBps *\|")
_RULE = re.compile(r"\s*\|[ :|-]+\|\s*$")
_PREFIXES = ("B", "KiB", "MiB", "GiB", "TiB")


def _read(seen: TextScan) -> None:
    if not seen.has(_HEAD):
        return
    rows = list[TableRow]()
    for _, match in seen.each(_HEAD, _ROW, _RULE):
        if match.re is not _ROW or match[2] not in _PREFIXES:
            continue
        size = round(float(match[1]) * 1024 ** _PREFIXES.index(match[2]))
        bus, algorithm = float(match[3]), float(match[4])
        if size and algorithm:
            seconds = size / algorithm / 1e9
            speeds = (algorithm, bus)
            rows.append(TableRow(size, "float", "sum", None, (seconds, None), speeds=speeds))
    count = ranks_by_speeds("all_reduce", [row.speeds for row in rows])
    for row in rows:
        seen.figures += called("all_reduce", row, count)
    seen.log("all_reduce_bench")


READERS = (_read,)
