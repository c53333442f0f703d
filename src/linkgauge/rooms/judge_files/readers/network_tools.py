"""Reads tools that measure a network between two hosts: perftest and iperf3 (text and JSON), and
the OSU micro-benchmarks. Their output does not say what the network should reach."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkgauge.model.transfer import Report
from linkgauge.model.units import BANDWIDTH, LATENCY

from ..lines import number_of
from ..told import Facts, Found, HostFigure, ToldFigure, found_figures, together
from .nvbandwidth import documents

_BETWEEN = "host:0@0 -> host:0@1 by {}"
_RDMA, _TCP, _MESSAGES = "nic:0@0.rdma", "nic:0@0.tcp", "host:0@0.msg"
_TEST = re.compile(
    r"\s*(RDMA_(?:Write|Read)|Send|Raw_?Ethernet\w*)[ _](?:.{0,30})?"
    r"(BW|Bidirectional BW|Latency)[ _]Test",
    re.IGNORECASE,
)
_HEAD = re.compile(r"\s*#bytes(\s+#?iterations)?\s+((?:BW |t_|MsgRate).*)")
_SET = {
    "CUDA device": re.compile(r"Picking device No\. (\d{1,3})"),
    "Mtu": re.compile(r"\s*Mtu\s*: (\d{2,5})\[B\]"),
    "qps": re.compile(r"\s*Number of qps\s*: (\d{1,5})"),
}
_BUFFERS = re.compile(r"#.* Buffer on \w+ \((\w)\) and Receive Buffer on \w+ \((\w)\)")
_SUM = re.compile(
    r"\[\s*(SUM|\d{1,4})\]\s+0\.00-\s*[\d.]{1,12}\s+sec\s+\S+ \S?Bytes\s+"
    r"([\d.]{1,14}) ([KMGT]?)bits/sec.*receiver"
)
_OSU = re.compile(
    r"#\s*OSU MPI(.{0,40}?)(Bi-Directional Bandwidth|Bandwidth|Latency) Test(?:\s+v(\S{1,12}))?"
)


def _rate(name: str, column: str, rate: float, size: int, engine: str) -> ToldFigure:
    cell = HostFigure(_BETWEEN.format(engine), BANDWIDTH.symbol)
    return ToldFigure(name, "0", column, rate, max(size, 1), host=cell)


def _time(name: str, column: str, seconds: float, size: int, engine: str) -> ToldFigure:
    cell = HostFigure(_BETWEEN.format(engine), LATENCY.symbol, Report.LATENCY)
    return ToldFigure(name, "0", column, seconds, max(size, 1), host=cell)


def _names(test: str) -> str:
    kind = re.sub(r"[^a-z]", "", test.lower().removeprefix("rdma"))
    return {"write": "rdma_write", "read": "rdma_read"}.get(kind, "rdma_send")


def _perftest(lines: Sequence[str]) -> Found | None:
    figures, used, name, head, unit = list[ToldFigure](), set[int](), "rdma_write", "", 1.0
    settings, skip = dict[str, str](), 1
    for number, line in enumerate(lines):
        words = line.split()
        if match := _TEST.match(line):
            name = _names(match[1])
        elif match := _HEAD.match(line):
            head, skip = match[2], 1 if match[1] else 0
            unit = 1e9 / 8 if "Gb/sec" in head else float(1 << 20) if "MiB/sec" in head else 1e6
            if "MB/sec" in head:
                unit = float(1 << 20)  # which perftest calls MB
        elif head and len(words) >= 3 + skip and None not in map(number_of, words[: 3 + skip]):
            row = [number_of(word) or 0.0 for word in (words[0], *words[1 + skip :])]
            figures += _perftest_row(name, head, row, unit)
        elif said := {name: match[1] for name, of in _SET.items() if (match := of.match(line))}:
            settings |= said
        else:
            continue
        used.add(number)
    return found_figures("perftest", figures, used, facts=Facts(settings=settings))


def _perftest_row(name: str, head: str, row: Sequence[float], unit: float) -> Iterator[ToldFigure]:
    size = int(row[0])
    if size <= 0 or size > 1 << 40:
        return
    if "t_typical" in head or "t_avg" in head:
        keys = re.findall(r"(\S+?)\[usec\]", head)
        at = keys.index("t_typical") if "t_typical" in keys else keys.index("t_avg")
        if len(row) > at + 1:
            yield _time(f"{name}_lat", str(size), row[at + 1] * 1e-6, size, _RDMA)
    else:
        yield _rate(f"{name}_bw", str(size), row[2] * unit, size, _RDMA)


def _perftest_json(lines: Sequence[str]) -> Found | None:
    figures, used = list[ToldFigure](), set[int]()
    for document, taken in documents(lines, "test_info"):
        about, results = document.get("test_info"), document.get("results")
        if not isinstance(about, Mapping) or not isinstance(results, Mapping):
            continue
        used |= taken
        name = _names(str(about.get("test", "")).partition("_BW")[0].partition("_Lat")[0])
        size, rate, time = (_float(results.get(k)) for k in ("MsgSize", "BW_average", "t_avg"))
        unit = 1e9 / 8 if about.get("BW_unit") == "Gb/sec" else float(1 << 20)
        if size and rate:
            figures.append(_rate(f"{name}_bw", str(int(size)), rate * unit, int(size), _RDMA))
        if size and time:
            figures.append(_time(f"{name}_lat", str(int(size)), time * 1e-6, int(size), _RDMA))
    return found_figures("perftest", figures, used)


def _float(value: Any) -> float | None:
    """Returns the finite number above 0 in a value, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 1e30 else None


def _iperf3(lines: Sequence[str]) -> Found | None:
    figures, used, version = list[ToldFigure](), set[int](), None
    for document, taken in documents(lines, "start"):
        end, start = document.get("end"), document.get("start")
        if not isinstance(end, Mapping) or not isinstance(start, Mapping):
            continue
        received = end.get("sum_received") or end.get("sum")
        test = start.get("test_start")
        streams = test.get("num_streams") if isinstance(test, Mapping) else None
        if isinstance(received, Mapping) and (rate := _float(received.get("bits_per_second"))):
            count = str(streams) if isinstance(streams, int) else "1"
            figures.append(_rate("nic_tcp_iperf3", count, rate / 8, 128 << 10, _TCP))
            used |= taken
            version = str(start.get("version", "")).removeprefix("iperf ")[:20] or None
    return found_figures("iperf3", figures, used, version)


def _iperf3_text(lines: Sequence[str]) -> Found | None:
    """Reads the last lines of iperf3's text: the sum of several streams, or a single stream."""
    found = [(n, match) for n, line in enumerate(lines) if (match := _SUM.match(line.strip()))]
    if not found:
        return None
    number, total = next((one for one in found if one[1][1] == "SUM"), found[0])
    rate = (number_of(total[2]) or 0.0) * 1000 ** " KMGT".index(total[3] or " ") / 8
    streams = str(max(len({one[1] for _, one in found} - {"SUM"}), 1))
    figure = _rate("nic_tcp_iperf3", streams, rate, 128 << 10, _TCP)
    return found_figures("iperf3", [figure], [number])


def _osu(lines: Sequence[str]) -> Found | None:
    figures, used, kind, version = list[ToldFigure](), set[int](), "", None
    buffers = next((match for line in lines if (match := _BUFFERS.match(line))), None)
    for number, line in enumerate(lines):
        words = line.split()
        if match := _OSU.match(line):
            kind, version = match[2], match[3] or version
        elif kind and len(words) == 2 and words[0].isdecimal() and (value := number_of(words[1])):
            size = int(words[0][:12])
            if kind == "Latency":
                figures.append(_time("osu_latency", str(size), value * 1e-6, size, _MESSAGES))
            elif size:
                name = "osu_bw" if kind == "Bandwidth" else "osu_bibw"
                figures.append(_rate(name, str(size), value * 1e6, size, _MESSAGES))
        elif not (kind and line.startswith("#")):
            continue
        used.add(number)
    facts = Facts(settings={"buffers": f"{buffers[1]} {buffers[2]}"} if buffers else {})
    return found_figures("OSU micro-benchmarks", figures, used, version, facts)


read = together(_perftest, _perftest_json, _iperf3, _iperf3_text, _osu)
