"""Reads CUDA's bandwidthTest and p2pBandwidthLatencyTest, whose figures within a device count the
bytes read and written."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..facts import ReportedFigure, ReportedGpu, copied
from ..lines import DECIMAL, Grid, grid_at, scale_of
from ..scan import TextScan

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
            seen.gpus[int(match[1])] = ReportedGpu(
                match[2], f"{domain:04x}:{bus:02x}:{device:02x}.0"
            )
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
) -> Iterator[ReportedFigure]:
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

_PAGEABLE = (
    "copies of PAGEABLE memory, which the driver moves through a buffer of its own: "
    "--memory=pinned measures the link"
)


def _read_bandwidth(seen: TextScan) -> None:
    """Pageable memory does not show a link's rate. The last listed device copies, if it is
    alone."""
    usual = {"gpu": "0", "from": "", "to": "", "count": "1", "kind": "PINNED", "unit": "G"}
    for said in seen.rows(
        r"\s*Device (?P<gpu>\d{1,3}): (?P<model>.{1,100})",
        r"\s*(?P<from>H|D)\w+ to (?P<to>H|D)\w+ Bandwidth, (?P<count>\d+) Device",
        r"\s*(?P<kind>PINNED|PAGEABLE) Memory Transfers",
        r".*?bandwidthTest-(?P<from>H|D)2(?P<to>H|D)(?P<kind>(?:-Pinned|-Paged|-Pageable)?)"
        rf"(?:-WriteCombined)?, Bandwidth = (?P<rate>{DECIMAL}) (?P<unit>[GM])B/s,"
        r".*Size = (?P<size>\d{1,12}) bytes",
        r"\s*Transfer Size.*?(?P<unit>[GM])B/s",
        r"\s*(?:\[CUDA Bandwidth Test\]|Running on|.{0,12}Mode$|Transfer Size|Result =|NOTE: The )",
        rf"\s*(?P<size>\d{{1,13}})\s+(?P<rate>{DECIMAL})\s*$",
        **usual,
    ):
        ends = [None if said[end] == "H" else int(said["gpu"]) for end in ("from", "to")]
        is_local, is_pinned = ends[0] == ends[1], said["kind"].upper() in ("PINNED", "-PINNED")
        seen.remarks += [] if is_pinned or not said["kind"] else [_PAGEABLE]
        if said["from"] and said["count"] == "1" and (is_pinned or is_local):
            rate = float(said["rate"]) * scale_of(said["unit"]) / 1e9
            moved = rate / (2 if is_local else 1)
            seen.figures.append(copied(ends[0], ends[1], moved, int(said["size"])))
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
    _read_bandwidth: ("[CUDA Bandwidth Test", "bandwidthTest-", "t Bandwidth, ", "e Bandwidth, "),
}
