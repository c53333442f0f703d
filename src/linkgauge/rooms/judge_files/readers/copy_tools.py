"""Reads gdrcopy_copybw, clpeak, Intel's level-zero-tests, gdsio and fio."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..facts import MIB, HostFigure, ReportedFigure, copied
from ..lines import DECIMAL, index_of
from ..scan import TextScan, rates


def _storage(said: Mapping[str, str]) -> HostFigure:
    """Returns work without an expected rate: CPU or driver choose how, or an end is storage."""
    is_read = "read" in said["way"].lower()
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
    rf"\s*enqueue(?P<way>Write|Read)Buffer\s*: (?P<rate>{DECIMAL})\s*$",
    r"\s*Device: +\S.{1,80}", unit="G", size=str(1 << 29),
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


READERS = {
    _gdrcopy: ("BW: ",), _gdsio: ("XferType",), _fio: ("bw=",), _clpeak: ("enqueue",),
    _level_zero: ("BW = ", "Bandwidth P2P"),
}  # fmt: skip
