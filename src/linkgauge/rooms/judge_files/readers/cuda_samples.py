"""Reads CUDA's samples bandwidthTest and p2pBandwidthLatencyTest.

The figures of copies within a device count the bytes read and written; a copy moves half of
them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..lines import DECIMAL, Grid, grid_at
from ..scan import TextScan
from ..told import ToldFigure, ToldGpu, copied

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


def _read_peers(seen: TextScan) -> None:
    refused, ways = set[tuple[int, int]](), set[str]()
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
            starts = [number + 1, number + 2]
            for at in starts:  # the devices' and the host's
                used = grid_at(seen.lines, at)[1]
                seen.used |= used
                starts += [max(used) + 1] if used else []
    if not titles and not seen.gpus:
        return
    by_kernel = any("--sm_copy" in line for line in seen.lines)
    for number, match in titles:
        figures = _peers(match, seen.grid(number + 1), refused, "sm" if by_kernel else "ce")
        seen.figures += figures
    _result(seen)
    seen.log("p2pBandwidthLatencyTest", sure=True, ways=frozenset(ways))


def _peers(
    title: re.Match[str], grid: Grid, refused: set[tuple[int, int]], kind: str
) -> Iterator[ToldFigure]:
    """Yields the figures of pairs. Pairs without peer access are copied over the host's memory."""
    both, enabled = title[1] == "Bidirectional", title[2] == "Enabled"
    reads = title[3] == "Reads"
    for (down, across), figure in grid.items():
        if figure is None or (enabled and ((down, across) in refused or down == across)):
            continue  # what it shows without, again
        if down != across:
            ends = (across, down) if reads else (down, across)
            about = {"reads": reads, "both": both, "staged": not enabled}
            yield copied(*ends, figure, _PEER_SIZE, kind, **about)
        elif not both:
            yield copied(across, across, figure / 2, _PEER_SIZE)


# bandwidthTest.

_RUNS = re.compile(r"\s*Device (\d{1,3}): (.{1,100})")
_WAY = re.compile(r"\s*(Host|Device) to (Host|Device) Bandwidth, (\d+) Device")
_PAGEABLE = (
    "copies of PAGEABLE memory, which the driver moves through a buffer of its own: "
    "--memory=pinned measures the link"
)
_KIND = re.compile(r"\s*(PINNED|PAGEABLE) Memory Transfers")
_ROW = re.compile(rf"\s*(\d{{1,13}})\s+({DECIMAL})\s*$")
_CSV = re.compile(
    r".*?bandwidthTest-(H2D|D2H|D2D)(?:-(Pinned|Paged|Pageable))?(?:-WriteCombined)?, Bandwidth = "
    rf"({DECIMAL}) (GB|MB)/s,.*Size = (\d{{1,12}}) bytes"
)
_WAYS = ("H2D", "D2H", "D2D")
_SAID = re.compile(
    r"\s*(?:\[CUDA Bandwidth Test\]|Running on|.{0,12}Mode$|Transfer Size|Result =|NOTE: The CUDA)"
)


def _read_bandwidth(seen: TextScan) -> None:
    """Reads bandwidthTest. Copies with pageable memory are left out, because they do not show the
    rate of a link."""
    way, pinned, unit, device = "", True, 1, 0
    for number, match in seen.each(_RUNS, _WAY, _KIND, _CSV, _SAID, _ROW):
        if match.re is _RUNS:
            device = int(match[1])  # the last one listed, if it is the only one that copies
            seen.gpus[device] = ToldGpu(match[2].strip())
        elif match.re is _WAY:
            way = f"{match[1][0]}2{match[2][0]}" if match[3] == "1" else ""
        elif match.re is _KIND:
            pinned = match[1] == "PINNED"
            seen.remarks += [] if pinned else [_PAGEABLE]
        elif match.re is _SAID:
            line = seen.lines[number]
            unit = 1 if "GB/s" in line else 1000 if "MB/s" in line else unit
        else:
            row = way, pinned, match[2], unit, match[1]
            if match.re is _CSV:
                scale = 1 if match[4] == "GB" else 1000
                row = match[1], match[2] == "Pinned", match[3], scale, match[5]
                seen.remarks += [_PAGEABLE] if match[2] not in (None, "Pinned") else []
            own, is_pinned, figure, scale, size = row
            if own in _WAYS and (is_pinned or own == "D2D"):
                rate = float(figure) / scale / (2 if own == "D2D" else 1)
                source, to = (None if end == "H" else device for end in (own[0], own[2]))
                seen.figures.append(copied(source, to, rate, int(size)))
    _result(seen)
    seen.log("bandwidthTest", sure=True)


_RESULT = re.compile(r"\s*(?:.{0,80}\.\.\. ?)?(Result = FAIL(?:ED)?)\b")
_ERROR = re.compile(r"\s*(?:CUDA error at |Cuda failure )(.{1,200})")


def _result(seen: TextScan) -> None:
    """Notes the result that CUDA's samples print last, and the call that failed."""
    for _, match in seen.each(_RESULT, _ERROR):
        seen.fail(match[1] if match.re is _RESULT else match[0])


READERS = {
    _read_peers: ("pciBusID", "P2P="),
    _read_bandwidth: (
        "[CUDA Bandwidth Test",
        "bandwidthTest-",
        "Host Bandwidth, ",
        "Device Bandwidth, ",
    ),
}
