"""Reads small tools for copies: gdrcopy_copybw, clpeak, ze_bandwidth and ze_peer of Intel's
level-zero-tests, and gdsio and fio, whose ends are a memory and storage."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from ..lines import DECIMAL, scale_of
from ..scan import TextScan
from ..told import MIB, HostFigure, ToldFigure, copied


def _figure(name: str, column: str, rate: float, size: float) -> ToldFigure:
    """Returns the rate of copies of which nothing is known that should carry them: a CPU moves them
    through a GPU's window, a driver as it likes, or storage is their other end."""
    work = "null -> host:0" if "read" in name else "host:0 -> null"
    cell = HostFigure(f"{work} by host:0.cpu")
    return ToldFigure(name, "all", column, rate, max(int(size), 1), host=cell)


def _gdrcopy(seen: TextScan) -> None:
    """Reads gdrcopy_copybw, whose MB are MiB."""
    for said in seen.rows(
        rf"(?P<way>write|read) BW: (?P<rate>{DECIMAL}) ?MB/s",
        r"GPU id:(?P<gpu>\d{1,3}); name: (?P<model>.{2,80}?); Bus id: \S{4,16}",
        r"selecting device (?P<device>\d{1,3})",
        r"(?:writing|reading) test, size=(?P<size>\d{1,14}) ",
        device="0", size=str(MIB),
    ):  # fmt: skip
        name, column = f"gdrcopy_{said['way']}", f"gpu {said['device']}"
        seen.figures.append(_figure(name, column, float(said["rate"]) * MIB, int(said["size"])))
    seen.log("gdrcopy_copybw")


def _gdsio(seen: TextScan) -> None:
    for said in seen.rows(
        r"[#\s]{0,9}IoType: (?P<way>(?:RAND)?(?:READ|WRITE)) XferType: (?P<kind>\w{1,20}) "
        r"Threads: (?P<threads>\d{1,5}) .*?IOSize: (?P<size>\d{1,12})\(KiB\) "
        rf"Throughput: (?P<rate>{DECIMAL}) (?P<unit>[KMG]i)B/sec"
    ):
        name = f"gdsio_{said['way']}_{said['kind']}".lower()
        rate = float(said["rate"]) * scale_of(said["unit"])
        seen.figures.append(
            _figure(name, f"{said['threads']} threads", rate, int(said["size"]) << 10)
        )
    seen.log("gdsio")


def _fio(seen: TextScan) -> None:
    for said in seen.rows(
        rf"\s*(?P<way>READ|WRITE): bw=(?P<rate>{DECIMAL})(?P<unit>[KMG]i?)B/s",
        r".*?\brw=\w+, bs=\(R\) (?P<size>\d{1,6})(?P<prefix>[KMG]i)B",
        size="1", prefix="Mi",
    ):  # fmt: skip
        rate, size = float(said["rate"]) * scale_of(said["unit"]), int(said["size"])
        name = f"fio_{said['way'].lower()}"
        seen.figures.append(_figure(name, "all", rate, size * scale_of(said["prefix"])))
    seen.log("fio")


def _clpeak(seen: TextScan) -> None:
    """Reads clpeak's copies with the host, once for each device: of its largest buffer, unless the
    device has less memory."""
    of = Counter[str]()
    for said in seen.rows(
        rf"\s*enqueue(?P<way>Write|Read)Buffer\s*: (?P<rate>{DECIMAL})\s*$",
        r"\s*Device: +\S.{1,80}",
    ):
        name = f"clpeak_{said['way'].lower()}"
        rate, column = float(said["rate"]) * 1e9, f"device {of[name]}"
        seen.figures.append(_figure(name, column, rate, 1 << 29))
        of[name] += 1
    seen.log("clpeak")


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
    """Reads ze_bandwidth and ze_peer. Of a table of sizes, the best rate counts."""
    best = dict[tuple[object, ...], ToldFigure]()
    for figure in (*_ze_copies(seen), *_ze_peers(seen)):
        key = figure.benchmark, *figure.place
        best[key] = max(best.get(key, figure), figure, key=lambda one: one.figure)
    seen.figures += best.values()
    seen.log("level-zero-tests", vendor="intel")


def _ze_copies(seen: TextScan) -> Iterator[ToldFigure]:
    for said in seen.rows(
        r"\s*(?P<from>Host|Device\[\d{1,3}\])->(?P<to>Host|Device\[\d{1,3}\]) .{0,30}?"
        rf"\[\s*(?P<size>\d{{1,14}})(?: bytes)?\].{{0,20}}?BW = +(?P<rate>{DECIMAL}) GB",
        *_ZE_OTHERS,
    ):
        ends = [int(said[end][7:-1]) if "[" in said[end] else None for end in ("from", "to")]
        if ends != [None, None]:
            yield copied(ends[0], ends[1], float(said["rate"]), max(int(said["size"]), 1))


def _ze_peers(seen: TextScan) -> Iterator[ToldFigure]:
    """Yields the rates of ze_peer's tables. Reading, the first device pulls from the second."""
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
