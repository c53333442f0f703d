"""Reads all_reduce_bench.py (ml-engineering) and Habana's hccl_demo. The ratio of both rates that
they print tells the number of ranks."""

from __future__ import annotations

from ..lines import DECIMAL, scale_of
from ..scan import TextScan
from .nccl import NAMES, Call, note, number_type, ranks_by_speeds


def _all_reduce_bench(seen: TextScan) -> None:
    calls = list[Call]()
    for said in seen.rows(
        rf"\s*\| *(?P<size>{DECIMAL})(?P<prefix>[KMGT]i|)B *\| *(?P<bus>{DECIMAL})GBps *"
        rf"\| *(?P<rate>{DECIMAL})GBps *\|",
        r"\s*\| *payload *\| *busbw *\| *algbw *\|",
        r"\s*\|[ :|-]+\|\s*$",
    ):
        size = round(float(said["size"]) * scale_of(said["prefix"]))
        calls += _calls(size, "float", float(said["rate"]), float(said["bus"]))
    note(seen, "all_reduce", calls, ranks_by_speeds("all_reduce", calls))
    seen.log("all_reduce_bench")


def _hccl_demo(seen: TextScan) -> None:
    for said in seen.rows(
        r".{0,80}?\[BENCHMARK\] hccl(?P<test>\w{4,20})\(.{0,20}?data_?[Ss]ize=(?P<size>\d{1,15}),"
        r".*?dtype=(?P<type>\w{1,10})(?P<bus>)",
        rf".{{0,80}}?\[BENCHMARK\]\s+NW Bandwidth\s*: (?P<bus>{DECIMAL}) (?P<of_bus>[KMG]?)B/s",
        rf".{{0,80}}?\[BENCHMARK\]\s+Algo Bandwidth\s*: (?P<rate>{DECIMAL}) (?P<unit>[KMG]?)B/s",
    ):
        if (name := NAMES.get(said.get("test", "").lower())) and said["bus"]:
            bus = float(said["bus"]) * scale_of(said["of_bus"]) / 1e9
            algorithm = float(said["rate"]) * scale_of(said["unit"]) / 1e9
            calls = _calls(int(said["size"]), said["type"], algorithm, bus)
            note(seen, name, calls, ranks_by_speeds(name, calls))
    seen.log("hccl_demo", vendor="habana")


def _calls(size: int, kind: str, algorithm: float, bus: float) -> list[Call]:
    number = number_type(kind)
    if not size or not algorithm or number is None:
        return []
    seconds = size / algorithm / 1e9
    return [Call(size, number, "sum", 0, seconds, algbw=algorithm, busbw=bus)]


READERS = {_all_reduce_bench: ("payload",), _hccl_demo: ("[BENCHMARK]",)}
