"""Reads rocm-smi --showtopo (and amd-smi topology, which has the same tables): kinds of links, hops
and NUMA nodes. Reads also the names of --showproductname."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec.structs import replace

from ..told import Facts, Found, ToldGpu

_TABLE = re.compile(r"(Weight|Hops|Link Type) between two GPUs")
_ROW = re.compile(r"GPU(\d{1,3})\s+(.*)")
_NODE = re.compile(r"GPU\[(\d{1,3})\]\s*: \(Topology\) Numa Node: (-?\d{1,3})")
_NAME = re.compile(r"GPU\[(\d{1,3})\]\s*: Card (?:series|Series|model|Model):\s+(.{2,80})")
_KNOWN = re.compile(r"=+|\s*GPU\d+(?:\s+GPU\d+)*\s*$|GPU\[\d+\]|={3,} ")


def read(lines: Sequence[str]) -> Found | None:
    if not any(_TABLE.search(line) or _NODE.match(line) or _NAME.match(line) for line in lines):
        return None
    gpus, joins, used, table = dict[int, ToldGpu](), dict[tuple[int, int], str](), set[int](), ""
    for number, line in enumerate(lines):
        if match := _TABLE.search(line):
            table = match[1]
        elif match := _NODE.match(line):
            node = int(match[2])
            own = gpus.get(int(match[1]), ToldGpu())
            gpus[int(match[1])] = replace(own, node=node if node >= 0 else None)
        elif match := _NAME.match(line):
            own = gpus.get(int(match[1]), ToldGpu())
            gpus[int(match[1])] = replace(own, model=own.model or match[2].strip())
        elif (match := _ROW.match(line)) and not match[2].startswith("GPU"):
            one = int(match[1])
            gpus.setdefault(one, ToldGpu())
            for other, kind in enumerate(match[2].split()[:64]) if table == "Link Type" else ():
                if other > one:
                    joins[one, other] = "XGMI" if kind == "XGMI" else "NODE"
        elif not _KNOWN.match(line):
            continue
        used.add(number)
    return Found(facts=Facts(gpus=gpus, joins=joins), lines=frozenset(used))
