"""Reads AMD's tools: rocm-bandwidth-test, rocm-smi, TransferBench and RVS."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from itertools import permutations

from msgspec.structs import replace

from ..facts import MIB, ReportedFigure, ReportedGpu, copied
from ..lines import DECIMAL, number_of, words_of
from ..scan import Grid, TextScan

# rocm-bandwidth-test.

_SIZE = 128 * MIB
_CPU = re.compile(r"(?i)CPU|processor|EPYC|Xeon|Ryzen|Core\(|Opteron|POWER|Neoverse|Kunpeng")
_DATA_PATH = "Data Path Validation"


def _rocm_bandwidth_test(seen: TextScan) -> None:
    """Reads rocm-bandwidth-test, which adds up both directions, and counts local copies twice."""
    names, grids, wrong = dict[int, str](), list[tuple[Grid, bool]](), set[tuple[int, int]]()
    version = ""
    for number, own, said in seen.marks(
        r"\s*RocmBandwidthTest Version: (?P<version>\S{1,40})",
        r"\s*(?P<ways>Uni|Bi?)directional (?:copy )?peak bandwidth GB/s\s*$",
        r"\s*Device: (?P<index>\d{1,3}),\s+(?P<name>[^,]{1,100}?)(?:,\s+(?:\S{4,60},\s+)?"
        r"(?P<bus>[0-9a-f]{1,4}):(?P<slot>[0-9a-f]{1,2})(?:\.(?P<function>[0-9a-f]))?)?\s*$",
        r"\s*(?P<other>(?:Inter-)?Device (?:Access|Numa Distance)|Launch Command|\.{4,}"
        r"|Data (?i:path|verification))",
        r"\s*(?P<row>\d{1,3})(?P<checked>(?:\s+(?:PASS|FAIL|N/A))+)\s*$", version="",
    ):  # fmt: skip
        version = said["version"]
        if "ways" in own:
            grids.append((seen.grid_below(number), own["ways"] != "Uni"))
        elif "index" in own:
            index, names[int(own["index"])] = int(own["index"]), own["name"].strip()
            bus, slot, function = (int(own.get(k, "0"), 16) for k in ("bus", "slot", "function"))
            pci = f"0000:{bus & 255:02x}:{slot & 31:02x}.{function & 7}" if "bus" in own else None
            if pci or not _CPU.search(names[index]):  # else it is cut, or of the first versions
                seen.gpus[index] = ReportedGpu(names[index], pci)
        elif "checked" in own:
            words = enumerate(own["checked"].split())
            wrong |= {(int(own["row"]), across) for across, word in words if word == "FAIL"}
        elif "other" in own:
            seen.grid(number + 1)
    place = {index: at for at, index in enumerate(sorted(seen.gpus))}
    for grid, both in grids:
        seen.figures += _figures(grid, place, both)
    _not_verified(seen, wrong, place)
    cpu = next((name for index, name in names.items() if index not in place), None)
    seen.gpus = {place[index]: gpu for index, gpu in seen.gpus.items()}
    sure = version or grids or wrong
    seen.log("rocm-bandwidth-test", version, sure=sure, cpu_model=cpu, vendor="amd")


def _not_verified(
    seen: TextScan, wrong: Collection[tuple[int, int]], place: Mapping[int, int]
) -> None:
    """Adds pairs with wrong data: as figures without a rate, or between CPUs as failures."""
    said = f"{_DATA_PATH}: FAIL"
    for ends in sorted(wrong):
        source, destination = map(place.get, ends)
        if (source, destination) == (None, None):
            seen.fail(f"{said} (CPU {ends[0]} to CPU {ends[1]})", _DATA_PATH)
        else:
            figure = copied(source, destination, 0.0, _SIZE)
            seen.figures.append(figure._replace(failure=said))


def _figures(grid: Grid, place: Mapping[int, int], both: bool) -> Iterator[ReportedFigure]:
    """Yields figures. Of a GPU's with CPUs, the best counts: no text says which CPU is near."""
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

_BENCH_VERSION = re.compile(r"\s*TransferBench v(\S{1,20})")
_BENCH_TITLE = re.compile(
    r"\s*(Unidirectional|Bidirectional) copy peak bandwidth GB/s \[.{1,40}\]"
    r" \(GPU-Executor: (\w{1,8})\)"
)
_BENCH_SIZE = re.compile(r"(?:Bytes Per Direction (\d{1,13})|\[(\d{1,13}) bytes per Transfer\])")
_BENCH_ALL = re.compile(r"\s*GPU-(GFX|DMA) All-To-All benchmark")
_BENCH_ONE = re.compile(
    rf"\s*Transfer\s+\d+\s.*?({DECIMAL}) GB/s"
    r".*?(\d{1,14}) bytes.*?\s([A-Z])(\d{1,3})\s*->\s*"
    r"([A-Z])(\d{1,3})(?:[.:]\S{1,12})?\s*->\s*([A-Z])(\d{1,3})\s*$"
)
_RULES = re.compile("[┌┬┐├┼┤└┴┘│─|+-]+")
_TIMED = re.compile(r"\s*Aggregate bandwidth \(CPU Timed\): +(\d{1,9}\.\d{1,9}) GB/s")
_IN_GRID = re.compile(r"=*$|\[\d+ bytes per|SRC.DST|RTotal|CPU Timed|Average|Aggregate")
_COPIES = "[1 Read(s) 1 Write(s)]"
_BENCH_ERROR = re.compile(r"\s*\[(?:ERROR|ERR_\w{1,40})\]\s+(.{1,200})")
_KIND = {"GFX": "sm", "DMA": "ce"}


def _transferbench(seen: TextScan) -> None:
    lines, size = seen.lines, 256 * MIB
    for number, line in enumerate(lines):
        if match := _BENCH_SIZE.search(line):
            size = int(match[1] or match[2])
            seen.used.add(number)
        if title := _BENCH_TITLE.match(line):
            kind, both = _KIND.get(title[2], "sm"), title[1] == "Bidirectional"
            seen.used.add(number)
            seen.figures += _matrix(seen, number + 1, kind, size, both)
        elif title := _BENCH_ALL.match(line):
            said = " ".join(lines[max(number - 30, 0) : number + 4])
            way = "read" if "Using DST as executor" in said else "write"
            name = f"all_to_all_{way}_{_KIND[title[1]]}" if _COPIES in said else ""
            size = next((int(m[2]) for m in _BENCH_SIZE.finditer(said) if m[2]), size)
            seen.used.add(number)
            seen.figures += _all_to_all(seen, number + 1, name, size)
        elif match := _BENCH_ONE.match(line.replace("│", " ").replace("|", " ")):
            seen.figures += _single(match)
            seen.used.add(number)
        elif match := _BENCH_ERROR.match(line):
            seen.fail(match[1])
            seen.used.add(number)
    seen.log("TransferBench", seen.first(_BENCH_VERSION), sure=True, vendor="amd")


def _matrix(
    seen: TextScan, start: int, kind: str, size: int, both: bool
) -> Iterator[ReportedFigure]:
    """Yields TransferBench's p2p figures: rows with `->` or, if `both`, the sums with `<->`."""
    names = list[str]()
    for number, line in enumerate(seen.lines[start : start + 400], start):
        if "\\DST" in line:
            names = re.findall(r"[CG]PU \d{1,3}", line)
        elif match := re.match(r"\s*([CG]PU \d{1,3})\s+(->|<-|<->)\s(.*)", line):
            rates = (
                map(number_of, match[3].split()) if match[2] == ("<->" if both else "->") else ()
            )
            for column, rate in zip(names, rates, strict=False):
                source, to = (int(o[4:]) if o[0] == "G" else None for o in (match[1], column))
                is_far = to is None and (both or int(column[4:]) > 0)
                is_odd = source == to and (both or kind != "ce")
                if rate is not None and source is not None and not is_far and not is_odd:
                    yield copied(source, to, rate, size, kind, both=both)
        elif line.strip() and not re.match(r"\s*(?:[CG]PU->|Averages)", line):
            break
        seen.used.add(number)


def _all_to_all(seen: TextScan, start: int, name: str, size: int) -> Iterator[ReportedFigure]:
    """Yields the total by the CPU's clock and each pair's rate, or nothing if one is missing."""
    rates, total, count = list[float](), 0.0, 0
    for number, line in enumerate(seen.lines[start : start + 199], start):
        words = words_of(line)
        if words[:1] == ["GPU"]:
            count += 1
            rates += [rate for word in words[2:-2] if (rate := number_of(word))]
        elif match := _TIMED.match(line):
            total = float(match[1])
        elif not _IN_GRID.match(_RULES.sub("", line).strip()):
            break
        seen.used.add(number)
    if not name or not total or len(rates) != count * (count - 1):
        return
    whole = ReportedFigure(name, "0", "0", total * 1e9, size, ranks=count)
    yield whole
    for (source, destination), rate in zip(permutations(range(count), 2), rates, strict=True):
        own, other = (destination, source) if "read" in name else (source, destination)
        # The row's transfers go round from each device: to the next one first.
        part = own * (count - 1) + (other - own - 1) % count
        yield whole._replace(figure=rate * 1e9, part=part)


def _single(match: re.Match[str]) -> Iterator[ReportedFigure]:
    kind, owner = {"G": "sm", "D": "ce"}.get(match[5]), int(match[6])
    source, destination = (int(match[n + 1]) if match[n] == "G" else None for n in (3, 7))
    is_known = {match[3], match[7]} <= {*"CBNG"} and owner in (source, destination)
    if kind and is_known and source != destination and (size := int(match[2])):
        reads = destination == owner
        yield copied(source, destination, float(match[1]), size, kind, reads=reads)


# RVS.


def _rvs(seen: TextScan) -> None:
    """Reads RVS's PQT, which names GPUs by identifiers of the driver: their order numbers GPUs."""
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
    _transferbench: ("TransferBench v", "GPU-Executor", "All-To-All"),
    _rvs: ("p2p-bandwidth",),
}
