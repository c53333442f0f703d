"""Reads tools between two hosts: perftest, iperf3, OSU, IMB, ucx_perftest and nixlbench. They do
not say what the network should reach."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY

from ..facts import HostFigure, ReportedFigure
from ..lines import DECIMAL, number_of, scale_of
from ..scan import TextScan

_BETWEEN = "host:0@0 -> host:0@1 by {}"
_RDMA, _TCP, _MESSAGES = "nic:0@0.rdma", "nic:0@0.tcp", "host:0@0.msg"


def _figure(
    name: str, size: int, figure: float, engine: str = _RDMA, column: object = None
) -> ReportedFigure:
    """Returns a time in s, if the name ends so, or a rate in bytes/s, from host 0 to host 1."""
    of = (LATENCY.symbol, Report.LATENCY) if name.endswith(("lat", "latency")) else ()
    cell = HostFigure(_BETWEEN.format(engine), *of)
    return ReportedFigure(name, "0", str(column or 1), figure, max(size, 1), host=cell)


def loopback(verb: str, size: int, gigabytes: float, adapter: str) -> ReportedFigure:
    return _figure(f"rdma_{verb}_bw", size, gigabytes * 1e9, column=adapter)


def _names(test: str) -> str:
    kind = re.sub(r"[^a-z]", "", test.lower().removeprefix("rdma"))
    return {"write": "rdma_write", "read": "rdma_read"}.get(kind, "rdma_send")


_PERF_UNITS = {"Gb/sec": 1e9 / 8, "MiB/sec": 2.0**20, "MB/sec": 2.0**20}  # which are MiB there
_PERF_SET = {"qps": "qps", "mtu": "Mtu", "device": "CUDA device"}
_PERF_TIMES = ("t_typical[usec]", "t_avg[usec]")


def _perftest(seen: TextScan) -> None:
    settings = dict[str, str]()
    for said in seen.rows(
        r"\s*(?P<test>(?i:RDMA_(?:Write|Read)|Send|Raw_?Ethernet\w*))[ _](?:.{0,30})?"
        r"(?i:BW|Bidirectional BW|Latency)[ _](?i:Test)",
        r"\s*#(?P<columns>bytes(?:\s+#?iterations)?\s+(?:BW |t_|MsgRate).{0,400})",
        r"\s*(?P<cells>\d{1,13}(?:\s+[\d.]{1,20}){2,}).*",
        r".{0,80}?(?P<failed>VALIDATION: (?:FAILED|ERROR).{0,200})",
        r"Picking device No\. (?P<device>\d{1,3})",
        r"\s*Mtu\s*: (?P<mtu>\d{2,5})\[B\]",
        r"\s*Number of qps\s*: (?P<qps>\d{1,5})",
        test="RDMA_Write",
    ):
        name = _names(said["test"])
        settings |= {name: said[key] for key, name in _PERF_SET.items() if key in said}
        size = int(said["cells"].split()[0])
        figures = {column: number_of(cell) for column, cell in said.items()}
        time = next((figures[key] for key in _PERF_TIMES if key in figures), None)
        unit = next((one for one in _PERF_UNITS if f"BW average[{one}]" in said), "")
        rate = figures.get(f"BW average[{unit}]")
        if not 0 < size < 1 << 40:
            continue
        if time is not None:
            seen.figures.append(_figure(f"{name}_lat", size, time * 1e-6))
        elif rate is not None:
            seen.figures.append(_figure(f"{name}_bw", size, rate * _PERF_UNITS[unit]))
    seen.log("perftest", settings=settings)


def _perftest_json(seen: TextScan) -> None:
    for document in seen.documents("test_info"):
        test, unit = (_at(document, "test_info", key) for key in ("test", "BW_unit"))
        name = _names(str(test or "").partition("_BW")[0].partition("_Lat")[0])
        size, rate, time = (
            _float(_at(document, "results", key)) for key in ("MsgSize", "BW_average", "t_avg")
        )
        if size and rate:
            scale = _PERF_UNITS.get(str(unit), 2.0**20)
            seen.figures.append(_figure(f"{name}_bw", int(size), rate * scale))
        if size and time:
            seen.figures.append(_figure(f"{name}_lat", int(size), time * 1e-6))
    seen.log("perftest")


def _at(document: Any, *keys: str) -> Any:
    for key in keys:
        document = document.get(key) if isinstance(document, Mapping) else None
    return document


def _float(value: Any) -> float | None:
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
    """The sum of several streams counts, or a single stream. Ctrl-C is no `error - `."""
    rates, again = dict[str, float](), 0
    for said in seen.rows(
        r"\s*\[\s*(?P<stream>SUM|\d{1,4})\]\s+0\.00-\s*[\d.]{1,12}\s+sec\s+\S+ \S?Bytes\s+"
        r"(?P<rate>[\d.]{1,14}) (?P<unit>[KMGT]?)bits/sec.*(?P<end>receiver)",
        r"\s*\[\s*(?:SUM|\d{1,4})\]\s+0\.00-.{10,60}bits/sec\s+(?P<rate>\d{1,9})\s+(?P<end>sender)",
        r"\s*iperf3: (?P<failed>error - .{1,200})",
    ):
        if said["end"] == "sender":
            again = max(again, int(said["rate"]))
        else:
            rate = (number_of(said["rate"]) or 0.0) * scale_of(said["unit"]) / 8
            rates.setdefault(said["stream"], rate)
    if rates:
        rate, streams = rates.get("SUM", next(iter(rates.values()))), len(rates.keys() - {"SUM"})
        seen.figures.append(_figure("nic_tcp_iperf3", 128 << 10, rate, _TCP, max(streams, 1)))
    seen.log("iperf3", settings={"retransmits": str(again)} if again and rates else {})


_OSU = {
    "Latency": ("osu_latency", 1e-6), "Bandwidth": ("osu_bw", 1e6),
    "Bi-Directional Bandwidth": ("osu_bibw", 1e6),
}  # fmt: skip
_OSU_ERROR = r"\s*(DATA VALIDATION ERROR:.{1,200})"


def _osu(seen: TextScan) -> None:
    said, runs = dict[str, str](), Counter[object]()
    for said in seen.rows(
        r"#\s*OSU MPI.{0,40}?(?P<test>Bi-Directional Bandwidth|Bandwidth|Latency) Test"
        r"(?:\s+v(?P<version>\S{1,12}))?",
        r"#.* Buffer on \w+ \((?P<from>\w)\) and Receive Buffer on \w+ \((?P<to>\w)\)",
        rf"\s*(?P<size>\d{{1,12}})\s+(?P<rate>{DECIMAL})(?P<result>(?:\s+(?:Pass|Fail))?)"
        rf"(?:\s+{DECIMAL}){{0,8}}\s*$",
        _OSU_ERROR, "#",
    ):  # fmt: skip
        test, size, first = said.get("test"), int(said["size"]), len(seen.figures)
        if test is None:
            continue
        runs[test, size] += 1
        again = f"1, run {runs[test, size]}" if runs[test, size] > 1 else None
        name, scale = _OSU[test]
        if size or test == "Latency":
            rate = float(said["rate"]) * scale
            seen.figures.append(_figure(name, size, rate, _MESSAGES, again))
        if "Fail" in said["result"]:
            seen.fail("Validation: Fail", f"OSU {test} test", first)
    error = seen.first(re.compile(_OSU_ERROR))
    if error and not any(one.failure for one in seen.figures):  # else the column tells which
        seen.fail(error)
    settings = {"buffers": f"{said['from']} {said['to']}"} if "from" in said else {}
    seen.log("OSU micro-benchmarks", said.get("version"), settings=settings)


def _imb(seen: TextScan) -> None:
    """Rates are in 10^6 bytes/s, of all messages at once."""
    said = dict[str, str]()
    for said in seen.rows(
        r".*?Intel\(R\) MPI Benchmarks (?P<version>[\w.]{1,12})",
        r"\s*#\s*Benchmarking (?P<test>\w{1,30})(?P<columns>)",
        r"\s*#(?P<columns>bytes\s+#repetitions\s+\S.*)",
        r"\s*(?P<cells>\d{1,12}\s+\d{1,9}(?:\s+\d{1,12}\.\d{1,9})+)\s*$",
    ):
        if int(said.get("bytes", "0")) and (rate := float(said.get("Mbytes/sec", "0"))):
            name = f"imb_{said.get('test', '').lower()}"
            seen.figures.append(_figure(name, int(said["bytes"]), rate * 1e6, _MESSAGES))
    seen.log("Intel MPI Benchmarks", said.get("version"))


_UCX_TEST = re.compile(
    r".*?(?:\bTest:\s+|\s-t |^[|= ]*(?=\w*(?:tag|am|put|get)\w*_bw\b))(\w{3,40})"
)
_UCX_SIZE = re.compile(r".*?(?:Message size:\s+| -s [\"']?)(\d{1,14})\b")


def _ucx(seen: TextScan) -> None:
    """MB are MiB. The last line counts. The rate of messages gives a size that no line does."""
    rows = [*seen.rows(
        r"\s*(?:Final:|\[thread \d+\])?\s*\d{1,12}"
        rf"(?:\s+{DECIMAL}){{4}}\s+(?P<rate>{DECIMAL})\s+\d{{1,15}}\s+(?P<messages>\d{{1,15}})\s*$",
        _UCX_TEST.pattern, _UCX_SIZE.pattern,
    )]  # fmt: skip
    for said in rows[-1:]:
        rate, messages = float(said["rate"]) * (1 << 20), int(said["messages"])
        size = int(seen.first(_UCX_SIZE, "0")) or (round(rate / messages) if messages else 1)
        name = f"ucx_{seen.first(_UCX_TEST) or 'bandwidth'}"
        seen.figures.append(_figure(name, size, rate, _MESSAGES))
    seen.log("ucx_perftest")


def _nixl(seen: TextScan) -> None:
    """The names of columns stand two spaces apart."""
    for said in seen.rows(
        r"\s*(?P<columns>Block Size \(B\)\s+Batch Size\s.{10,300})",
        r"\s*(?P<cells>\d{1,13}\s+\d{1,9}(?:\s+[\d.e+-]{1,20}){2,12})\s*$",
        r".{0,30}\(--op_type=.{0,20}\)\s*: (?P<way>READ|WRITE)",
        way="WRITE",
    ):
        size, rate = (number_of(said.get(key, "")) for key in ("Block Size (B)", "B/W (GB/Sec)"))
        if size and rate:
            name = f"nixl_{said['way'].lower()}"
            seen.figures.append(_figure(name, int(size), rate * 1e9, _MESSAGES))
    seen.log("nixlbench")


READERS = {
    _perftest: ("#bytes", "VALIDATION: "), _perftest_json: ('"test_info"',),
    _iperf3: ('"start"',), _iperf3_text: ("bits/sec", "iperf3: error"),
    _osu: ("OSU MPI", "DATA VALIDATION"), _imb: ("#repetitions",),
    _ucx: ("message rate",), _nixl: ("Block Size (B)",),
}  # fmt: skip
