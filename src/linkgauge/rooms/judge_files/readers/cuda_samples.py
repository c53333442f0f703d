"""Reads bandwidthTest, p2pBandwidthLatencyTest and simpleP2P. The first two count bytes twice
within a device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from statistics import median

from linkgauge.model.grouped import grouped
from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY

from ..facts import MIB, HostFigure, ReportedFigure, ReportedGpu, copied
from ..lines import DECIMAL, scale_of
from ..scan import Grid, TextScan

# p2pBandwidthLatencyTest.

_PEER_SIZE, _WAKES = 40_000_000 * 4, 1.5
_FAILED = (
    r"\s*(?:.{0,80}\.\.\. ?)?(?P<failed>Result = FAIL(?:ED)?)\b",
    r"\s*(?P<failed>(?:CUDA error at |Cuda failure ).{1,200})",
)
"""The result that CUDA's samples print last, and the call that failed."""


def _read_peers(seen: TextScan) -> None:
    refused, ways, is_read = set[tuple[int, int]](), set[str](), False
    times, best = list[ReportedFigure](), dict[str, float]()
    kind = "sm" if any("--sm_copy" in line for line in seen.lines) else "ce"
    for number, own, _ in seen.marks(
        r"\s*Device: (?P<device>\d{1,3}), (?P<name>.{1,100}?), pciBusID: (?P<bus>[0-9a-f]{1,2}), "
        r"pciDeviceID: (?P<slot>[0-9a-f]{1,2}), pciDomainID: ?(?P<domain>[0-9a-f]{1,4})",
        r"\s*Device=(?P<row>\d{1,3}) (?P<access>CAN|CANNOT) Access Peer Device=(?P<column>\d{1,3})",
        r"\s*(?P<other>P2P Connectivity Matrix|P2P=(?:Enabled|Disabled) Latency .*Matrix|\*\*\*NOTE"
        r"|So you can see lesser|NOTE: The CUDA Samples|\[P2P \(Peer)",
        r"\s*(?P<ways>Uni|Bi)directional P2P=(?P<peers>Enabled|Disabled) Bandwidth"
        r"(?P<by>(?: \(P2P (?:Writes|Reads)\))?) Matrix",
        *_FAILED,
    ):
        if "bus" in own:
            bus, slot, domain = (int(own[part], 16) for part in ("bus", "slot", "domain"))
            pci = f"{domain:04x}:{bus:02x}:{slot:02x}.0"
            seen.found(number, int(own["device"]), ReportedGpu(own["name"], pci))
        elif "access" in own:
            pair = int(own["row"]), int(own["column"])
            refused |= {pair} if own["access"] == "CANNOT" else set()
            ways |= {"peer access"} if own["access"] == "CAN" else set()
        elif "ways" in own:
            is_read = True
            seen.figures += _peers(own, grid := seen.grid_below(number), refused, kind)
            for (down, across), figure in grid.items():
                if figure and down == across:
                    best[str(down)] = max(best.get(str(down), 0.0), figure / 2 * 1e9)
        elif "other" in own:
            times += _times(own["other"], seen.grid(number + 1), refused)
            while seen.grid(1 + max(seen.used)):  # the devices' and the host's
                pass
    # The first copy of all may have waited for the GPU to wake.
    seen.figures = [
        one._replace(figure=best[one.column])
        if one.benchmark == "device_local_copy" and best.get(one.column, 0.0) > _WAKES * one.figure
        else one
        for one in seen.figures
    ]
    seen.figures += () if is_read else times
    if is_read or times or seen.gpus:
        each = grouped((one.benchmark, one.figure * 1e6) for one in times)
        seen.refuse(refused)
        settings = {name: f"{median(own):.3g} µs" for name, own in each.items()}
        seen.log("p2pBandwidthLatencyTest", sure=True, ways=frozenset(ways), settings=settings)


def _times(title: str, grid: Grid, refused: set[tuple[int, int]]) -> Iterator[ReportedFigure]:
    cell = HostFigure("null -> null by host:0.cpu", LATENCY.symbol, Report.LATENCY)
    for (row, column), time in grid.items() if "Latency" in title else ():
        is_peer = "Enabled" in title and (row, column) not in refused
        name = f"{'peer' if is_peer else 'staged'}_latency"
        if time is not None and row != column:
            yield ReportedFigure(name, str(row), str(column), time * 1e-6, 4, host=cell)


def _peers(
    title: Mapping[str, str], grid: Grid, refused: set[tuple[int, int]], kind: str
) -> Iterator[ReportedFigure]:
    """Yields a matrix's figures. With P2P enabled, pairs without peer access are skipped."""
    both, enabled = title["ways"] == "Bi", title["peers"] == "Enabled"
    reads = "Reads" in title["by"]
    for (down, across), figure in grid.items():
        is_again = enabled and ((down, across) in refused or down == across)
        if figure is not None and not is_again and (down != across or not both):
            ends = (across, down) if reads else (down, across)
            rate = figure / (2 if down == across else 1)
            about = {"reads": reads, "both": both, "staged": not enabled and down != across}
            yield copied(*ends, rate, _PEER_SIZE, kind, **about)


# bandwidthTest.

_PAGEABLE = (
    "copies of PAGEABLE memory, which the driver moves through a buffer of its own: "
    "--memory=pinned measures the link"
)


_SUM = "{:g} GB/s are the sum of {} devices, one after another: each is taken to have an equal part"


def _read_bandwidth(seen: TextScan) -> None:
    """Reads bandwidthTest. Leaves out pageable memory, whose rate is no link's. Of a sum over
    devices, which it measures one after another, each is taken to have an equal part."""
    usual = {"gpu": "0", "from": "", "to": "", "count": "1", "kind": "PINNED", "unit": "G"}
    for said in seen.rows(
        r"\s*Device (?P<gpu>\d{1,3}): (?P<model>.{1,100})",
        r"\s*(?P<from>H|D)\w+ to (?P<to>H|D)\w+ Bandwidth, (?P<count>\d+) Device",
        r"\s*(?P<kind>PINNED|PAGEABLE) Memory Transfers",
        r".*?bandwidthTest-(?P<from>H|D)2(?P<to>H|D)(?P<kind>(?:-Pinned|-Paged|-Pageable)?)"
        rf"(?:-WriteCombined)?, Bandwidth = (?P<rate>{DECIMAL}) (?P<unit>[GM])B/s,"
        r".*Size = (?P<size>\d{1,12}) bytes",
        r"\s*Transfer Size.*?(?P<unit>[GM])B/s",
        r"\s*(?:\[CUDA Bandwidth Test\]|Running on|.{0,12}Mode$|Transfer Size|NOTE: The )",
        r"\s*Result = (?!FAIL)",
        rf"\s*(?P<size>\d{{1,13}})\s+(?P<rate>{DECIMAL})\s*$",
        *_FAILED,
        **usual,
    ):
        count, is_local = int(said["count"]), said["from"] == said["to"]
        is_pinned = said["kind"].upper() in ("PINNED", "-PINNED")
        seen.remarks += [] if is_pinned or not said["kind"] else [_PAGEABLE]
        if said["from"] and 0 < count < 65 and (is_pinned or is_local):
            rate = float(said["rate"]) * scale_of(said["unit"]) / 1e9
            seen.remarks += [_SUM.format(rate, count)] if count > 1 else []
            moved = rate / count / (2 if is_local else 1)
            for gpu in range(count) if count > 1 else (int(said["gpu"]),):
                source, to = (None if said[end] == "H" else gpu for end in ("from", "to"))
                seen.figures.append(copied(source, to, moved, int(said["size"])))
    seen.log("bandwidthTest", sure=True)


# simpleP2P.

_SIMPLE_SIZE = 64 * MIB


def _read_simple(seen: TextScan) -> None:
    """Reads simpleP2P, which counts in GiB and compares what kernels wrote to the other GPU."""
    for _, own, _ in seen.marks(
        r"(?:> )?Peer access from (?P<model>.{3,100}?) \(GPU(?P<gpu>\d{1,3})\) -> ",
        r"\[\S{0,100}simpleP2P\] - Starting|Disabling peer access"
        r"|Enabling peer access between |Checking (?:for multiple GPUs|GPU\(s\) for)|Test passed"
        r"|Allocating buffers \(|Creating event handles|Preparing host buffer |Run kernel on GPU"
        r"|Copy data back to host |CUDA-capable device count|Shutting down",
        r"cudaMemcpyPeer / cudaMemcpy between GPU(?P<one>\d{1,3}) and GPU(?P<other>\d{1,3}): "
        rf"(?P<speed>{DECIMAL})GB/s",
        r"(?P<wrong>Verification error @ element .{1,100})|Test failed!",
        *_FAILED,
    ):
        if "speed" in own:
            rate = float(own["speed"]) * scale_of("Gi") / 1e9
            seen.figures.append(copied(int(own["one"]), int(own["other"]), rate, _SIMPLE_SIZE))
        elif "wrong" in own:
            seen.fail(own["wrong"], "simpleP2P", seen.since(0))
    seen.log("simpleP2P")


READERS = {
    _read_simple: ("simpleP2P",),
    _read_peers: ("pciBusID", "P2P="),
    _read_bandwidth: ("[CUDA Bandwidth Test", "bandwidthTest-", "t Bandwidth, ", "e Bandwidth, "),
}
