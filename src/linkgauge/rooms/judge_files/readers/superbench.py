"""Reads SuperBench's results-summary.jsonl: a line of JSON for each node. Rates are in GB/s."""

from __future__ import annotations

import re
from collections.abc import Mapping

from linkgauge.model.operations.collective import bus_factor

from ..facts import MIB, copied
from ..scan import TextScan
from .nccl import NAMES, Call, note, ranks_by_speeds
from .network_tools import loopback

_COPY = re.compile(r"mem-bw/(H2D|D2H|D2D)_Mem_BW:(\d{1,3})")
_CALL = re.compile(r"[nr]ccl-bw.{0,40}/(\w{4,20}?)_(\d{1,15})_(busbw|algbw):0")
_LOOPBACK = re.compile(r"ib-loopback.{0,40}/IB_(write|read|send)_(\d{1,13})_Avg_(\d{1,3}):\d{1,3}")
_SIZE = 64 * MIB
_LEFT = "left out: nodes are judged one by one, so give the line of each alone"


def _read(seen: TextScan) -> None:
    nodes = [one for one in seen.documents("node") if any("/" in key for key in one)]
    if not nodes:
        return
    numbers = {
        key: float(value)
        for key, value in nodes[0].items()
        if isinstance(value, int | float) and 0 < value < 1e12
    }
    found = [(match, rate) for key, rate in numbers.items() if (match := _COPY.fullmatch(key))]
    for match, rate in found:
        place = int(match[2])
        source, to = (None if end == "H" else place for end in (match[1][0], match[1][2]))
        seen.figures.append(copied(source, to, rate, _SIZE))
    for key, rate in numbers.items():
        if match := _LOOPBACK.fullmatch(key):
            seen.figures.append(loopback(match[1], int(match[2]), rate, f"adapter {match[3]}"))
    _calls(seen, numbers, len({match[2] for match, _ in found}))
    seen.remarks += [f"{len(nodes) - 1} more nodes {_LEFT}"] if len(nodes) > 1 else []
    seen.log("SuperBench", hosts=(str(nodes[0]["node"])[:80],))


def _calls(seen: TextScan, numbers: Mapping[str, float], devices: int) -> None:
    """Both rates tell the number of ranks, else all devices take part."""
    rates = dict[tuple[str, int], dict[str, float]]()
    for key, rate in numbers.items():
        if match := _CALL.fullmatch(key):
            rates.setdefault((match[1], int(match[2])), {})[match[3]] = rate
    for (word, size), both in rates.items():
        name, bus = NAMES.get(word.replace("_", "")), both.get("busbw", 0.0)
        if name is None or not bus or not size:
            continue
        call = Call(size, "float", "sum", 0, 1.0, algbw=both.get("algbw", 0.0), busbw=bus)
        if (ranks := ranks_by_speeds(name, [call]) or devices) > 1:
            seconds = size * bus_factor(name, ranks) / bus / 1e9
            note(seen, name, [call._replace(seconds=seconds)], ranks)


READERS = {_read: ('"node"',)}
