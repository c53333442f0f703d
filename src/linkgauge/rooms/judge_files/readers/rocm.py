"""Reads AMD's tools: rocm-bandwidth-test, rocm-smi, TransferBench and RVS."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import permutations

from msgspec.structs import replace

from linkgauge.model.grouped import grouped
from linkgauge.model.transfer import Report

from ..facts import MIB, HostFigure, ReportedFigure, ReportedGpu, copied
from ..lines import DECIMAL, number_of, words_of
from ..scan import Grid, TextScan

# rocm-bandwidth-test.

_SIZE = 128 * MIB
_CPU = re.compile(r"(?i)CPU|processor|EPYC|Xeon|Ryzen|Core\(|Opteron|POWER|Neoverse|Kunpeng")
_HIDES = 2.0
"""The ratio between both ways of a copy with a CPU, and between CPUs, that no link shows alone."""
_VALIDATION = "Data Path Validation: FAIL"


def _rocm_bandwidth_test(seen: TextScan) -> None:
    """Reads rocm-bandwidth-test, which adds up both directions, and counts local copies twice."""
    names, grids, wrong = dict[int, str](), list[tuple[Grid, bool]](), set[tuple[int, int]]()
    access = dict[tuple[int, int], float | None]()
    for number, own, _ in seen.marks(
        r"\s*RocmBandwidthTest Version: (?P<version>\S{1,40})",
        r"\s*(?P<ways>Uni|Bi?)directional (?:copy )?peak bandwidth GB/s\s*$",
        r"\s*Device: (?P<index>\d{1,3}),\s+(?P<name>[^,]{1,100}?)(?:,\s+(?:\S{4,60},\s+)?"
        r"(?P<bus>[0-9a-f]{1,4}):(?P<slot>[0-9a-f]{1,2})(?:\.(?P<function>[0-9a-f]))?)?\s*$",
        r"\s*(?P<other>(?:Inter-)?Device (?:Access|Numa Distance)|Launch Command|\.{4,}"
        r"|Data (?i:path|verification))",
        r"\s*(?P<row>\d{1,3})(?P<checked>(?:\s+(?:PASS|FAIL|N/A))+)\s*$",
    ):  # fmt: skip
        if "ways" in own:
            grids.append((seen.grid_below(number), own["ways"] != "Uni"))
        elif "index" in own:
            index, names[int(own["index"])] = int(own["index"]), own["name"].strip()
            bus, slot, function = (int(own.get(k, "0"), 16) for k in ("bus", "slot", "function"))
            pci = f"0000:{bus & 255:02x}:{slot & 31:02x}.{function & 7}" if "bus" in own else None
            if pci or not _CPU.search(names[index]):  # else it is cut, or of the first versions
                # A GPU within a CPU may have no name. It is not like the others.
                seen.gpus[index] = ReportedGpu(names[index] or f"GPU at {pci}", pci)
        elif "checked" in own:
            words = enumerate(own["checked"].split())
            wrong |= {(int(own["row"]), across) for across, word in words if word == "FAIL"}
        elif "other" in own:
            grid = seen.grid(number + 1)
            access |= grid if own["other"].endswith("Access") else {}
    place = {index: at for at, index in enumerate(sorted(seen.gpus))}
    for grid, both in grids:
        seen.figures += *_figures(grid, place, both), *_lopsided(grid, place)
    # Pairs with wrong data have no rate. CPUs have no figure, either.
    for ends in sorted(wrong):
        source, to = map(place.get, ends)
        if (source, to) == (None, None):
            seen.fail(f"{_VALIDATION} (CPU {ends[0]} to CPU {ends[1]})", _VALIDATION[:-6])
        else:
            seen.figures.append(copied(source, to, 0.0, _SIZE)._replace(failure=_VALIDATION))
    cpu = next((name for index, name in names.items() if index not in place), None)
    seen.gpus = {place[index]: gpu for index, gpu in seen.gpus.items()}
    seen.refuse({(place[a], place[b]) for (a, b), can in access.items()
                 if can == 0 and {a, b} <= place.keys()})  # fmt: skip
    sure = seen.version or grids or wrong
    seen.log("rocm-bandwidth-test", sure=sure, cpu_model=cpu, vendor="amd")


def _lopsided(grid: Grid, place: Mapping[int, int]) -> Iterator[ReportedFigure]:
    """Yields both ways of copies with a CPU, one of which is far below the other way, and below
    another CPU's copy the same way, which hides it."""
    cell = HostFigure("null -> null by host:0.cpu", with_device=True)
    same = grouped(((place.get(a), place.get(b)), rate or 0.0) for (a, b), rate in grid.items())
    for (row, column), figure in grid.items():
        ends, ways = (place.get(row), place.get(column)), ((row, column), (column, row))
        other = min(grid.get(ways[1]) or 0.0, max(same[ends]))
        is_slow = figure and other >= _HIDES * figure and ends != (None, None)
        for way in ways if is_slow else ():
            down, across = (f"hip:{place[n]}" if n in place else f"CPU {n}" for n in way)
            name, rate = "host_to_host_memcpy", (grid[way] or 0.0) * 1e9
            yield ReportedFigure(name, down, across, rate, _SIZE, host=cell)


def _figures(grid: Grid, place: Mapping[int, int], both: bool) -> Iterator[ReportedFigure]:
    """Yields figures. Of a GPU and all CPUs, yields the best: it is unknown which CPU is near."""
    best = dict[tuple[int | None, int | None], float]()
    for (down, across), figure in grid.items():
        source, destination = place.get(down), place.get(across)
        is_twice = both and (source == destination or destination is None)
        if figure is not None and not is_twice and (source, destination) != (None, None):
            best[source, destination] = max(best.get((source, destination), 0.0), figure)
    for ends, figure in best.items():
        yield copied(*ends, figure / (2 if len({*ends}) == 1 else 1), _SIZE, both=both)


# rocm-smi.


def _rocm_smi(seen: TextScan) -> None:
    """Reads --showtopo, amd-smi topology, which has the same tables, and --showproductname."""
    joins = dict[tuple[int, int], str]()
    for _, own, said in seen.marks(
        r".*?(?P<table>Weight|Hops|Link Type) between two GPUs",
        r"GPU\[(?P<index>\d{1,3})\]\s*: \(Topology\) Numa Node: (?P<node>\d{1,3})",
        r"GPU\[(?P<index>\d{1,3})\]\s*: Card (?:[Ss]eries|[Mm]odel):\s+(?P<name>.{2,80})",
        r"GPU(?P<index>\d{1,3})\s+(?!GPU)(?P<row>.*)",
        r"=+|\s*GPU\d+(?:\s+GPU\d+)*\s*$|GPU\[\d+\]", table="",
    ):  # fmt: skip
        if "index" in own:
            index, row = int(own["index"]), own.get("row", "").split()[:64]
            gpu = seen.gpus.get(index, ReportedGpu())
            node = int(own["node"]) if "node" in own else gpu.node
            model = gpu.model or own.get("name", "").strip() or None
            seen.gpus[index] = replace(gpu, node=node, model=model)
            for other, kind in enumerate(row if said["table"] == "Link Type" else ()):
                if other > index:
                    joins[index, other] = "XGMI" if kind == "XGMI" else "NODE"
    seen.facts(joins=joins, vendor="amd")


# TransferBench.

_KIND = {"GFX": "sm", "DMA": "ce"}
_BORDER = r"[\s│|]*"


def _transferbench(seen: TextScan) -> None:
    """Reads the presets p2p and a2a, and single transfers. In p2p, sums are in rows with `<->`."""
    rates, count = list[float](), 0
    for _, own, said in seen.marks(
        r"\s*TransferBench v(?P<version>\S{1,20})",
        r"\s*(?P<ways>Uni|Bi)directional copy peak bandwidth GB/s \[.{1,40}\]"
        r" \(GPU-Executor: (?P<kind>\w{1,8})\)",
        r"(?P<title>\s*)GPU-(?P<kind>GFX|DMA) All-To-All benchmark",
        r".*?(?:Bytes Per Direction |\[)(?P<size>\d{1,13})(?: bytes per Transfer\]"
        r"(?P<copies>(?:.*\[1 Read\(s\) 1 Write\(s\)\])?)|\s*$)",
        r".*Using (?P<by>SRC|DST) as executor",
        r".*\\DST(?P<names>.*)|.*RTotal|Average\s+bandwidth",
        r"\s*(?P<row>[CG]PU \d{1,3})\s+(?P<way>->|<-|<->)\s(?P<cells>.*)",
        rf"{_BORDER}GPU \d{{1,3}}\s(?P<pairs>(?:{_BORDER}(?:N/A|[\d.]+)\b){{3,}}){_BORDER}$",
        r"\s*Aggregate bandwidth \(CPU Timed\): +(?P<total>\d{1,9}\.\d{1,9}) GB/s",
        rf"{_BORDER}Transfer\s+\d+\s.*?(?P<rate>{DECIMAL}) GB/s.*?(?P<moved>\d{{1,14}}) bytes.*?\s"
        r"(?P<from>[A-Z]\d{1,3})\s*->\s*(?P<executor>[A-Z]\d{1,3})(?:[.:]\S{1,12})?\s*->\s*"
        rf"(?P<to>[A-Z]\d{{1,3}}){_BORDER}$",
        r"\s*\[(?:ERROR|ERR_\w{1,40})\]\s+(?P<failed>.{1,200})",
        r"\s*Averages \(During (?P<during>Uni|Bi)Dir\):\s+\S+"
        rf"(?P<means>(?:\s+{DECIMAL}){{2}})\s",
        ways="", kind="GFX", size=str(256 * MIB), copies="", by="SRC", names="",
    ):  # fmt: skip
        size, kind = int(said["size"]), _KIND.get(said["kind"], "sm")
        if own.get("during") == "Uni" and not seen.figures:  # the matrix is cut off
            down, up = map(float, own["means"].split())
            seen.figures += copied(None, 0, down, size, kind), copied(0, None, up, size, kind)
        if "title" in own:
            rates, count = [], 0
        elif "pairs" in own:
            rates += filter(None, map(number_of, words_of(own["pairs"])[:-2]))
            count += 1
        elif "total" in own and said["copies"] and len(rates) == count * (count - 1):
            name = f"all_to_all_{'read' if said['by'] == 'DST' else 'write'}_{kind}"
            seen.figures += _all_to_all(name, float(own["total"]), size, rates, count)
        elif "cells" in own and own["way"] == {"Uni": "->", "Bi": "<->"}.get(said["ways"]):
            seen.figures += _matrix(said, size, kind, said["ways"] == "Bi")
        elif "executor" in own:
            seen.figures += _single(own)
    seen.log("TransferBench", sure=True, vendor="amd")


def _matrix(said: Mapping[str, str], size: int, kind: str, both: bool) -> Iterator[ReportedFigure]:
    names = re.findall(r"[CG]PU \d{1,3}", said["names"])
    for column, rate in zip(names, map(number_of, said["cells"].split()), strict=False):
        source, to = (int(o[4:]) if o[0] == "G" else None for o in (said["row"], column))
        is_far = to is None and (both or int(column[4:]) > 0)
        is_odd = source == to and (both or kind != "ce")
        if rate is not None and source is not None and not is_far and not is_odd:
            yield copied(source, to, rate, size, kind, both=both)


def _all_to_all(
    name: str, total: float, size: int, rates: Sequence[float], count: int
) -> Iterator[ReportedFigure]:
    """Yields the total, which the CPU timed, and each pair's rate."""
    whole = ReportedFigure(name, "0", "0", total * 1e9, size, ranks=count)
    yield whole
    for (source, destination), rate in zip(permutations(range(count), 2), rates, strict=True):
        own, other = (destination, source) if "read" in name else (source, destination)
        # The row's transfers go round from each device: to the next one first.
        part = own * (count - 1) + (other - own - 1) % count
        yield whole._replace(figure=rate * 1e9, part=part)


def _single(said: Mapping[str, str]) -> Iterator[ReportedFigure]:
    source, by, to = (said[name] for name in ("from", "executor", "to"))
    kind, owner = {"G": "sm", "D": "ce"}.get(by[0]), int(by[1:])
    begin, end = (int(one[1:]) if one[0] == "G" else None for one in (source, to))
    is_known = {source[0], to[0]} <= {*"CBNG"} and owner in (begin, end)
    if kind and is_known and begin != end and (size := int(said["moved"])):
        yield copied(begin, end, float(said["rate"]), size, kind, reads=end == owner)


_TRANSFER = (
    r"\s*Transfer \d{1,4}: (?P<from>[CG]\d{1,3}) -> \[(?P<by>[CG]PU) (?P<at>\d{1,3}):\d{1,4}\] -> "
    rf"(?P<to>[CG]\d{{1,3}}) \|\s+(?P<rate>{DECIMAL}) GB/s \|"
)


# Version 1, whose transfers of a test run at once.
def _transferbench_1(seen: TextScan) -> None:
    size, parts, number = 64 * MIB, list[tuple[str, float]](), 0
    for _, own, _ in seen.marks(
        r"Run configuration \(TransferBench v(?P<version>\S{1,20})\)", _TRANSFER,
        r"\s*Test \d{1,4}: \[(?P<size>\d{1,14}) bytes\]",
        rf"\s*Aggregate Bandwidth \(CPU timed\)\s*\|\s+(?P<total>{DECIMAL}) GB/s \|",
    ):  # fmt: skip
        if "rate" in own:
            source, to, by = (
                f"{'host' if one[0] == 'C' else 'hip'}:{int(one[1:])}"
                for one in (own["from"], own["to"], own["by"][0] + own["at"])
            )
            engine = "cpu" if own["by"] == "CPU" else "sm"
            parts.append((f"{source} -> {to} by {by}.{engine}", float(own["rate"])))
        elif "total" in own and parts:
            name, work = f"transfers_at_once{number or ''}", " & ".join(one for one, _ in parts)
            names = tuple(one.partition(" by ")[0] for one, _ in parts)
            what = HostFigure(work, report=Report.SUM, parts=names, with_device=True)
            whole = ReportedFigure(name, "all", "all", float(own["total"]) * 1e9, size, host=what)
            each = (whole._replace(figure=rate * 1e9, part=n) for n, (_, rate) in enumerate(parts))
            seen.figures += whole, *each
            parts, number = [], number + 1
        elif "size" in own:
            size, parts = int(own["size"]), []
    seen.log("TransferBench", vendor="amd")


# RVS.


def _rvs(seen: TextScan) -> None:
    """Reads RVS's PQT. Numbers GPUs in the order of the driver's identifiers, which it prints."""
    found = [said.copy() for said in seen.rows(
        r".*?\bp2p-bandwidth\s+(?:\[\d+/\d+\] )?(?:\[GPU:: )?(?P<from>\d{1,8})\S* +(?:\[GPU:: )?"
        rf"(?P<to>\d{{1,8}})\S*\s+bidirectional: (?P<both>true|false)\s+(?P<rate>{DECIMAL}) GBps"
    )]  # fmt: skip
    order = sorted({int(said[end]) for said in found for end in ("from", "to")})
    for said in found:
        source, to = (order.index(int(said[end])) for end in ("from", "to"))
        both = said["both"] == "true"
        seen.figures.append(copied(source, to, float(said["rate"]), _SIZE, both=both))
    seen.log("RVS", vendor="amd")


READERS = {
    _rocm_bandwidth_test: ("RocmBandwidthTest", "peak bandwidth", "FAIL"),
    _rocm_smi: ("between two GPUs", "GPU["),
    _transferbench: ("TransferBench v", "GPU-Executor", "All-To-All", "(During UniDir)"),
    _transferbench_1: ("CPU timed",),
    _rvs: ("p2p-bandwidth",),
}
