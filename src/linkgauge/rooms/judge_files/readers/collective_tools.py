"""Reads all_reduce_bench.py, hccl_demo, HCCL Test, SuperBench and rccl-tests' file. In
most, the ratio of bus to algorithm bandwidth gives the number of ranks."""

from __future__ import annotations

import re
from collections.abc import Mapping

from linkgauge.model.operations.collective import CollectiveName, bus_factor

from ..facts import MIB, copied
from ..lines import DECIMAL, scale_of
from ..scan import Reader, TextScan
from .nccl import KINDS, NAMES, TYPES, Call, note, ranks_by_speeds
from .network_tools import sent


def _by_rates(tool: str, vendor: str | None, *patterns: str, **usual: str) -> Reader:
    """Returns a reader of lines with a collective's `rate` and its rate on the `bus`."""

    def read(seen: TextScan) -> None:
        calls = dict[CollectiveName, list[Call]]()
        for said in seen.rows(*patterns, **usual):
            name, kind = NAMES.get(said["test"].lower()), TYPES.get(said["type"])
            size = round(float(said["size"]) * scale_of(said["prefix"]))
            ways = (said["bus"], said["of_bus"]), (said["rate"], said["unit"])
            bus, rate = (float(one or 0) * scale_of(unit) / 1e9 for one, unit in ways)
            if name and kind and size and rate and bus:
                call = Call(size, kind, "sum", 0, size / rate / 1e9, algbw=rate, busbw=bus)
                calls.setdefault(name, []).append(call)
        for name, own in calls.items():
            note(seen, name, own, ranks_by_speeds(name, own))
        seen.log(tool, vendor=vendor)

    return read


_all_reduce_bench = _by_rates(
    "all_reduce_bench", None,
    rf"\s*\| *(?P<size>{DECIMAL})(?P<prefix>[KMGT]i|)B *\| *(?P<bus>{DECIMAL})GBps *"
    rf"\| *(?P<rate>{DECIMAL})GBps *\|",
    r"\s*\| *payload *\| *busbw *\| *algbw *\|",
    r"\s*\|[ :|-]+\|\s*$",
    test="allreduce", type="float", of_bus="G", unit="G",
)  # fmt: skip
_hccl_demo = _by_rates(
    "hccl_demo", "habana",
    r".{0,80}?\[BENCHMARK\] hccl(?P<test>\w{4,20})\(.{0,20}?data_?[Ss]ize=(?P<size>\d{1,15}),"
    r".*?dtype=(?P<type>\w{1,10})(?P<bus>)",
    rf".{{0,80}}?\[BENCHMARK\]\s+NW Bandwidth\s*: (?P<bus>{DECIMAL}) (?P<of_bus>[KMG]?)B/s",
    rf".{{0,80}}?\[BENCHMARK\]\s+Algo Bandwidth\s*: (?P<rate>{DECIMAL}) (?P<unit>[KMG]?)B/s",
    test="", type="", size="0", prefix="", bus="", of_bus="",
)  # fmt: skip


def _hccl_test(seen: TextScan) -> None:
    """Reads times of Ascend's HCCL Test, whose GB/s are GiB/s."""
    for said in seen.rows(
        r".{0,300}? -n ?(?P<ranks>\d{1,4}) .{0,300}?(?P<test>[a-z_]{6,20})_test\b",
        rf"[\s|]*(?P<size>\d{{1,15}}) *\| *(?P<rate>{DECIMAL}) *\| *{DECIMAL} *\| *(?P<check>\w+)",
        r"the minbytes is|\|? *data_size", test="all_reduce", ranks="0",
    ):  # fmt: skip
        first, name = len(seen.figures), NAMES.get(said["test"].replace("_", ""))
        if name and (time := float(said["rate"]) * 1e-6):
            note(seen, name, [Call(int(said["size"]), "float", "sum", 0, time)], int(said["ranks"]))
        if "fail" in said["check"].lower():
            seen.fail(f"check_result: {said['check']}", name or "", seen.since(first))
    seen.log("HCCL Test", vendor="huawei")


# SuperBench, in GB/s.

_COPY = re.compile(r"mem-bw/(H2D|D2H|D2D)_Mem_BW:(\d{1,3})")
_CALL = re.compile(r"[nr]ccl-bw.{0,40}/(\w{4,20}?)_(\d{1,15})_(busbw|algbw):0")
_LOOPBACK = re.compile(r"ib-loopback.{0,40}/IB_(write|read|send)_(\d{1,13})_Avg_(\d{1,3}):\d{1,3}")
_SIZE = 64 * MIB
_LEFT = "left out: nodes are judged one by one, so give the line of each alone"


def _superbench(seen: TextScan) -> None:
    nodes = [one for one in seen.documents("node") if any("/" in key for key in one)]
    if not nodes:
        return
    devices, rates = set[int](), dict[tuple[str, int], dict[str, float]]()
    for key, rate in nodes[0].items():
        if not isinstance(rate, int | float) or not 0 < rate < 1e12:
            continue
        if match := _COPY.fullmatch(key):
            place = int(match[2])
            source, to = (None if end == "H" else place for end in (match[1][0], match[1][2]))
            seen.figures.append(copied(source, to, rate, _SIZE))
            devices.add(place)
        elif match := _LOOPBACK.fullmatch(key):
            name, adapter = f"rdma_{match[1]}_bw", f"adapter {match[3]}"
            seen.figures.append(sent(name, int(match[2]), rate * 1e9, column=adapter))
        elif match := _CALL.fullmatch(key):
            rates.setdefault((match[1], int(match[2])), {})[match[3]] = rate
    _calls_of_node(seen, rates, len(devices))
    seen.remarks += [f"{len(nodes) - 1} more nodes {_LEFT}"] if len(nodes) > 1 else []
    seen.hosts = (str(nodes[0]["node"])[:80],)
    seen.log("SuperBench")


def _calls_of_node(
    seen: TextScan, rates: Mapping[tuple[str, int], Mapping[str, float]], devices: int
) -> None:
    """Notes a collective's calls. Both rates show the number of ranks, else it is `devices`."""
    for (word, size), both in rates.items():
        name, bus = NAMES.get(word.replace("_", "")), both.get("busbw", 0.0)
        if name is None or not bus or not size:
            continue
        call = Call(size, "float", "sum", 0, 1.0, algbw=both.get("algbw", 0.0), busbw=bus)
        if (ranks := ranks_by_speeds(name, [call]) or devices) > 1:
            seconds = size * bus_factor(name, ranks) / bus / 1e9
            note(seen, name, [call._replace(seconds=seconds)], ranks)


# The file of rccl-tests.

_NEXT = r', ?(?:"\w{1,16}":)?'
_IN_PARTS = ("reduce_scatter", "scatter")


def _read_report(seen: TextScan) -> None:
    """Reads rccl-tests' file. For the collectives in `_IN_PARTS`, a size is that of one rank."""
    for said in seen.rows(
        r'\{?(?:"numCycle":)?\d{1,9}' + _NEXT + r'"(?P<test>\w{1,20})"(?P<places>(?:' + _NEXT
        + r"\d{1,16}){2,5})" + _NEXT + r'"(?P<type>\w{1,12})"' + _NEXT + r'"(?P<redop>\w{0,12})"'
        + _NEXT + "(?P<inside>[01])" + _NEXT + r"(?P<rate>\d{1,14}\.\d{1,9})"
        + (_NEXT + r"[\d.]{1,24}") * 2 + _NEXT + r'"(?P<wrong>\d{1,18}|N/A)"',
        r"numCycle,collective,|\s*[\[\]]\s*$",
    ):  # fmt: skip
        name, kind = NAMES.get(said["test"].lower()), TYPES.get(said["type"])
        if name is None or kind is None:
            continue
        *places, size = (int(number) for number in re.findall(r"\d+(?=[,\s]|$)", said["places"]))
        ranks = places[1] if len(places) > 1 else places[0]
        size = size * (ranks if name in _IN_PARTS else 1)
        wrong = "" if said["wrong"] in ("0", "N/A") else said["wrong"]
        about = size, kind, KINDS.get(said["redop"]), 0, float(said["rate"]) / 1e6
        note(seen, name, [Call(*about, said["inside"] == "1", wrong)], ranks)
    seen.log("rccl-tests", vendor="amd")


READERS = {
    _all_reduce_bench: ("payload",), _hccl_demo: ("[BENCHMARK]",), _hccl_test: ("data_size(",),
    _superbench: ('"node"',), _read_report: ('","', '", "'),
}  # fmt: skip
