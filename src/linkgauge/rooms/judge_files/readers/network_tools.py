"""Reads tools that measure a network between two hosts: perftest and iperf3 (text and JSON), the
OSU and Intel MPI benchmarks, and ucx_perftest. Their output does not say what the network should
reach."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY

from ..lines import DECIMAL, number_of
from ..scan import TextScan
from ..told import HostFigure, ToldFigure

_BETWEEN = "host:0@0 -> host:0@1 by {}"
_RDMA, _TCP, _MESSAGES = "nic:0@0.rdma", "nic:0@0.tcp", "host:0@0.msg"
_TEST = re.compile(
    r"(?i:\s*(RDMA_(?:Write|Read)|Send|Raw_?Ethernet\w*)[ _](?:.{0,30})?"
    r"(BW|Bidirectional BW|Latency)[ _]Test)"
)
_HEAD = re.compile(r"\s*#bytes(\s+#?iterations)?\s+((?:BW |t_|MsgRate).{0,400})")
_ROW = re.compile(r"\s*\d{1,13}(?:\s+[\d.]{1,20}){2,}.*")
_SET = {
    re.compile(r"Picking device No\. (\d{1,3})"): "CUDA device",
    re.compile(r"\s*Mtu\s*: (\d{2,5})\[B\]"): "Mtu",
    re.compile(r"\s*Number of qps\s*: (\d{1,5})"): "qps",
}
_BUFFERS = re.compile(r"#.* Buffer on \w+ \((\w)\) and Receive Buffer on \w+ \((\w)\)")
_CHECKED = re.compile(r".{0,80}?(VALIDATION: (?:FAILED|ERROR).{0,200})")
_SUM = re.compile(
    r"\s*\[\s*(SUM|\d{1,4})\]\s+0\.00-\s*[\d.]{1,12}\s+sec\s+\S+ \S?Bytes\s+"
    r"([\d.]{1,14}) ([KMGT]?)bits/sec.*receiver"
)
_RETRANSMITS = re.compile(
    r"\s*\[\s*(?:SUM|\d{1,4})\]\s+0\.00-.{10,60}bits/sec\s+(\d{1,9})\s+sender"
)
_IPERF_ERROR = re.compile(r"\s*iperf3: (error - .{1,200})")
"""An error in iperf3's text, and in its JSON without the name. Ctrl-C is no `error - `."""
_OSU = re.compile(
    r"#\s*OSU MPI(.{0,40}?)(Bi-Directional Bandwidth|Bandwidth|Latency) Test(?:\s+v(\S{1,12}))?"
)
_OSU_ROW = re.compile(
    rf"\s*(\d{{1,12}})\s+({DECIMAL})(?:\s+(Pass|Fail))?(?:\s+{DECIMAL}){{0,8}}\s*$"
)
_OSU_TESTS = {
    "Latency": ("osu_latency", 1e-6), "Bandwidth": ("osu_bw", 1e6),
    "Bi-Directional Bandwidth": ("osu_bibw", 1e6),
}  # fmt: skip
_OSU_ERROR = re.compile(r"\s*(DATA VALIDATION ERROR:.{1,200})")
_COMMENT = re.compile("#")


def _figure(
    name: str, size: int, figure: float, engine: str = _RDMA, column: object = None
) -> ToldFigure:
    """Returns a time in s, by the end of the name, or a rate in bytes/s, from host 0 to host 1 or
    with the setting of a column."""
    of = (LATENCY.symbol, Report.LATENCY) if name.endswith(("lat", "latency")) else ()
    cell = HostFigure(_BETWEEN.format(engine), *of)
    return ToldFigure(name, "0", str(column or 1), figure, max(size, 1), host=cell)


def loopback(verb: str, size: int, gigabytes: float, adapter: str) -> ToldFigure:
    """Returns the rate in GB/s of an adapter that exchanges with itself."""
    return _figure(f"rdma_{verb}_bw", size, gigabytes * 1e9, column=adapter)


def _names(test: str) -> str:
    kind = re.sub(r"[^a-z]", "", test.lower().removeprefix("rdma"))
    return {"write": "rdma_write", "read": "rdma_read"}.get(kind, "rdma_send")


def _perftest(seen: TextScan) -> None:
    name, head, unit, settings, skip = "rdma_write", "", 1.0, dict[str, str](), 1
    for _, match in seen.each(_TEST, _HEAD, _ROW, _CHECKED, *_SET):
        if match.re is _TEST:
            name = _names(match[1])
        elif match.re is _HEAD:
            head, skip = match[2], 1 if match[1] else 0
            unit = 1e9 / 8 if "Gb/sec" in head else 1e6
            if "MiB/sec" in head or "MB/sec" in head:  # which perftest calls MB
                unit = float(1 << 20)
        elif match.re is _CHECKED:
            seen.fail(match[1])
        elif match.re in _SET:
            settings[_SET[match.re]] = match[1]
        elif head and len(words := match[0].split()) >= 3 + skip:
            row = [number_of(word) or 0.0 for word in (words[0], *words[1 + skip :])]
            seen.figures += _perftest_row(name, head, row, unit)
    seen.log("perftest", settings=settings)


def _perftest_row(name: str, head: str, row: Sequence[float], unit: float) -> Iterator[ToldFigure]:
    size = int(row[0])
    if size <= 0 or size > 1 << 40:
        return
    if "t_typical" in head or "t_avg" in head:
        keys = [word.removesuffix("[usec]") for word in head.split() if "[usec]" in word]
        at = next((keys.index(key) for key in ("t_typical", "t_avg") if key in keys), len(row))
        if len(row) > at + 1:
            yield _figure(f"{name}_lat", size, row[at + 1] * 1e-6)
    else:
        yield _figure(f"{name}_bw", size, row[2] * unit)


def _perftest_json(seen: TextScan) -> None:
    for document in seen.documents("test_info"):
        test, unit = (_at(document, "test_info", key) for key in ("test", "BW_unit"))
        name = _names(str(test or "").partition("_BW")[0].partition("_Lat")[0])
        size, rate, time = (
            _float(_at(document, "results", key)) for key in ("MsgSize", "BW_average", "t_avg")
        )
        scale = 1e9 / 8 if unit == "Gb/sec" else float(1 << 20)
        if size and rate:
            seen.figures.append(_figure(f"{name}_bw", int(size), rate * scale))
        if size and time:
            seen.figures.append(_figure(f"{name}_lat", int(size), time * 1e-6))
    seen.log("perftest")


def _at(document: Any, *keys: str) -> Any:
    """Returns the value at these keys of a JSON document, or None."""
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _float(value: Any) -> float | None:
    """Returns the finite number above 0 in a value, or None."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 < value < 1e30 else None


def _iperf3(seen: TextScan) -> None:
    version, again = "", 0
    for document in seen.documents("start"):
        received = _at(document, "end", "sum_received") or _at(document, "end", "sum")
        streams = _at(document, "start", "test_start", "num_streams")
        if rate := _float(_at(received, "bits_per_second")):
            count = streams if isinstance(streams, int) else 1
            seen.figures.append(_figure("nic_tcp_iperf3", 128 << 10, rate / 8, _TCP, count))
            again += int(_float(_at(document, "end", "sum_sent", "retransmits")) or 0)
            version = str(_at(document, "start", "version") or "").removeprefix("iperf ")[:20]
        elif (said := str(_at(document, "error"))).startswith("error - "):
            seen.fail(said)
    seen.log("iperf3", version, settings={"retransmits": str(again)} if again else {})


def _iperf3_text(seen: TextScan) -> None:
    """Reads the last lines of iperf3's text: the sum of several streams, or a single stream. An
    error has the program's name."""
    for _, match in seen.each(_IPERF_ERROR):
        seen.fail(match[1])
    found = [match for _, match in seen.each(_SUM)]
    if not found:
        seen.log("iperf3")
        return
    again = max((int(match[1]) for _, match in seen.each(_RETRANSMITS)), default=0)
    total = next((match for match in found if match[1] == "SUM"), found[0])
    rate = (number_of(total[2]) or 0.0) * 1000 ** " KMGT".index(total[3] or " ") / 8
    streams = str(max(len({match[1] for match in found} - {"SUM"}), 1))
    seen.figures.append(_figure("nic_tcp_iperf3", 128 << 10, rate, _TCP, streams))
    seen.log("iperf3", settings={"retransmits": str(again)} if again else {})


def _osu(seen: TextScan) -> None:
    kind, version, settings, errors = "", None, dict[str, str](), list[str]()
    runs = Counter[str]()
    for _, match in seen.each(_OSU, _BUFFERS, _OSU_ROW, _OSU_ERROR, _COMMENT):
        if match.re is _OSU:
            kind, version = match[2], match[3] or version
            runs[kind] += 1
        elif match.re is _BUFFERS:
            settings.setdefault("buffers", f"{match[1]} {match[2]}")
        elif match.re is _OSU_ERROR:
            errors.append(match[1])
        elif kind and match.re is _OSU_ROW:
            size, value, first = int(match[1]), float(match[2]), len(seen.figures)
            again = f"1, run {runs[kind]}" if runs[kind] > 1 else None
            name, scale = _OSU_TESTS[kind]
            if size or kind == "Latency":
                seen.figures.append(_figure(name, size, value * scale, _MESSAGES, again))
            if match[3] == "Fail":
                seen.fail("Validation: Fail", f"OSU {kind} test", first)
    if errors and not any(one.failure for one in seen.figures):  # else the column tells which
        seen.fail(errors[0])
    seen.log("OSU micro-benchmarks", version, settings=settings)


_IMB = re.compile(r".*?Intel\(R\) MPI Benchmarks ([\w.]{1,12})")
_IMB_TEST = re.compile(r"\s*#\s*Benchmarking (\w{1,30})")
_IMB_HEAD = re.compile(r"\s*#bytes\s+#repetitions\s+(\S.*)")
_IMB_ROW = re.compile(r"\s*(\d{1,12})\s+\d{1,9}((?:\s+\d{1,12}\.\d{1,9})+)\s*$")


def _imb(seen: TextScan) -> None:
    """Reads the tests of the Intel MPI Benchmarks that have a rate, in 10^6 bytes/s. Exchanges of
    several messages at once count them all."""
    test, names = "", list[str]()
    for _, match in seen.each(_IMB, _IMB_TEST, _IMB_HEAD, _IMB_ROW, _COMMENT):
        if match.re is _IMB_TEST:
            test, names = match[1], []
        elif match.re is _IMB_HEAD:
            names = match[1].split()
        elif match.re is _IMB_ROW and test and int(match[1]):
            found = dict(zip(names, map(float, match[2].split()), strict=False))
            if rate := found.get("Mbytes/sec"):
                name = f"imb_{test.lower()}"
                seen.figures.append(_figure(name, int(match[1]), rate * 1e6, _MESSAGES))
    seen.log("Intel MPI Benchmarks", seen.first(_IMB))


_UCX_HEAD = re.compile(r".*\|\s+bandwidth \(MB/s\)\s*\|\s*message rate")
_UCX_ROW = re.compile(
    rf"\s*(Final:|\[thread \d+\])?\s*(\d{{1,12}})((?:\s+{DECIMAL}){{5}})"
    r"\s+(\d{1,15})\s+(\d{1,15})\s*$"
)
_UCX_TEST = re.compile(r".*?(?:\bTest:\s+|\s-t )(\w{3,40})|[| ]*(\w*(?:tag|am|put|get)\w*_bw)\b")
_UCX_SIZE = re.compile(r".*?(?:Message size:\s+| -s )(\d{1,14})\b")
_UCX_MORE = re.compile(r"\s*[+|]|\[\d+\.\d+\] ")


def _ucx(seen: TextScan) -> None:
    """Reads ucx_perftest, whose MB are MiB. The last line of a test counts. A rate by the rate of
    messages gives their size if no line does."""
    if not seen.has(_UCX_HEAD):
        return
    test, last = seen.first(_UCX_TEST) or "bandwidth", None
    size = int(seen.first(_UCX_SIZE, "0"))
    for _, match in seen.each(_UCX_ROW, _UCX_HEAD, _UCX_TEST, _UCX_SIZE, _UCX_MORE):
        last = match if match.re is _UCX_ROW else last
    if last is not None:
        rate, messages = float(last[3].split()[-1]) * (1 << 20), int(last[5])
        size = size or (round(rate / messages) if messages else 1)
        seen.figures.append(_figure(f"ucx_{test}", size, rate, _MESSAGES))
    seen.log("ucx_perftest")


_NIXL_HEAD = re.compile(r"\s*(Block Size \(B\)\s+Batch Size\s.{10,300})")
_NIXL_ROW = re.compile(r"\s*(\d{1,13}\s+\d{1,9}(?:\s+[\d.e+-]{1,20}){2,12})\s*$")
_NIXL_SET = re.compile(r".{0,30}\(--op_type=.{0,20}\)\s*: (READ|WRITE)")
_NIXL_MORE = re.compile(r"[*-]{20,}$|NIXLBench|.{2,40}\(--\w{2,40}=.{0,80}: ")


def _nixl(seen: TextScan) -> None:
    """Reads nixlbench, by the names of its columns, which stand two spaces apart."""
    names, name = list[str](), f"nixl_{seen.first(_NIXL_SET, 'WRITE').lower()}"
    for _, match in seen.each(_NIXL_HEAD, _NIXL_ROW) if seen.has(_NIXL_HEAD) else ():
        if match.re is _NIXL_HEAD:
            names = re.split(r"\s{2,}", match[1].strip())
            continue
        found = dict(zip(names, map(number_of, match[1].split()), strict=False))
        if rate := found.get("B/W (GB/Sec)"):
            seen.figures.append(_figure(name, int(match[1].split()[0]), rate * 1e9, _MESSAGES))
    if seen.figures:
        seen.used.update(number for number, _ in seen.each(_NIXL_MORE))
    seen.log("nixlbench")


READERS = (_perftest, _perftest_json, _iperf3, _iperf3_text, _osu, _imb, _ucx, _nixl)
