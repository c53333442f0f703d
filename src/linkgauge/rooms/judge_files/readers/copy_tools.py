"""Reads small tools for copies: gdrcopy_copybw, ze_bandwidth and ze_peer of Intel's
level-zero-tests, and gdsio and fio, whose ends are a memory and storage."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..lines import DECIMAL
from ..scan import TextScan
from ..told import MIB, HostFigure, ToldFigure, ToldGpu, copied

_UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30}

_GDR_DEVICE = re.compile(r"GPU id:(\d{1,3}); name: (.{2,80}?); Bus id: (\S{4,16})")
_GDR_CHOSEN = re.compile(r"selecting device (\d{1,3})")
_GDR_TEST = re.compile(r"(writing|reading) test, size=(\d{1,14}) ")
_GDR_RATE = re.compile(rf"(write|read) BW: ({DECIMAL}) ?MB/s")
_GDR_MORE = re.compile(
    r"testing size: |rounded size: |device ptr: |map_d_ptr: |info\.|page offset: |user-space p|"
    r"gpu alloc fn: |(?:un)?mapping |(?:un)?pinning |closing gdrdrv|buf_ptr"
)


def _gdrcopy(seen: TextScan) -> None:
    """Reads gdrcopy_copybw: copies by a CPU through the window of a GPU's memory. Its MB are MiB.
    What a CPU reaches there is known of no product."""
    device, size = "0", MIB
    if not seen.has(_GDR_RATE):
        return
    for _, match in seen.each(_GDR_DEVICE, _GDR_CHOSEN, _GDR_TEST, _GDR_RATE, _GDR_MORE):
        if match.re is _GDR_DEVICE:
            seen.gpus[int(match[1])] = ToldGpu(match[2].strip())
        elif match.re is _GDR_CHOSEN:
            device = match[1]
        elif match.re is _GDR_TEST:
            size = max(int(match[2]), 1)
        elif match.re is _GDR_RATE:
            name, rate = f"gdrcopy_{match[1]}", float(match[2]) * 2**20
            work = "host:0 -> null by host:0.cpu" if match[1] == "write" else _TO_HOST
            place = "all", f"gpu {device}"
            seen.figures.append(ToldFigure(name, *place, rate, size, host=HostFigure(work)))
    seen.log("gdrcopy_copybw")


_TO_HOST = "null -> host:0 by host:0.cpu"

_ZE_NAME = re.compile(r"\s*Device +(\d{1,3}): +(\S.{2,80})")
_ZE_COPY = re.compile(
    r"\s*(Host|Device\[\d{1,3}\])->(Host|Device\[\d{1,3}\]) .{0,30}?\[\s*(\d{1,14})(?: bytes)?\]"
    rf".{{0,20}}?BW = +({DECIMAL}) GB"
)
_ZE_PEER = re.compile(
    r"\s*(Unidirectional|Bidirectional) Bandwidth P2P (Write|Read): "
    r"Device\( ?(\d{1,3}) ?\) ?-> ?Device\( ?(\d{1,3}) ?\)"
)
_ZE_ROW = re.compile(rf"\s*(\d{{1,14}})\s+({DECIMAL})\s*$")
_ZE_OTHER = re.compile(r"\s*\S.*\b(?:Latency|LATENCY)\b.*P2P")
_ZE_MORE = re.compile(r"\s*(?:[-=]+$|Size\[B\]|Iterations per|[A-Z-]+ BANDWIDTH AND LATENCY)")


def _level_zero(seen: TextScan) -> None:
    """Reads ze_bandwidth and ze_peer. Of a table of sizes, the best rate counts."""
    best = dict[tuple[object, ...], ToldFigure]()
    title: re.Match[str] | None = None
    if not seen.has(_ZE_COPY, _ZE_PEER):
        return
    for _, match in seen.each(_ZE_NAME, _ZE_COPY, _ZE_PEER, _ZE_OTHER, _ZE_ROW, _ZE_MORE):
        if match.re is _ZE_NAME:
            seen.gpus[int(match[1])] = ToldGpu(match[2].strip())
        elif match.re in (_ZE_PEER, _ZE_OTHER):
            title = match if match.re is _ZE_PEER else None
        elif figure := _ze_figure(match, title):
            key = figure.benchmark, *figure.place
            best[key] = max(best.get(key, figure), figure, key=lambda one: one.figure)
    seen.figures += best.values()
    seen.log("level-zero-tests", vendor="intel")


def _ze_figure(match: re.Match[str], title: re.Match[str] | None) -> ToldFigure | None:
    if match.re is _ZE_COPY:
        ends = [int(end[7:-1]) if "[" in end else None for end in match.group(1, 2)]
        if ends == [None, None]:
            return None
        return copied(ends[0], ends[1], float(match[4]), max(int(match[3]), 1))
    if match.re is not _ZE_ROW or title is None:
        return None
    source, destination, reads = int(title[3]), int(title[4]), title[2] == "Read"
    if reads:  # the first one pulls from the second one
        source, destination = destination, source
    size, both = max(int(match[1]), 1), title[1] == "Bidirectional"
    return copied(source, destination, float(match[2]), size, reads=reads, both=both)


_GDSIO = re.compile(
    r"[#\s]{0,9}IoType: (READ|WRITE|RANDREAD|RANDWRITE) XferType: (\w{1,20}) Threads: (\d{1,5}) .*?"
    rf"IOSize: (\d{{1,12}})\(KiB\) Throughput: ({DECIMAL}) ([KMG]iB)/sec"
)
_FIO = re.compile(rf"\s*(READ|WRITE): bw=({DECIMAL})([KMG]i?)B/s")
_FIO_SIZE = re.compile(r".*?\brw=\w+, bs=\(R\) (\d{1,6})([KMG]i)B")
_FIO_MORE = re.compile(r"Run status group|fio-\d|Starting \d+ |Jobs: ")


def _storage(seen: TextScan) -> None:
    """Reads gdsio and fio. What the storage should reach is unknown."""
    tool = "gdsio" if seen.has(_GDSIO) else "fio"
    size = next((int(int(m[1]) * _UNITS[m[2]]) for _, m in seen.each(_FIO_SIZE)), MIB)
    for _, match in seen.each(_GDSIO, _FIO):
        if match.re is _GDSIO:
            rate = float(match[5]) * _UNITS[match[6][:2]]
            name, column = f"gdsio_{match[1].lower()}_{match[2].lower()}", f"{match[3]} threads"
            seen.figures += _stored(name, match[1], column, rate, int(match[4]) << 10)
        else:
            rate = float(match[2]) * _UNITS[match[3]]
            seen.figures += _stored(f"fio_{match[1].lower()}", match[1], "all", rate, size)
    if seen.figures:
        seen.used.update(number for number, _ in seen.each(_FIO_MORE))
    seen.log(tool)


def _stored(name: str, kind: str, column: str, rate: float, size: int) -> Iterator[ToldFigure]:
    work = _TO_HOST if "READ" in kind else "host:0 -> null by host:0.cpu"
    yield ToldFigure(name, "all", column, rate, max(size, 1), host=HostFigure(work))


_CL_DEVICE = re.compile(r"\s*Device: +(\S.{1,80})")
_CL_RATE = re.compile(rf"\s*enqueue(Write|Read)Buffer\s*: ({DECIMAL})\s*$")


def _clpeak(seen: TextScan) -> None:
    """Reads clpeak's copies with the host. What moves them is not said: a driver may copy with the
    CPU, and a device may share the host's memory, so no link is held against them."""
    device = -1
    for _, match in seen.each(_CL_RATE, _CL_DEVICE) if seen.has(_CL_RATE) else ():
        if match.re is _CL_DEVICE:
            device += 1
            continue
        work = "host:0 -> null by host:0.cpu" if match[1] == "Write" else _TO_HOST
        place = f"clpeak_{match[1].lower()}", "all", f"device {max(device, 0)}"
        rate = float(match[2]) * 1e9
        seen.figures.append(ToldFigure(*place, rate, _CL_BUFFER, host=HostFigure(work)))
    seen.log("clpeak")


_CL_BUFFER = 1 << 29
"""The largest buffer that it copies, unless the device has less memory."""

READERS = {
    _gdrcopy: ("BW: ",),
    _level_zero: ("BW = ", "Bandwidth P2P"),
    _storage: ("XferType", "bw="),
    _clpeak: ("enqueue",),
}
