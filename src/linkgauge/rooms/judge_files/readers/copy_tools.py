"""Reads gdrcopy_copybw, clpeak, Intel's level-zero-tests, gdsio, fio, rblnBandwidthLatencyTest, and
gc-hosttraffictest (an IPU and host threads access a staging buffer; rates in 10^9 bits/s)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from linkgauge.machine.tree import ADDRESS
from linkgauge.model.transfer import Report

from ..facts import MIB, Bridge, HostFigure, ReportedFigure, copied
from ..lines import DECIMAL, index_of, number_of
from ..scan import TextScan, rates


def _storage(said: Mapping[str, str]) -> HostFigure:
    """Returns work without an expected rate: CPU or driver choose the way, or an end is storage."""
    is_read = said["way"].lower() in ("read", "randread", "d2h")
    return HostFigure(f"{'null -> host:0' if is_read else 'host:0 -> null'} by host:0.cpu")


_gdrcopy = rates(
    "gdrcopy_copybw", "gdrcopy_{way}", "gpu {device}", _storage,
    rf"(?P<way>write|read) BW: (?:median )?(?P<rate>{DECIMAL}) ?MB/s",  # which are MiB there
    r"GPU id:(?P<gpu>\d{1,3}); name: (?P<model>.{2,80}?); Bus id: \S{4,16}",
    r"selecting device (?P<device>\d{1,3})",
    r"(?:writing|reading) test, size=(?P<size>\d{1,14}) ",
    device="0", unit="Mi", size=str(MIB),
)  # fmt: skip
_gdsio = rates(
    "gdsio", "gdsio_{way}_{kind}", "{threads} threads", _storage,
    r"[#\s]{0,9}IoType: (?P<way>(?:RAND)?(?:READ|WRITE)) XferType: (?P<kind>\w{1,20}) "
    r"Threads: (?P<threads>\d{1,5}) .*?IOSize: (?P<size>\d{1,12})\((?P<prefix>Ki)B\) "
    rf"Throughput: (?P<rate>{DECIMAL}) (?P<unit>[KMG]i)B/sec",
)  # fmt: skip
_fio = rates(
    "fio", "fio_{way}", "all", _storage,
    rf"\s*(?P<way>READ|WRITE): bw=(?P<rate>{DECIMAL})(?P<unit>[KMG]i?)B/s",
    r".*?\brw=\w+, bs=\(R\) (?P<size>\d{1,6})(?P<prefix>[KMG]i)B",
    size="1", prefix="Mi",
)  # fmt: skip
_clpeak = rates(  # the copies of the largest buffer, unless the device has less memory
    "clpeak", "clpeak_{way}", "device {number}", _storage,
    rf"\s*(?i:enqueue(?P<way>Write|Read)Buffer)\s*: (?P<rate>{DECIMAL})\s*$",
    rf"\s*(?P<way>h2d|d2h)\s*: (?P<rate>{DECIMAL})\s*$",
    r"\s*Device(?: \d{1,2})?: +\S.{1,80}", unit="G", size=str(1 << 29),
)  # fmt: skip


def _level_zero(seen: TextScan) -> None:
    """Reads the best rate of each table of sizes. In reads, the first device pulls."""
    best = dict[tuple[object, ...], ReportedFigure]()
    for said in seen.rows(
        r"\s*(?P<from>Host|Device\[\d{1,3}\])->(?P<to>Host|Device\[\d{1,3}\]) .{0,30}?"
        rf"\[\s*(?P<size>\d{{1,14}})(?: bytes)?\].{{0,20}}?BW = +(?P<rate>{DECIMAL}) GB",
        r"\s*Device +(?P<gpu>\d{1,3}): +(?P<model>\S.{2,80})",
        r"\s*(?P<ways>Uni|Bi)directional Bandwidth P2P (?P<verb>Write|Read): Device"
        r"\( ?(?P<from>\d{1,3}) ?\) ?-> ?Device\( ?(?P<to>\d{1,3}) ?\)",
        r"(?P<ways>)\s*\S.*\b(?:Latency|LATENCY)\b.*P2P",
        rf"\s*(?P<size>\d{{1,14}})\s+(?P<rate>{DECIMAL})\s*$",
        **{"from": "Host", "to": "Host", "ways": "", "verb": ""},
    ):
        source, to = (index_of(re.sub(r"\D", "", said[end])) for end in ("from", "to"))
        is_peer = said["from"].isdecimal()
        if (source, to) != (None, None) and (said["ways"] or not is_peer):
            reads, both = is_peer and said["verb"] == "Read", is_peer and said["ways"] == "Bi"
            source, to = (to, source) if reads else (source, to)
            size = max(int(said["size"]), 1)
            figure = copied(source, to, float(said["rate"]), size, reads=reads, both=both)
            key = figure.benchmark, *figure.place
            best[key] = max(best.get(key, figure), figure, key=lambda one: one.figure)
    seen.figures += best.values()
    seen.log("level-zero-tests", vendor="intel")


_RBLN = "rblnBandwidthLatencyTest"


def _rbln(seen: TextScan) -> None:
    names, first, size = list[str](), 0, 512 * MIB
    bridges, above = dict[str, Bridge](), tuple[str, ...]()
    for _, own, said in seen.marks(
        r"\s*\[Measure Buffer Size : 0x(?P<size>[0-9a-fA-F]{1,12})\]",
        r"\s*(?:\S{6,14}/)?(?P<bridge>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]) PCI bridge:",
        rf"\s*(?P<pci>{ADDRESS}) NODE \d+, rbln(?P<gpu>\d{{1,3}}), (?P<model>[^,(]{{2,40}})"
        r".*?NUMA: (?P<node>\d{1,2})",
        r"\s*Device (?:(?P<way>Write|Read) bandwidth \(GB/s\)|\S.*\(us\))",
        r"\s*S\s.*?(?P<names>(?:(?:HOST|rbln\S{0,9})(?:\s+|$))+)",
        r"\s*(?P<row>(?:HOST|rbln\d).*)",
        r"\s*\[ +(?P<result>Run|PASS|FAIL) +\] : (?P<test>RBLN_\w{1,60})", way="",
    ):  # fmt: skip
        if "size" in own:
            size = int(own["size"], 16) or size
        elif "bridge" in own:
            above = (f"0000:{own['bridge']}",)
            bridges[above[0]] = Bridge(is_switch=True)
        elif "gpu" in own:
            index = int(own["gpu"])
            seen.gpus[index] = replace(seen.gpus[index], node=int(own["node"]), above=above)
        elif "result" in own:
            if own["result"] == "FAIL":
                seen.fail(f"{own['test']}: FAIL", own["test"], seen.since(first))
            first = len(seen.figures)
        elif "row" not in own:
            names = own.get("names", "").split()
        else:  # the name of a row may touch its first figure
            name = max((one for one in names if own["row"].startswith(one)), key=len, default="")
            words = own["row"].removeprefix(name).split()
            if name and len(words) <= len(names):
                seen.figures += _rbln_figures(name, names, words, size, reads=said["way"] == "Read")
    seen.log(_RBLN, vendor="rebellions", sure=seen.gpus, bridges=bridges)


def _rbln_figures(
    name: str, names: Sequence[str], words: Sequence[str], size: int, *, reads: bool
) -> Iterator[ReportedFigure]:
    """Yields a row's figures. If `reads`, the column's device pulls from the row's."""
    row, *columns = (index_of(one.removeprefix("rbln")) for one in (name, *names))
    for column, word in zip(columns, words, strict=False):
        if column != row and (rate := number_of(word)):
            yield copied(row, column, rate, size, reads=reads)


_GC = "gc-hosttraffictest"
_TEST = r"(?P<test>(?:host (?P<host><-|->) )?buffer(?: (?P<tile><-|->) tile)?)"
_RATE = r"(\d{1,9}(?:\.\d{1,20})?)"
_RATES = re.compile(rf"{_RATE} Gbps (?:RDMA )?(host|tile) (?:read|write)")
_LINE = re.compile(rf"\s*{_TEST}:\s+{_RATE} Gbps .{{1,100}}, for {_RATE} seconds\.")
_HEAD = re.compile(rf'\s*"description": "{_TEST}"')
_SPEED = re.compile(rf'\s*"(host|tile)_transfer_speed_gbps": "{_RATE}"')
_ERROR = re.compile(r'\s*"error": "(.{1,200}?)"')
_DEVICE = re.compile(rf".*?{_GC}\b.*?(?:-d|--device(?:-id)?)[ =](\d{{1,3}})\b")
_BUFFER = 16 * MIB
"""The staging buffer: the host's bytes in the manual page's examples are multiples of it."""
_STAGING = "host:0/staging"
_WORK = {
    ("tile", "->"): f"{_STAGING} -> {{d}} by {{d}}.sm",
    ("tile", "<-"): f"{{d}} -> {_STAGING} by {{d}}.sm",
    ("host", "<-"): f"{_STAGING} -> null by host:0.cpu",
    ("host", "->"): f"null -> {_STAGING} by host:0.cpu",
}


def _host_traffic(seen: TextScan) -> None:
    device = int(seen.first(_DEVICE, "0"))
    for _, line in seen.each(_LINE, _HEAD, _SPEED, _ERROR):
        if line.re is _LINE:
            rates = {side: float(rate) for rate, side in _RATES.findall(line[0])}
            seen.figures += _traffic_figures(line, rates, device)
    for start, head, end in seen.sections(_HEAD):
        first, fields = len(seen.figures), seen.lines[start:end]
        rates = {one[1]: float(one[2]) for one in map(_SPEED.match, fields) if one}
        seen.figures += _traffic_figures(head, rates, device)
        for error in filter(None, map(_ERROR.match, fields)):
            seen.fail(error[1], head["test"], seen.since(first))
    seen.log(_GC, vendor="graphcore")


def _traffic_figures(
    test: re.Match[str], rates: dict[str, float], device: int
) -> Iterator[ReportedFigure]:
    sides = [side for side in ("tile", "host") if test[side]]
    if not sides or rates.keys() != {*sides}:
        return
    together, memory, row = len(sides) > 1, f"ipu:{device}", test["test"].replace("tile", "device")
    alone = f"host_traffic_{'device' if test['tile'] else 'host'}_alone"
    work = " & ".join(_WORK[side, test[side]] for side in sides).format(d=memory)
    report, parts = (Report.SUM, ("device", "host")) if together else (Report.FIRST, ())
    what = HostFigure(work, report=report, parts=parts, with_device=True)
    for number, side in enumerate(sides):
        name, part = ("host_traffic", number) if together else (alone, None)
        figure = rates[side] / 8e-9
        yield ReportedFigure(name, row, memory, figure, _BUFFER, part=part, host=what)


READERS = {_gdrcopy: ("BW: ",), _gdsio: ("XferType",), _fio: ("bw=",), _clpeak: ("enqueue", "h2d "),
    _level_zero: ("BW = ", "Bandwidth P2P"),
    _rbln: ("rbln", "RBLN"),
    _host_traffic: ("Gbps", "_gbps", '"description"')}  # fmt: skip
