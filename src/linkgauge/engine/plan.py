"""Turns a request into a plan: the cells to measure. No memory is allocated for it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from operator import attrgetter, itemgetter

import msgspec

from linkgauge.backends import OF_ROOMS, ON_REQUEST, hook_of_backend
from linkgauge.benchmarks.catalog import origin_of
from linkgauge.benchmarks.table import DeviceSet, Row, Sweep
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import PlannedCell, PlannedTable
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import Shared
from linkgauge.model.hardware.machine import Device, Machine, Node
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.ranks import nic_problem
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Benchmark, Cell, Transfer
from linkgauge.model.units import approximate_size, format_size

from .rounds import size_of, title_of, tournament

Plan = tuple[PlannedTable, ...]

NUMBER = 8
"""Bytes of a floating-point number."""
_SETUP_SECONDS = 0.1
_SETUP_RATE = 1e9
"""The least rate of allocating, filling, warming up and verifying a cell, in bytes/s (a guess)."""
NO_BACKEND = "none"
"""Backend of a device benchmark on a machine without accelerators."""


def fabrics(
    machine: Machine,
    devices: Sequence[str],
    host_node: int | None = None,
    *,
    with_cpus: bool = True,
) -> tuple[DeviceSet, ...]:
    """Returns a device set for each accelerator backend. `devices` names devices (`opencl:1`, an
    index in every backend, a UUID or a PCI address); if empty, all count. `with_cpus` includes host
    processors that a backend lists. `host_node` is the node of host memory (None: near each
    device). Raises InputError for a device or node that does not exist."""
    nodes = machine.host.nodes
    known, present = machine.all_devices, [node.index for node in nodes]
    for name in devices:
        if not any(_is_named(device, name) for device in known):
            there = ", ".join(device.memory for device in known) or "none on this machine"
            raise InputError(f"unknown device {name!r}: devices are {there}")
    if host_node is not None and host_node not in present:
        there = ", ".join(map(str, present))
        raise InputError(f"no NUMA node {host_node}: this machine has {there}")
    # Backends that bring the CPU along beside accelerators measure it if it is named.
    beside = [
        device
        for name in (*ON_REQUEST, *OF_ROOMS)
        for device in machine.devices.get(name, ())
        if device.is_cpu and not all(other.is_cpu for other in machine.devices[name])
    ]
    able = {d.memory for d in known if (with_cpus or not d.is_cpu) and d not in beside}
    chosen: list[DeviceSet] = []
    for backend, found in machine.devices.items():
        own: list[Device] = []
        for d in found:
            if any(_is_named(d, name) for name in devices) if devices else d.memory in able:
                # The host memory of a device is the nearest node's that has memory.
                near = d.near if d.near in present else present[0]
                own.append(
                    msgspec.structs.replace(d, near=near if host_node is None else host_node)
                )
        if own:
            chosen.append(DeviceSet(backend, nodes, tuple(own)))
    if not chosen:
        reasons = [f"{name}: {reason}" for name, reason in machine.unavailable.items()]
        left = [one.memory for one in known if one.memory not in able]
        reasons += [f"{one} is the CPU: --backend {one.partition(':')[0]}" for one in left]
        why = "; ".join(reasons)
        chosen = [DeviceSet(NO_BACKEND, nodes, (), f"no accelerator ({why or 'none selected'})")]
    return tuple(chosen)


def _is_named(device: Device, name: str) -> bool:
    if name in (device.memory, parse_memory(device.memory).label, str(device.index)):
        return True
    if device.uuid and len(name) > 4 and device.uuid.lower().startswith(name.lower()):
        return True
    # nvidia-smi writes the domain with eight digits, sysfs with four, lspci often omits it.
    address = (device.pci or "").lstrip("0:")
    return bool(address) and name.lower().lstrip("0:") == address and ":" in name


def lay_out(
    rows: Iterable[Row | Sweep],
    fabrics: Sequence[DeviceSet],
    host: Sequence[Node],
    profile: str | None = None,
    separate: frozenset[tuple[int, int]] = frozenset(),
    buffer: int | None = None,
) -> tuple[Benchmark, ...]:
    """Makes benchmarks from catalog rows: device rows for each device set, host rows once for the
    nodes in `host`. With the profile `full`, host rows cover all pairs of nodes not in `separate`.
    A first look uses buffers of `buffer` bytes. Raises InputError if no benchmark results."""
    whole = DeviceSet("host", tuple(host), profile=profile, separate=separate, buffer=buffer)
    of_host = (whole,) if host else ()
    benchmarks = tuple(row.lay_out(fabric) for row in rows for fabric in row.over(fabrics, of_host))
    if not benchmarks:
        raise InputError("nothing to measure: these backends have none of these benchmarks")
    return benchmarks


def make_plan(
    benchmarks: Sequence[Benchmark],
    machine: Machine,
    sizes: Sequence[int],
    *,
    parallel_pairs: bool = False,
    first: int = 0,
    profile: str | None = None,
) -> Plan:
    """Returns a table for each benchmark and size. Cells are numbered from `first` on. Cells that
    do not fit in memory are skipped with the reason. `profile` is the profile that gives the sizes,
    or None if the user gave them. With `parallel_pairs`, pairs without a common device are measured
    at the same time. Raises InputError if no cell of a size can be measured."""
    rooms = _rooms(machine)
    shared = Shared()
    numbers = count(first)
    plan: list[PlannedTable] = []
    for asked in sizes:
        for benchmark in benchmarks:
            # A benchmark with its own size is measured once, whatever sizes are asked for.
            if benchmark.size is not None and asked != sizes[0]:
                continue
            size = size_of(benchmark, asked, machine, profile)
            reasons = [_why_not([cell], size, rooms) for cell in benchmark.cells]
            title = title_of(benchmark, size, machine, profile)
            table = _table(benchmark, shared, size, reasons, title)
            if benchmark.in_rounds or (benchmark.pairs and parallel_pairs):
                table = _in_rounds(table, rooms)
            if benchmark.rounds:
                table = _at_once(table, benchmark.rounds)
            cells = tuple(msgspec.structs.replace(c, number=next(numbers)) for c in table.cells)
            simulated = machine.simulated is not None
            plan.append(msgspec.structs.replace(table, cells=cells, simulated=simulated))
    for size in sizes:
        tried = [cell for table in plan if table.size == size for cell in table.cells]
        if tried and all(map(attrgetter("reason"), tried)):
            raise InputError(f"size {format_size(size)} does not fit: {tried[0].reason}")
    return tuple(plan)


def able(plan: Iterable[PlannedTable]) -> Iterator[tuple[PlannedTable, PlannedCell]]:
    """Yields the cells that can be measured, with their tables."""
    return ((table, cell) for table in plan for cell in table.cells if cell.reason is None)


def _in_rounds(table: PlannedTable, rooms: Mapping[Memory, Capacity]) -> PlannedTable:
    """Orders cells by rounds of disjoint pairs. Pairs of a round that exceeds memory run alone."""
    # A sample of pairs may have devices that are in no row.
    players = dict.fromkeys([*(c.row for c in table.cells), *(c.column for c in table.cells)])
    rounds = tournament(list(players))
    numbered = sorted(((rounds[cell.place], cell) for cell in table.cells), key=itemgetter(0))
    at_once: defaultdict[int, list[PlannedCell]] = defaultdict(list)
    for number, cell in numbered:
        if cell.reason is None:
            at_once[number].append(cell)
    separate = {number for number, some in at_once.items() if _why_not(some, table.size, rooms)}
    cells = (
        msgspec.structs.replace(cell, round=None if number in separate else number)
        for number, cell in numbered
    )
    return msgspec.structs.replace(table, cells=tuple(cells))


def _at_once(table: PlannedTable, rounds: Sequence[int]) -> PlannedTable:
    numbered = zip(table.cells, rounds, strict=True)
    cells = (msgspec.structs.replace(cell, round=n, at_once=True) for cell, n in numbered)
    return msgspec.structs.replace(table, cells=tuple(cells))


def _table(
    benchmark: Benchmark,
    shared: Shared,
    size: int,
    reasons: Sequence[str | None],
    title: str,
) -> PlannedTable:
    hook = hook_of_backend(benchmark.backend)
    origins = (origin_of(benchmark.name), None if hook.is_ours else hook.origin)
    return by_name(
        PlannedTable,
        benchmark,
        benchmark=benchmark.name,
        title=title,
        size=size,
        unit=benchmark.unit.symbol,
        better=benchmark.unit.better,
        plugins=tuple(dict.fromkeys(filter(None, origins))) or msgspec.UNSET,
        cells=tuple(
            by_name(
                PlannedCell,
                cell,
                transfers=shared.each(cell.transfers),
                reason=reason,
            )
            for cell, reason in zip(benchmark.cells, reasons, strict=True)
        ),
    )


class Capacity(msgspec.Struct, frozen=True):
    """The bytes of a memory (`all`) and of the largest buffer in it (`one`); None if unknown. If
    `shares_host` is true, the memory is part of the host's."""

    all: int | None
    one: int | None = None
    shares_host: bool = False


_UNKNOWN = Capacity(None)


def _rooms(machine: Machine) -> dict[Memory, Capacity]:
    rooms: dict[Memory, Capacity] = {}
    for node in machine.host.nodes:
        rooms[Memory("host", node.index)] = Capacity(node.memory_available)
    for device in machine.all_devices:
        rooms[parse_memory(device.memory)] = Capacity(
            device.memory_bytes, device.largest_buffer, device.shares_host_memory
        )
    return rooms


def _held(cells: Sequence[Cell], size: int) -> dict[Memory, tuple[int, int]]:
    """Returns, for each memory, the bytes of all its buffers together, and of the largest one."""
    held: dict[Memory, tuple[int, int]] = {}
    for cell in cells:
        for memory, need in cell.buffers(size):
            whole, largest = held.get(memory.place, (0, 0))
            held[memory.place] = whole + need, max(largest, need)
    return held


def _why_not(cells: Sequence[Cell], size: int, rooms: Mapping[Memory, Capacity]) -> str | None:
    for cell in cells:
        if any(t.both_ways and not t.bytes_each_way(size) for t in cell.transfers):
            return f"{format_size(size)} is too small to go both ways: give at least 1 KiB"
        if size % NUMBER and cell.does.computes:
            many = f"a multiple of {NUMBER} bytes"
            return f"arrays of numbers take {many}: {format_size(size)} is not"
    held = _held(cells, size)
    for place, (_, need) in held.items():
        one = rooms.get(place, _UNKNOWN).one
        if one is not None and need > one:
            return (
                f"a buffer of {format_size(need)} is more than {place} allocates at "
                f"once ({approximate_size(one)})"
            )
    shared = 0
    for place, (need, _) in held.items():
        room = rooms.get(place, _UNKNOWN)
        if room.all is not None and need > room.all:
            has = approximate_size(room.all)
            return f"needs {approximate_size(need)}, {place} has {has}"
        shared += need if room.shares_host or place.is_host else 0
    if not shared:
        return None
    dram = [room.all for memory, room in rooms.items() if memory.is_host]
    free = None if None in dram else sum(room for room in dram if room is not None)
    if free is not None and shared > free:
        return (
            f"needs {approximate_size(shared)} of host memory, "
            f"{approximate_size(free)} is available"
        )
    return None


def peak_memory(plan: Plan) -> dict[str, int]:
    """Returns the most bytes that a cell holds in each memory."""
    peak: dict[str, int] = {}
    for table, cell in able(plan):
        for place, (need, _) in _held([cell], table.size).items():
            peak[str(place)] = max(need, peak.get(str(place), 0))
    return peak


SIMULATED_SECONDS = 0.0005
"""Approximate wall time of a simulated cell, and of each of its transfers."""


def setup_seconds(size: int) -> float:
    """Estimates the most seconds that it takes to prepare and verify a cell of `size` bytes."""
    return _SETUP_SECONDS + size / _SETUP_RATE


def most_seconds(plan: Plan, settings: Settings) -> float | None:
    """Estimates the most seconds that a plan takes; None with a fixed number of samples."""
    if settings.samples is not None:
        return None
    if settings.simulation is not None:
        return sum(SIMULATED_SECONDS * (1 + len(cell.transfers)) for _, cell in able(plan))
    return sum(settings.of(cell).max_time + setup_seconds(table.size) for table, cell in able(plan))


def check_exists(transfers: Iterable[Transfer], machine: Machine) -> None:
    """Raises InputError if this machine lacks a memory or an engine's device, or if two network
    interfaces cannot reach each other."""
    rooms = _rooms(machine)
    ranks = {rank.number: rank for rank in machine.ranks}
    for transfer in transfers:
        owner = transfer.engine.owner
        problem = nic_problem(transfer, ranks) if owner.is_nic else None
        if problem is not None:
            raise InputError(problem)
        for memory in transfer.memories if owner.is_nic else (*transfer.memories, owner):
            if memory.place in rooms:
                continue
            if memory.backend in machine.unavailable:
                why = machine.unavailable[memory.backend]
                raise InputError(f"no {memory.place}: {memory.backend}: {why}")
            known = ", ".join(map(str, rooms))
            raise InputError(f"unknown memory {str(memory.place)!r}: give one of {known}")
