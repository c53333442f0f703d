"""Reads perftest, iperf3, OSU, IMB, ucx_perftest and nixlbench, without an expected rate."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from statistics import fmean

from linkgauge.model.grouped import grouped
from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY

from ..facts import HostFigure, ReportedFigure
from ..lines import DECIMAL, at, number_at, number_of, scale_of
from ..scan import TextScan, rates

_BETWEEN = "host:0@0 -> host:0@1 by {}"
_RDMA, _TCP, _MESSAGES = "nic:0@0.rdma", "nic:0@0.tcp", "host:0@0.msg"


def sent(
    name: str, size: int, figure: float, engine: str = _RDMA, column: object = None
) -> ReportedFigure:
    """Returns a figure in seconds if `name` ends in lat or latency, else in bytes/s."""
    of = (LATENCY.symbol, Report.LATENCY) if name.endswith(("lat", "latency")) else ()
    cell = HostFigure(_BETWEEN.format(engine), *of)
    return ReportedFigure(name, "0", str(column or 1), figure, max(size, 1), host=cell)


def _name(test: str) -> str:
    said = test.lower().removeprefix("rdma_")
    verb = next((f"{one}_" for one in ("write", "read") if said.startswith(one)), "send_")
    return f"rdma_{verb if said else ''}{'bibw' if 'bidirectional' in said else 'bw'}"


_PERF_UNITS = {"Gb/sec": 1e9 / 8, "MiB/sec": 2.0**20, "MB/sec": 2.0**20}  # which are MiB there
_PERF_SET = {"qps": "qps", "mtu": "Mtu", "device": "CUDA device", "soft": "software"}


def _perf(seen: TextScan, test: str, size: float, time: float, rate: float, unit: str) -> None:
    name, figure = _name(test), rate * _PERF_UNITS.get(unit, 2.0**20)
    if time:
        name, figure = re.sub("(?:bi)?bw$", "lat", name), time * 1e-6
    if 0 < size < 1 << 40 and figure:
        seen.figures.append(sent(name, int(size), figure))


_PERF_COMMAND = re.compile(
    r"(?:.{0,80}[$#] |\s*(?:mpirun|srun) .{0,200})?\s*ib_\w{4,5}_(?:bw|lat)\b"
)
_PROMPT = re.compile(r".{0,80}[$#] ")
_ENDED = re.compile(
    r"\s*((?:ethernet_\w{4,20}: )?"
    r"(?:Couldn't|[Ff]ailed to|Unable to|Completion with error|Failed status) .{2,120})"
)


def _why_ended(lines: Sequence[str]) -> str:
    """Returns what ended a run without figures: the first such words that follow its command."""
    is_own = False
    for line in lines:
        if _PERF_COMMAND.match(line):
            is_own = True
        elif _PROMPT.match(line):
            is_own = False
        elif is_own and (match := _ENDED.match(line)):
            return match[1]
    return ""


def _perftest(seen: TextScan) -> None:
    settings = dict[str, str]()
    for document in seen.documents("test_info"):
        test, unit = (at(document, str, "test_info", key) for key in ("test", "BW_unit"))
        keys = ("MsgSize", "t_avg", "BW_average")
        size, time, rate = (number_at(document, "results", key) for key in keys)
        _perf(seen, test, size, time, rate, unit)
    for said in seen.rows(
        r"\s*(?P<test>(?i:RDMA_(?:Write|Read)|Send|Raw_?Ethernet\w*)[ _].{0,45}?)"
        r"(?i:BW|Latency)[ _](?i:Test)",
        r".{0,200}?\bib_(?P<test>write|read|send)_(?:bw|lat)\b",
        r"\s*#(?P<columns>bytes(?:\s+#?iterations)?\s+(?:BW |t_|MsgRate).{0,400})",
        r"\s*(?P<cells>(?P<size>\d{1,13})(?:\s+[\d.]{1,20}){2,}).*",
        r".{0,80}?(?P<failed>VALIDATION: (?:FAILED|ERROR).{0,200})",
        r"Picking device No\. (?P<device>\d{1,3})",
        r"\s*Mtu\s*: (?P<mtu>\d{2,5})\[B\]",
        r".{0,60}\bDevice\s*: (?P<soft>(?:rxe|siw)\w{0,20})",
        r"\s*Number of qps\s*: (?P<qps>\d{1,5})",
        r"\s*local address:.{0,40}?(?P<local>QPN \w{1,12},? PSN \w{1,12})",
        r"\s*remote address:.{0,40}?(?P<remote>QPN \w{1,12},? PSN \w{1,12})",
        test="RDMA_",
    ):
        settings |= {name: said[key] for key, name in _PERF_SET.items() if key in said}
        unit = next((one for one in _PERF_UNITS if f"BW average[{one}]" in said), "")
        times = said.get("t_typical[usec]") or said.get("t_avg[usec]", "")
        time, rate = (number_of(one) or 0.0 for one in (times, said.get(f"BW average[{unit}]", "")))
        _perf(seen, said["test"], int(said["size"]), time, rate, unit)
    if not seen.figures and not seen.failures and (why := _why_ended(seen.lines)):
        seen.fail(why)
    seen.log("perftest", settings=settings)


_BACK = "Reverse mode"


def _tcp(seen: TextScan, rate: float, streams: float, role: str = "") -> None:
    if rate:
        name = "nic_tcp_iperf3" + "_back" * role.startswith(("[RX", _BACK))
        seen.figures.append(sent(name, 128 << 10, rate / 8, _TCP, max(int(streams), 1)))


_STREAM = r"\s*\[\s*(?P<stream>SUM|\d{1,4})\](?P<role>(?:\[[TR]X-\w\])?)\s+"
"""A stream, and with --bidir its direction."""
_RATE = r"\s*[\d.]{1,12}\s+sec\s+\S+ \S?Bytes\s+(?P<rate>[\d.]{1,14}) (?P<unit>[KMGT]?)bits/sec"
_INTERVAL = re.compile(rf"{_STREAM}\d[\d.]{{0,12}}-{_RATE}")


def _iperf3(seen: TextScan) -> None:
    """Reads receivers' rates, or senders' where Ctrl-C left receivers none, or the mean of all
    intervals where the text ends before. Another run begins when a stream ends again."""
    runs, version, again = list[dict[tuple[str, str, str], tuple[float, int]]](), "", 0.0
    for document in seen.documents("start"):
        received = at(document, dict, "end", "sum_received") or at(document, dict, "end", "sum")
        streams = number_at(document, "start", "test_start", "num_streams")
        is_back = number_at(document, "start", "test_start", "reverse")
        _tcp(seen, number_at(received, "bits_per_second"), streams, _BACK * bool(is_back))
        again += number_at(document, "end", "sum_sent", "retransmits")
        version = at(document, str, "start", "version").removeprefix("iperf ")[:20]
        if (error := at(document, str, "error")).startswith("error - "):
            seen.fail(error)
    for said in seen.rows(
        rf"{_STREAM}0\.00-{_RATE}\s*(?P<again>(?:\d{{1,9}}(?![\d.]))?).*(?P<end>receiver|sender)",
        r"\s*iperf3: (?P<failed>error - .{1,200})",
        r"Connecting to host (?P<back>)", rf"(?P<back>{_BACK}), ",
        r"\s*\[.{1,5}\] local (?P<local>\S{1,45} port \d{1,5}) connected to "
        r"(?P<remote>\S{1,45} port \d{1,5})", back="",
    ):  # fmt: skip
        key = said["role"] or said["back"], said["stream"], said["end"]
        runs += [{}] if not runs or key in runs[-1] else []
        rate = (number_of(said["rate"]) or 0.0) * scale_of(said["unit"])
        runs[-1][key] = rate, int(said["again"] or 0) if said["end"] == "sender" else 0
    if not runs and not seen.figures:
        back = _BACK * any(line.startswith(_BACK) for line in seen.lines)
        each = grouped(
            (
                (own["role"] or back, own["stream"], "sender"),
                float(own["rate"]) * scale_of(own["unit"]),
            )
            for _, own in seen.each(_INTERVAL)
        )
        if each:
            runs = [{key: (fmean(rates), 0) for key, rates in each.items()}]
            seen.remarks.append("iperf3's own sum is missing: the mean of the intervals counts")
    for run in runs:
        for role in dict.fromkeys(role for role, *_ in run):
            for side in ("receiver", "sender"):
                own = {stream: rate for (way, stream, end), (rate, _) in run.items()
                       if (way, end) == (role, side)}  # fmt: skip
                if rate := own.get("SUM", next(iter(own.values()), 0.0)):
                    _tcp(seen, rate, len(own.keys() - {"SUM"}), role)
                    break
        again += max(count for _, count in run.values())
    settings = {"retransmits": f"{again:.0f}"} if again and seen.figures else {}
    seen.log("iperf3", version, settings=settings)


_OSU = {
    "Latency": ("osu_latency", 1e-6), "Bandwidth": ("osu_bw", 1e6),
    "Bi-Directional Bandwidth": ("osu_bibw", 1e6),
    "Multiple Bandwidth / Message Rate": ("osu_mbw_mr", 1e6),
}  # fmt: skip
_OSU_TESTS = _OSU | {one[0].removeprefix("osu_"): one for one in _OSU.values()}
"""The benchmarks by the words of their heads, and also of their commands."""
_OSU_HEAD = (
    rf"\s*#\s*OSU MPI.{{0,40}}?(?P<test>{'|'.join(reversed(_OSU))}) Test"
    r"(?:\s+v(?P<version>\S{1,12}))?"
)
_OSU_ERROR = r"\s*(DATA VALIDATION ERROR:.{1,200})"


def _osu(seen: TextScan) -> None:
    said = dict[str, str]()
    for said in seen.rows(
        _OSU_HEAD,
        r"\s*#.* Buffer on \w+ \((?P<from>\w)\) and Receive Buffer on \w+ \((?P<to>\w)\)",
        r".{0,400}?\bosu_(?:put_|get_)?(?P<test>\w{1,20})"
        r"(?: (?:.{0,200} )?(?P<from>[DHM])\s+(?P<to>[DHM])\s*$)?",
        rf"\s*(?P<size>\d{{1,12}})\s+(?P<rate>{DECIMAL})(?P<result>(?:\s+(?:Pass|Fail))?)"
        rf"(?:\s+{DECIMAL}){{0,8}}\s*$",
        _OSU_ERROR, r"\s*#",
    ):  # fmt: skip
        test, size, first = said.get("test"), int(said["size"]), len(seen.figures)
        if test not in _OSU_TESTS:
            continue
        name, scale = _OSU_TESTS[test]
        if size or name == "osu_latency":
            rate, column = float(said["rate"]) * scale, "1" if size else "1, no bytes"
            seen.figures.append(sent(name, size, rate, _MESSAGES, column))
        if "Fail" in said["result"]:
            seen.fail("Validation: Fail", f"OSU {test} test", seen.since(first))
    error = seen.first(re.compile(_OSU_ERROR))
    if error and not any(one.failure for one in seen.figures):  # else the column tells which
        seen.fail(error)
    settings = {"buffers": f"{said['from']} {said['to']}"} if "from" in said else {}
    is_there = seen.first(re.compile(_OSU_HEAD))
    seen.log("OSU micro-benchmarks", sure=is_there, settings=settings)


def _message(_: object) -> HostFigure:
    return HostFigure(_BETWEEN.format(_MESSAGES))


_imb = rates(  # of all messages at once
    "Intel MPI Benchmarks", "imb_{test}", "1", _message,
    r".*?Intel\(R\) MPI Benchmarks (?P<version>[\w.]{1,12})",
    r"\s*#\s*Benchmarking (?P<test>\w{1,30})(?P<columns>)",
    r"\s*#(?P<columns>bytes\s+#repetitions\s+\S.*)",
    r"\s*(?P<cells>(?P<size>\d{1,12})\s+\d{1,9}(?:\s+\d{1,12}\.\d{1,9})+)\s*$",
    rate="Mbytes/sec", unit="M", row="0", test="",
)  # fmt: skip


_UCX_SIZE = r"\d{1,14}(?: ?\* ?\d{1,9}){0,4}\b"
_UCX_COMMAND = (
    r"(?:(?=.*?\bUCX_TLS=(?P<ways>[\w,^]{1,200})))?"
    rf"(?=(?:.*? -s [\"']?(?:\$\(\( ?)?(?=\d))?(?P<size>(?:(?<=[ \"'(]){_UCX_SIZE})?))"
    r".*?\s-t (?P<test>[a-z]\w{2,40})"
)
_UCX_TITLE = r".*?\bTest:\s+(?P<title>\w{3,40})"
_UCX_DEVICE = re.compile(r".*?(?:\s-m |(?:Send|Recv) memory:\s+)(cuda|rocm|ze)")
_UCX_TCP = re.compile(r"(?!.*(?:\b(?:rc|ud|dc|ib|srd|all)|\^)).*\btcp\b")


def _ucx(seen: TextScan) -> None:
    """Reads the last line of each run of ucx_perftest, in MiB/s. Without a size, the message rate
    gives one."""
    is_done = True
    for said in seen.rows(
        r"\s*(?P<end>Final:|(?:\[thread \d+\])?)\s*\d{1,12}"
        rf"(?:\s+{DECIMAL}){{4}}\s+(?P<rate>{DECIMAL})\s+\d{{1,15}}\s+(?P<messages>\d{{1,15}})\s*$",
        _UCX_COMMAND, r".*?\bUCX_TLS=(?P<ways>[\w,^]{1,200})", _UCX_TITLE,
        r"[|= ]*(?=\w*(?:tag|am|put|get)\w*_bw\b)(?P<test>\w{3,40})",
        rf".*?(?:Message size:\s+| -s [\"']?(?:\$\(\( ?)?)(?P<size>{_UCX_SIZE})",
        ways="", test="", title="bandwidth", size="",
    ):  # fmt: skip
        del seen.figures[len(seen.figures) - (not is_done) :]
        is_done = said["end"] == "Final:"
        rate, messages = float(said["rate"]) * (1 << 20), int(said["messages"])
        size = math.prod(map(int, re.findall(r"\d+", said["size"] or "0")))
        size = size or (round(rate / messages) if messages else 1)
        by = "_tcp" if _UCX_TCP.match(said["ways"]) else ""
        seen.figures.append(sent(f"ucx_{said['test'] or said['title']}{by}", size, rate, _MESSAGES))
    settings = {"buffers": "D D"} if seen.first(_UCX_DEVICE) else {}
    seen.log("ucx_perftest", settings=settings)


_nixl = rates(  # whose names of columns stand two spaces apart
    "nixlbench", "nixl_{way}", "1", _message,
    r"\s*(?P<columns>Block Size \(B\)\s+Batch Size\s.{10,300})",
    r"\s*(?P<cells>(?P<size>\d{1,13})\s+\d{1,9}(?:\s+[\d.e+-]{1,20}){2,12})\s*$",
    r".{0,30}\(--op_type=.{0,20}\)\s*: (?P<way>READ|WRITE)",
    rate="B/W (GB/Sec)", unit="G", row="0", way="WRITE",
)  # fmt: skip


READERS = {
    _perftest: ("#bytes", "VALIDATION: ", '"test_info"', "ib_read_", "ib_write_", "ib_send_"),
    _iperf3: ('"start"', "bits/sec", "iperf3: error"),
    _osu: ("OSU MPI", "DATA VALIDATION", "osu_"), _imb: ("#repetitions",),
    _ucx: ("message rate",), _nixl: ("Block Size (B)",),
}  # fmt: skip
