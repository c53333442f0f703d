"""Reads rocm-smi --showtopo (and amd-smi topology, which has the same tables): kinds of links, hops
and NUMA nodes. Reads also the names of --showproductname."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ..told import Found, TextScan, ToldGpu

_TABLE = re.compile(r".*?(Weight|Hops|Link Type) between two GPUs")
_ROW = re.compile(r"GPU(\d{1,3})\s+(?!GPU)(.*)")
_NODE = re.compile(r"GPU\[(\d{1,3})\]\s*: \(Topology\) Numa Node: (-?\d{1,3})")
_NAME = re.compile(r"GPU\[(\d{1,3})\]\s*: Card (?:series|Series|model|Model):\s+(.{2,80})")
_KNOWN = re.compile(r"=+|\s*GPU\d+(?:\s+GPU\d+)*\s*$|GPU\[\d+\]|={3,} ")


def read(lines: Sequence[str]) -> Found | None:
    if not any(_TABLE.match(line) or _NODE.match(line) or _NAME.match(line) for line in lines):
        return None
    seen, joins, table = TextScan(lines), dict[tuple[int, int], str](), ""
    for _, match in seen.each(_TABLE, _NODE, _NAME, _ROW, _KNOWN):
        if match.re is _TABLE:
            table = match[1]
        elif match.re is not _KNOWN:
            index = int(match[1])
            own = seen.gpus.setdefault(index, ToldGpu())
        if match.re is _NODE:
            node = int(match[2])
            seen.gpus[index] = replace(own, node=node if node >= 0 else None)
        elif match.re is _NAME:
            seen.gpus[index] = replace(own, model=own.model or match[2].strip())
        elif match.re is _ROW and table == "Link Type":
            for other, kind in enumerate(match[2].split()[:64]):
                if other > index:
                    joins[index, other] = "XGMI" if kind == "XGMI" else "NODE"
    return seen.facts(joins=joins)
