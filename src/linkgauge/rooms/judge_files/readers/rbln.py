"""Reads rblnBandwidthLatencyTest: devices with their switches, and matrices, the host first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.machine.tree import ADDRESS

from ..facts import MIB, Bridge, ReportedFigure, ReportedGpu, copied
from ..lines import index_of, number_of
from ..scan import TextScan

_TOOL = "rblnBandwidthLatencyTest"
_DEVICE = re.compile(
    rf"\s*({ADDRESS}) NODE \d+, rbln(\d{{1,3}}), "
    r"([^,(]{2,40}).*?NUMA: (\d{1,2})"
)
_BRIDGE = re.compile(r"\s*(?:\S{6,14}/)?([0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) PCI bridge:")
_TITLE = re.compile(r"\s*Device (?:(Write|Read) bandwidth \(GB/s\)|\S.*\(us\))")
_HEADS = re.compile(r"\s*S\s.*?((?:(?:HOST|rbln\S{0,9})(?:\s+|$))+)")
_ROW = re.compile(r"\s*((?:HOST|rbln\d).*)")
_BANNER = re.compile(r"\s*\[ +(Run|PASS|FAIL) +\] : (RBLN_\w{1,60})")
_SIZE = re.compile(r"\s*\[Measure Buffer Size : 0x([0-9a-fA-F]{1,12})\]")


def _read(seen: TextScan) -> None:
    title, names, first = "", list[str](), 0
    bridges, above = dict[str, Bridge](), tuple[str, ...]()
    size = int(seen.first(_SIZE, "0"), 16) or 512 * MIB
    for _, match in seen.each(_BRIDGE, _DEVICE, _TITLE, _HEADS, _ROW, _BANNER):
        if match.re is _BRIDGE:
            above = (f"0000:{match[1]}",)
            bridges[above[0]] = Bridge(is_switch=True)
        elif match.re is _DEVICE:
            gpu = ReportedGpu(match[3].strip(), match[1], int(match[4]), above=above)
            seen.gpus[int(match[2])] = gpu
        elif match.re is _BANNER:
            if match[1] == "FAIL":
                seen.fail(f"{match[2]}: FAIL", match[2], first)
            first = len(seen.figures)
        elif match.re is _TITLE:
            title, names = match[1] or "", []
        elif match.re is _HEADS:
            names = match[1].split()
        else:  # the name of a row may touch its first figure
            name = max((one for one in names if match[1].startswith(one)), key=len, default="")
            words = match[1].removeprefix(name).split()
            if name and len(words) <= len(names):
                seen.figures += _figures(name, names, words, size, reads=title == "Read")
    seen.log(_TOOL, vendor="rebellions", sure=seen.gpus, bridges=bridges)


def _figures(
    name: str, names: Sequence[str], words: Sequence[str], size: int, *, reads: bool
) -> Iterator[ReportedFigure]:
    """Reading, the column's device pulls from the row's."""
    row, *columns = (index_of(one.removeprefix("rbln")) for one in (name, *names))
    for column, word in zip(columns, words, strict=False):
        if column != row and (rate := number_of(word)):
            yield copied(row, column, rate, size, reads=reads)


READERS = {_read: ("rbln", "RBLN")}
