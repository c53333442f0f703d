"""Reads gdrcopy_copybw, clpeak, Intel's level-zero-tests, gdsio and fio."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..facts import MIB, HostFigure, ReportedFigure, copied
from ..lines import DECIMAL
from ..rates import rates
from ..scan import TextScan


def _storage(said: Mapping[str, str]) -> HostFigure:
    """Returns work without an expected rate: CPU or driver choose how, or an end is storage."""
    is_read = "read" in said["way"].lower()
    return HostFigure(f"{'null -> host:0' if is_read else 'host:0 -> null'} by host:0.cpu")


_gdrcopy = rates(
    "gdrcopy_copybw", "gdrcopy_{way}", "gpu {device}", _storage,
    rf"(?P<way>write|read) BW: (?P<rate>{DECIMAL}) ?MB/s",  # which are MiB there
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
    rf"\s*enqueue(?P<way>Write|Read)Buffer\s*: (?P<rate>{DECIMAL})\s*$",
    r"\s*Device: +\S.{1,80}", unit="G", size=str(1 << 29),
)  # fmt: skip


_ZE_PEERS = (
    r"\s*(?P<ways>Uni|Bi)directional Bandwidth P2P (?P<verb>Write|Read): Device"
    r"\( ?(?P<from>\d{1,3}) ?\) ?-> ?Device\( ?(?P<to>\d{1,3}) ?\)"
)
_ZE_OTHERS = (
    r"\s*Device +(?P<gpu>\d{1,3}): +(?P<model>\S.{2,80})",
    _ZE_PEERS,
    r"(?P<ways>)\s*\S.*\b(?:Latency|LATENCY)\b.*P2P",
)


def _level_zero(seen: TextScan) -> None:
    best = dict[tuple[object, ...], ReportedFigure]()
    for figure in (*_ze_copies(seen), *_ze_peers(seen)):
        key = figure.benchmark, *figure.place
        best[key] = max(best.get(key, figure), figure, key=lambda one: one.figure)
    seen.figures += best.values()
    seen.log("level-zero-tests", vendor="intel")


def _ze_copies(seen: TextScan) -> Iterator[ReportedFigure]:
    for said in seen.rows(
        r"\s*(?P<from>Host|Device\[\d{1,3}\])->(?P<to>Host|Device\[\d{1,3}\]) .{0,30}?"
        rf"\[\s*(?P<size>\d{{1,14}})(?: bytes)?\].{{0,20}}?BW = +(?P<rate>{DECIMAL}) GB",
        *_ZE_OTHERS,
    ):
        ends = [int(said[end][7:-1]) if "[" in said[end] else None for end in ("from", "to")]
        if ends != [None, None]:
            yield copied(ends[0], ends[1], float(said["rate"]), max(int(said["size"]), 1))


def _ze_peers(seen: TextScan) -> Iterator[ReportedFigure]:
    """Yields figures of Intel's ze_peer. In its reads, the first device pulls from the second."""
    row = rf"\s*(?P<size>\d{{1,14}})\s+(?P<rate>{DECIMAL})\s*$"
    for said in seen.rows(*_ZE_OTHERS, row, ways=""):
        if said["ways"]:
            reads, both = said["verb"] == "Read", said["ways"] == "Bi"
            source, to = (int(said[end]) for end in (("to", "from") if reads else ("from", "to")))
            size = max(int(said["size"]), 1)
            yield copied(source, to, float(said["rate"]), size, reads=reads, both=both)


READERS = {
    _gdrcopy: ("BW: ",), _gdsio: ("XferType",), _fio: ("bw=",), _clpeak: ("enqueue",),
    _level_zero: ("BW = ", "Bandwidth P2P"),
}  # fmt: skip
