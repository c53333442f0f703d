"""Reads CUDA's samples bandwidthTest and p2pBandwidthLatencyTest.

The figures of copies within a device count the bytes read and written; a copy moves half of
them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from linkgauge.benchmarks.table import Layout, Row
from linkgauge.model.transfer import Report

from ..lines import DECIMAL, Grid, grid_at
from ..told import Facts, Found, TextScan, ToldFigure, ToldGpu, copied

_GB, _LOCAL = 1e9, "device_local_copy"
_STAGED = Row(
    "device_to_device_memcpy_staged", "memcpy CE device(row) -> device(column) without P2P",
    Layout.PAIRS, "r -> c by r.ce",
)  # fmt: skip
_STAGED_BOTH = Row(
    "device_to_device_bidirectional_memcpy_staged",
    "memcpy CE device(row) <-> device(column) without P2P",
    Layout.PAIRS, "r -> c by r.ce & c -> r by c.ce", Report.SUM,
)  # fmt: skip

# p2pBandwidthLatencyTest.

_PEER_SIZE = 40_000_000 * 4
_DEVICE = re.compile(
    r"\s*Device: (\d{1,3}), (.{1,100}?), pciBusID: ([0-9a-f]{1,2}), pciDeviceID: ([0-9a-f]{1,2}), "
    r"pciDomainID: ?([0-9a-f]{1,4})"
)
_ACCESS = re.compile(r"\s*Device=(\d{1,3}) (CAN|CANNOT) Access Peer Device=(\d{1,3})")
_TITLE = re.compile(
    r"\s*(Unidirectional|Bidirectional) P2P=(Enabled|Disabled) Bandwidth"
    r" (?:\(P2P (Writes|Reads)\) )?Matrix"
)
_OTHER = re.compile(
    r"\s*(?:P2P Connectivity Matrix|P2P=(?:Enabled|Disabled) Latency .*Matrix|\*\*\*NOTE"
    r"|So you can see lesser"
    r"|NOTE: The CUDA Samples|\[P2P \(Peer)"
)


def read(lines: Sequence[str]) -> Found | None:
    peers = _read_peers(lines)
    return peers if peers is not None else _read_bandwidth(lines)


def _read_peers(lines: Sequence[str]) -> Found | None:
    seen, refused, ways = TextScan(lines), set[tuple[int, int]](), set[str]()
    titles = list[tuple[int, re.Match[str]]]()
    for number, match in seen.each(_DEVICE, _ACCESS, _OTHER, _TITLE):
        if match.re is _DEVICE:
            bus, device, domain = (int(match[at], 16) for at in (3, 4, 5))
            seen.gpus[int(match[1])] = ToldGpu(match[2], f"{domain:04x}:{bus:02x}:{device:02x}.0")
        elif match.re is _ACCESS:
            refused |= {(int(match[1]), int(match[3]))} if match[2] == "CANNOT" else set()
            ways |= {"peer access"} if match[2] == "CAN" else set()
        elif match.re is _TITLE:
            titles.append((number, match))
        else:
            for at in (number + 1, number + 2):
                grid = grid_at(lines, at)
                while grid is not None:  # the devices' and the host's
                    seen.used |= grid.lines
                    grid = grid_at(lines, max(grid.lines) + 1)
    if not titles and not seen.gpus:
        return None
    by_kernel = any("--sm_copy" in line for line in lines)
    for number, match in titles:
        figures = _peers(match, seen.grid(number + 1), refused, "sm" if by_kernel else "ce")
        seen.figures += figures
    return seen.log("p2pBandwidthLatencyTest", Facts(gpus=seen.gpus, ways=frozenset(ways)))


def _peers(
    title: re.Match[str], grid: Grid, refused: set[tuple[int, int]], kind: str
) -> Iterator[ToldFigure]:
    """Yields the figures of pairs. Pairs without peer access are copied over the host's memory."""
    both, enabled = title[1] == "Bidirectional", title[2] == "Enabled"
    way = "read" if title[3] == "Reads" else "write"
    for (down, across), figure in grid.items():
        if figure is None or (enabled and (down, across) in refused):
            continue  # what it shows without, again
        if down == across:
            if not both and not enabled:
                yield copied(_LOCAL, 0, across, figure / 2, _PEER_SIZE)
        elif enabled:
            name = f"device_to_device_{'bidirectional_' if both else ''}memcpy_{way}_{kind}"
            yield copied(name, down, across, figure, _PEER_SIZE)
        else:
            row = _STAGED_BOTH if both else _STAGED
            staged = copied(row.name, down, across, figure, _PEER_SIZE, row)
            yield staged._replace(staged=True)


# bandwidthTest.

_RUNS = re.compile(r"\s*Device (\d{1,3}): (.{1,100})")
_WAY = re.compile(r"\s*(Host|Device) to (Host|Device) Bandwidth, (\d+) Device")
_IS_ONE = re.compile(r"\[CUDA Bandwidth Test|bandwidthTest-|(?:Host|Device) Bandwidth, \d+ Device")
_PAGEABLE = (
    "copies of PAGEABLE memory, which the driver moves through a buffer of its own: "
    "--memory=pinned measures the link"
)
_KIND = re.compile(r"\s*(PINNED|PAGEABLE) Memory Transfers")
_ROW = re.compile(rf"\s*(\d{{1,13}})\s+({DECIMAL})\s*$")
_CSV = re.compile(
    r".*?bandwidthTest-(H2D|D2H|D2D)-(Pinned|Paged|Pageable), Bandwidth = "
    rf"({DECIMAL}) (GB|MB)/s,.*Size = (\d{{1,12}}) bytes"
)
_WAYS = {"H2D": "host_to_device_memcpy_ce", "D2H": "device_to_host_memcpy_ce"}
_SAID = re.compile(
    r"\s*(?:\[CUDA Bandwidth Test\]|Running on|.{0,12}Mode$|Transfer Size|Result =|NOTE: The CUDA)"
)


def _read_bandwidth(lines: Sequence[str]) -> Found | None:
    if not any(_IS_ONE.search(line) for line in lines):
        return None
    seen, way, pinned, unit = TextScan(lines), "", True, _GB
    failed = tuple[str, ...]()
    for number, match in seen.each(_RUNS, _WAY, _KIND, _CSV, _SAID, _ROW):
        if match.re is _RUNS:
            seen.gpus[int(match[1])] = ToldGpu(match[2].strip())
        elif match.re is _WAY:
            way = _WAYS.get(f"{match[1][0]}2{match[2][0]}", _LOCAL) if match[3] == "1" else ""
        elif match.re is _KIND:
            pinned = match[1] == "PINNED"
            failed = failed if pinned else (_PAGEABLE,)
        elif match.re is _CSV:
            own = _WAYS.get(match[1], _LOCAL)
            scale = _GB if match[4] == "GB" else _GB / 1000
            seen.figures += _bandwidth(own, match[2] == "Pinned", match[3], match[5], scale)
        elif match.re is _SAID:
            line = lines[number]
            unit = _GB if "GB/s" in line else _GB / 1000 if "MB/s" in line else unit
        else:
            seen.figures += _bandwidth(way, pinned, match[2], match[1], unit)
    return seen.log("bandwidthTest", failed=failed)


def _bandwidth(
    way: str, pinned: bool, figure: str, size: str, scale: float
) -> Iterator[ToldFigure]:
    """Yields the figures of copies. Copies with pageable memory are left out, because they do not
    show the rate of a link."""
    if not way or not (pinned or way == _LOCAL):
        return
    local = way == _LOCAL
    rate = float(figure) * scale / (2 if local else 1)
    yield ToldFigure(way, "0", "0", rate, int(size))
