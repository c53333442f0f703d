"""Reads lscpu, numactl -H, dmidecode and the kernel's log, and STREAM, BabelStream, Intel MLC and
sysbench."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping

from linkgauge.judge.blame.xids import severity_of
from linkgauge.machine.dimms import Dimm
from linkgauge.machine.kernel_log import printed_log
from linkgauge.machine.tree import ADDRESS, parse_cpu_list
from linkgauge.model.names import and_all
from linkgauge.model.operations.operation import PRIMES, ArrayOperation
from linkgauge.model.transfer import Report
from linkgauge.model.units import LATENCY, RATE, STREAM

from ..facts import (
    HostFigure,
    NarrowLink,
    ReportedFigure,
    ReportedGpu,
    ReportedNic,
    ReportedNode,
)  # fmt: skip
from ..lines import DECIMAL, index_of, scale_of
from ..scan import Grid, TextScan, rates

_FIELD = re.compile(
    r"\s*((?:CPU|Core|Vendor|Byte|On-line|Address|Stepping|Frequency|BogoMIPS|Flags|Virtualization"
    r"|L[1-4]|Vulnerability|Caches|BIOS|Hypervisor|Thread|Socket|Model|Architecture|NUMA)"
    r"[A-Za-z0-9 ()/-]{0,40}):\s+(\S.{0,200})"
)
_VIRTUAL = re.compile(r"\s*(?:Hypervisor vendor|Virtualization): +(?!VT-x|AMD-V)(\S{1,40})")
_SAID_VIRTUAL = re.compile(r"\b(?:KVM|QEMU|Proxmox|ESXi|vSphere|[Vv]irtual [Mm]achines?|VMs)\b")
_LSCPU = ("Architecture", "Model name", "Socket(s)", "Thread(s) per core", "NUMA node(s)")
_NODE = re.compile(r"NUMA node(\d{1,3}) CPU\(s\)")


def _lscpu(seen: TextScan) -> None:
    fields = dict[str, str]()
    for _, field in seen.each(_FIELD):
        fields.setdefault(field[1], field[2].strip())
    if sum(name in fields for name in _LSCPU) < 3:
        return
    nodes = {
        int(match[1]): ReportedNode(cpus=count_of_list(text))
        for name, text in fields.items()
        if (match := _NODE.fullmatch(name))
    }
    seen.facts(
        nodes=nodes,
        cpu_model=fields.get("Model name"),
        architecture=fields.get("Architecture"),
        sockets=index_of(fields.get("Socket(s)", "")) or None,
    )


def count_of_list(text: str) -> int | None:
    return len(parse_cpu_list(text.replace(" ", ","))) or None


def _numactl(seen: TextScan) -> None:
    nodes, rows = dict[int, ReportedNode](), dict[int, tuple[int, ...]]()
    for _, own, _ in seen.marks(
        r"node (?P<node>\d{1,3}) (?:cpus:\s*(?P<cpus>.*)|size:\s*(?:(?P<size>\d{1,9}) MB)?|free:)",
        r"\s*(?P<row>\d{1,3}):(?P<distances>(?:\s+\d{1,3})+)\s*$",
        r"available: |node distances:|node +0\b",
    ):
        if "node" in own:
            before = nodes.get(int(own["node"]), ReportedNode())
            cpus = count_of_list(own["cpus"]) if "cpus" in own else before.cpus
            memory = int(own["size"]) << 20 if "size" in own else before.memory
            nodes[int(own["node"])] = ReportedNode(cpus, memory)
        elif "row" in own:
            each = own["distances"].split()
            rows[int(own["row"])] = tuple(min(int(one), 255) for one in each)
    square = tuple(row for row in rows.values() if len(row) == len(rows))
    bare = [n for n, one in nodes.items() if one.cpus and one.memory == 0]
    if len(nodes) / 2 < len(bare) < len(nodes):  # half are so by design in some processors
        they = f"nodes {and_all(map(str, bare))} have CPUs and no memory of their own"
        seen.facts(warnings=frozenset([f"{they}: look for empty DIMM slots"]))
    if nodes:
        seen.facts(nodes=nodes, distances=square if rows and len(square) == len(rows) else None)


def count_of_mask(mask: str) -> int | None:
    digits = mask.replace("0x", "").replace(",", "")
    is_mask = re.fullmatch(r"[0-9a-fA-F]{1,16384}", digits)
    return (int(digits, 16).bit_count() or None) if is_mask else None


def _hypervisor(seen: TextScan) -> None:
    if named := [match for _, match in seen.each(_VIRTUAL)]:
        seen.facts(hypervisor=named[0][1])
    elif any(_SAID_VIRTUAL.search(line) for line in seen.lines if len(line) < 1000):
        seen.facts(ways=frozenset({"virtual machine"}))


_MODULE = re.compile(r"\s*Memory Device\s*$")
_QUANTITY = re.compile(r"(\d{1,6}) (bits|[MG]B|MT/s|MHz)")
_HANDLE = re.compile(r"Handle 0x|# dmidecode|Getting SMBIOS|SMBIOS |Physical Memory Array")


def _dmidecode(seen: TextScan) -> None:
    for _ in seen.each(_HANDLE):
        pass
    found = [fields for _, _, fields in seen.blocks(_MODULE)]
    found = found or [dict(_NAMED.findall(o.string)) for _, o in seen.each(_IN_A_LINE)]
    slots = tuple(map(_slot, found))
    speeds = [f"{one.rate / 1e6:.0f}" for one in slots if one.is_filled and one.rate]
    speeds = speeds or [match[1] for _, match in seen.each(_SPEED)]
    settings = {"DIMM MT/s": min(speeds, key=int)} if speeds else {}
    seen.facts(dimms=slots, settings=settings)


_IN_A_LINE = re.compile(r"\s*Size: (?:\d{1,6} [MG]B\b.*Speed: |No Module Installed\b)")
_NAMED = re.compile(
    r"(Size|(?:Bank )?Locator|(?:Configured (?:Memory|Clock) )?Speed): "
    r"(\S{1,40}(?: \S{1,40}){0,4}?)(?= *$|  | (?:Bank )?Locator:| (?:Configured \w+ )?Speed:)"
)
"""A module in one line, as people's commands print it, and its fields."""


_SPEED = re.compile(r"\s*(?:Configured (?:Memory|Clock) )?Speed: (\d{3,5}) MT/s\s*$")


def _slot(fields: Mapping[str, str]) -> Dimm:
    def number(*names: str) -> int | None:
        found = (_QUANTITY.match(fields.get(name, "")) for name in names)
        return next((int(match[1]) for match in found if match), None)

    rate = number("Configured Memory Speed", "Configured Clock Speed", "Speed")
    return Dimm(
        locator=fields.get("Locator", ""), bank=fields.get("Bank Locator", ""),
        kit=0, alone=fields.get("Form Factor") in ("Row Of Chips", "Die", "CAMM"),
        width=number("Data Width") if number("Size") else None,
        rate=rate * 1e6 if rate else None, stacked="HBM" in fields.get("Type", ""),
        is_filled=number("Size") is not None,
    )  # fmt: skip


_DOMAIN = re.compile(r".{0,80}?iommu: Default domain type: (Translated|Passthrough)")


_SLOT = re.compile(
    rf".*?\b(\w+) ({ADDRESS}): .{{0,60}}?available PCIe bandwidth, limited by "
    rf"({DECIMAL}) GT/s (?:PCIe )?x(\d{{1,2}}) link at ({ADDRESS}) "
    rf"\(capable of .{{3,30}}? with ({DECIMAL}) GT/s (?:PCIe )?x(\d{{1,2}})"
)
_LOGGED = re.compile(
    r".*(?:Xid \(|AER: |PCIe Bus Error|Hardware Error|EDAC |probe of |probe failure|off the bus).*"
)
_FIRST, _OF_GRAPHICS = 2.5, 16
"""The GT/s of PCIe's first generation, and the lanes of graphics cards, whose firmware may begin
with it. Thunderbolt's links always state it; they do not begin at the CPU's bus 00."""
_NICS = re.compile("mlx|bnxt|ice|i40e|ixgbe|irdma|ionic|efa")


def _is_right_above(port: str, card: str) -> bool:
    """Whether a port above a card is at its other end: no bus is between them. The kernel names the
    narrowest link up to the CPU."""
    (domain, upper), (own, lower) = (one.split(":")[:2] for one in (port, card))
    return domain == own and int(lower, 16) - int(upper, 16) < 2


def _kernel_log(seen: TextScan) -> None:
    for _, own in seen.each(_SLOT):
        at, port, (speed, most) = own[2], own[5], (float(own[3]), float(own[6]))
        nic = ReportedNic(None, at, None, speed, int(own[4]), most, int(own[7]))
        is_own = _is_right_above(port, at)
        where = "" if is_own else f", at {port}: its own link, or one above"
        nics = {at: nic if is_own else ReportedNic(pci=at)} if _NICS.match(own[1]) else {}
        is_slow = speed <= _FIRST < most / 2 and port[5:7] == "00" and int(own[4]) < _OF_GRAPHICS
        narrow = [NarrowLink((at,), f"{nic.link}{where}")] if nic.narrow or is_slow else []
        seen.facts(nics=nics, narrow=frozenset(narrow))
    for _, own in seen.each(_LOGGED):
        for line in printed_log([own[0]]).lines:
            # Programs cause other Xids, perhaps long ago.
            if line.kind != "xid" or severity_of(line) == "fail":
                seen.facts(log=frozenset([own[0]]))
    for _, match in seen.each(_DOMAIN):
        seen.facts(iommu="translating" if match[1] == "Translated" else "passthrough")


# Tools that measure.

_STREAM: dict[str, ArrayOperation] = {
    "Copy": "stream-copy", "Scale": "stream-scale", "Add": "stream-add", "Triad": "stream-triad",
}  # fmt: skip


def _array(said: Mapping[str, str]) -> HostFigure:
    # A script names the run, and may bind it to a part of the memory.
    if said["run"] != "all" or said["device"]:
        return HostFigure("null -> null by host:0.cpu", STREAM.symbol)
    return HostFigure("host:0 -> host:0 by cpu", STREAM.symbol, operation=_STREAM[said["kind"]])


_stream = rates(
    "STREAM", "memory_stream_{kind}", "{run}{device}", _array,
    rf"\s*(?P<kind>Copy|Scale|Add|Triad):\s+(?P<rate>{DECIMAL})(?:\s+{DECIMAL}){{3}}",
    rf"\s*-> (?P<kind>Copy|Scale|Add|Triad):\s+(?P<rate>{DECIMAL}) MB/s\b",
    r"={3,} \[(?P<run>[\w -]{1,40})\](?: .{0,200})? =+$",  # before each run of a script
    r".*STREAM Benchmark implementation in(?P<device> (?:CUDA|HIP))\b",
    r"STREAM version(?P<device>)",
    r"Function\s+(?:Best )?Rate \(?(?P<unit>[MG]i?)B/s",
    r"\s*(?P<failed>Failed Validation on array .{1,100})",
    r"\s*Array size = (?P<size>\d{1,12}) \(elements\)",
    r"\s*This system uses (?P<element>\d{1,2}) bytes per array element",
    run="all", size="10000000", element="8", unit="M", device="",
)  # fmt: skip


_BABEL = {"Copy": "copy", "Triad": "triad"}
_IS_CPU = re.compile(r"\bCPU|Xeon|EPYC|Ryzen|\bCore\b|Processor|cpu-|pthread")
_TILES = "Max 1550"
"""A device of which BabelStream measures one tile, unless a setting joins both."""


def _babelstream(seen: TextScan) -> None:
    """Reads BabelStream, or GPU-STREAM as it was called, of each device that a run names, or of one
    without a name by the program's. Runs on CPUs are left out."""
    names = dict[str, int]()
    for said in seen.rows(
        r"(?P<kind>Copy|Mul|Add4?|Triad|Dot|Nstream)\s+"
        rf"(?P<rate>{DECIMAL}(?:e\d)?)(?:\s*{DECIMAL}){{3}}\s*$",
        r".{0,80}?(?:\./|/)(?P<device>(?:ocl|cuda|hip|sycl|kokkos)-stream)\b",
        r"(?:BabelStream|GPU-STREAM)\s*$(?P<device>)",
        r"Using (?:\w{2,8} )?device:? (?P<device>\S.{2,60}?)(?: \(compute_.*)?$",
        r"Function\s+(?P<unit>Mi?|Gi?)Bytes/sec",
        rf"Array size: (?P<size>{DECIMAL}) (?P<prefix>[KMG]i?)B",
        r"(?P<failed>Validation failed on .{1,100})", unit="M", size="1", prefix="G", device="",
    ):  # fmt: skip
        device, kind = said["device"], _BABEL.get(said["kind"])
        if device and kind and not _IS_CPU.search(device):
            index = names.setdefault(device, len(names))
            is_named = not device.endswith("-stream") and _TILES not in device
            seen.gpus[index] = ReportedGpu(device if is_named else None)
            size = round(float(said["size"]) * scale_of(said["prefix"]))
            rate, place = float(said["rate"]) * scale_of(said["unit"]), str(index)
            seen.figures.append(ReportedFigure(f"device_memory_{kind}", "0", place, rate, size))
    seen.log("BabelStream")


_MIXED = 1.5
"""The ratio of mixed traffic to reads that no memory shows: writes take more of it than reads."""
_MOST_NS = 2000.0
"""Figures of a matrix without a title are latencies in ns below this, else MB/s."""
_MLC_WORDS = re.compile(r"\s*(?:Using Read-only traffic type|ALL Reads\s*:|Stream-triad like)")


def _mlc(seen: TextScan) -> None:
    nodes, mixed, reads, taken = 1, 0.0, math.inf, set[int]()
    totals, is_own = list[float](), any(map(_MLC_WORDS.search, seen.lines))
    for number, own, said in seen.marks(
        r".*?Intel\(R\) Memory Latency Checker - v(?P<version>\S{1,20})",
        r"(?P<grid>Measuring (?:idle latencies|Memory Bandwidths between nodes))",
        *([r"\s*Numa node\s+(?P<grid>0(?:\s+\d{1,3})+)\s*$"] if is_own else []),
        rf"\s*ALL Reads\s*:\s+(?P<reads>{DECIMAL})",
        r"Using (?P<only>Read-only) traffic type",
        rf"\s*00000\s+{DECIMAL}\s+(?P<loaded>{DECIMAL})\s*$",
        r"\s*(?P<failed>alloc_mem_onnode\(\): .{1,100}|Buffer allocation failed)",
        rf"\s*(?:\d:\d Reads-Writes|Stream-triad like)\s*:\s+(?P<mixed>{DECIMAL})",
    ):
        mixed = max(mixed, float(own.get("mixed", 0)))
        if "grid" in own and number not in taken:
            grids = (seen.grid(at) for at in range(number, number + 6))
            before, grid = {*seen.used}, next(filter(None, grids), {})
            taken |= seen.used - before
            nodes = max([nodes, *(cpus + 1 for cpus, _ in grid if cpus < 64)])
            most = max(filter(None, grid.values()), default=0.0)
            is_late = "latencies" in own["grid"] or (own["grid"][0] == "0" and most < _MOST_NS)
            seen.figures += _of_nodes(grid, is_late)
        elif "reads" in own or ("loaded" in own and "only" in said and "reads" not in said):
            totals.append(float(own.get("reads") or own["loaded"]))
            reads = totals[-1]
    work = " & ".join(f"host:{n} -> null by host:{n}.cpu" for n in range(nodes))
    cell = HostFigure(work, report=Report.SUM if nodes > 1 else Report.FIRST)
    seen.figures += (
        ReportedFigure("memory_reads", "all", "all", one * 1e6, 1 << 30, host=cell)
        for one in totals
    )
    if mixed > _MIXED * reads:
        seen.remarks.append(
            f"reads and writes together reach {mixed / 1e3:.3g} GB/s, reads alone "
            f"{reads / 1e3:.3g}: few CPUs (-m), other work, power saving or heat hold these back"
        )
    del seen.failures[1:]  # the first line tells the cause
    seen.log("Intel MLC")


def _of_nodes(grid: Grid, is_latency: bool) -> Iterator[ReportedFigure]:
    for (cpus, memory), figure in grid.items():
        if figure is None or cpus > 63 or memory > 63:
            continue
        work = f"host:{memory} -> null by host:{cpus}.cpu"
        name, scale, size, cell = "host_to_host_memcpy_read_cpu", 1e6, 1 << 30, HostFigure(work)
        if is_latency:
            cell = HostFigure(f"{work}*1", LATENCY.symbol, Report.LATENCY, "chase")
            name, scale, size = "memory_latency_nodes", 1e-9, 1 << 28
        yield ReportedFigure(name, str(cpus), str(memory), figure * scale, size, host=cell)


_THREADS = r"\s*Number of threads: (?P<threads>\d{1,5})"


def _sysbench(seen: TextScan) -> None:
    is_own = any("Prime numbers" in line or "cpu-max-prime" in line for line in seen.lines)
    for said in seen.rows(
        rf"\s*events per second:\s+(?P<rate>{DECIMAL})", _THREADS,
        r"\s*Prime numbers limit: (?P<limit>\d{1,9})",
        *([r"\s*(?P<failed>FATAL: .{1,200})"] if is_own else []), threads="1", limit="10000",
    ):  # fmt: skip
        threads, limit = int(said["threads"]), int(said["limit"])
        for operation in (name for name, most in PRIMES.items() if most == limit):
            name = "cpu_primes_single" if threads == 1 else "cpu_primes_all"
            work = f"null -> null by host:0.cpu*{max(threads, 1)}"
            cell = HostFigure(work, RATE.symbol, operation=operation)
            place = name, "all", str(threads)
            seen.figures.append(ReportedFigure(*place, float(said["rate"]), 1, host=cell))
    seen.log("sysbench cpu")


_CACHED = 64 << 20
"""The largest block in bytes that the caches of a CPU may hold."""


def _accesses(said: Mapping[str, str]) -> HostFigure:
    is_read = said["way"] == "read"
    return HostFigure(f"{'host:0 -> null' if is_read else 'null -> host:0'} by host:0.cpu")


_BLOCK = re.compile(r"\s*block size: (?P<size>\d{1,9})(?P<prefix>[KMG]i)B")
_NO_BLOCK = re.compile(r"\s*Total operations: 0 \(")
_sysbench_rates = rates(
    "sysbench memory", "sysbench_memory_{way}", "{threads}", _accesses,
    rf"\s*{DECIMAL} MiB transferred \((?P<rate>{DECIMAL}) MiB/sec\)", _THREADS,
    _BLOCK.pattern,
    r"\s*operation: (?P<way>read|write)", threads="1", way="write", unit="Mi", size="0",
)  # fmt: skip


def _sysbench_memory(seen: TextScan) -> None:
    for _, block in seen.each(_BLOCK):
        if int(block[1]) * scale_of(block[2]) <= _CACHED:
            seen.remarks.append(
                f"blocks of {block[1]} {block[2]}B stay in the cache: the figure is none of memory "
                "(--memory-block-size=1G measures that)"
            )
    for _ in seen.each(_NO_BLOCK):
        seen.remarks.append(
            "nothing was moved (0 operations), as where --memory-total-size divided by --threads "
            "is less than one --memory-block-size"
        )
    _sysbench_rates(seen)


READERS = {
    _lscpu: ("Socket(s)", "Thread(s) per core", "NUMA node(s)"),
    _numactl: ("cpus:", "size:", "free:"),
    _hypervisor: ("Hypervisor", "irtual", "KVM", "QEMU", "Proxmox", "ESXi", "vSphere", "VMs"),
    _dmidecode: ("Memory Device", "MT/s"),
    _kernel_log: (
        "iommu: Default domain type", "available PCIe", "Xid (", "AER: ", "PCIe Bus Error",
        "Hardware Error", "EDAC ", "probe of ", "probe failure", "off the bus",
    ),
    _stream: ("Copy:", "Scale:", "Add:", "Triad:", "Failed Validation"),
    _babelstream: ("Bytes/sec",),
    _mlc: ("Memory Latency Checker", "Measuring idle", "Measuring Memory", "Numa node"),
    _sysbench: ("events per second", "FATAL: "), _sysbench_memory: ("MiB transferred",),
}  # fmt: skip
