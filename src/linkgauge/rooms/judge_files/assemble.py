"""Builds a run from what other tools printed: the machine, and results whose cells hold figures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import product

from msgspec.structs import asdict, replace

import linkgauge
from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.machine import parts_of
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.collectives import cell_of
from linkgauge.benchmarks.table import DeviceSet, Row
from linkgauge.machine.dimms import rate_of
from linkgauge.machine.tree import ADDRESS
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import CellResult, Result, TransferFigure, worst
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.host_details import HostDetails
from linkgauge.model.hardware.inventory import Accelerator, Adapter, PciFunction, PciLink
from linkgauge.model.hardware.machine import Device, Host, Machine, Node
from linkgauge.model.hardware.pcie import PciTree, is_accelerator
from linkgauge.model.memory import host as node_memory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import STAGED
from linkgauge.model.operations.busbw import average_bus
from linkgauge.model.ranks import Rank
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Benchmark, Cell, Engine, Report, Transfer
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, Better, unit_of

from .descriptions import Described
from .facts import Bridge, Facts, Failure, ReportedFigure
from .failures import Meaning, meaning_of
from .nics import GIGABIT
from .products import product_of


def machine_of(described: Described, backend: str) -> Machine:
    """Returns the machine as texts and products describe it, without simulated values."""
    made = SimBackend(parts_of(described.description))
    host, seen, reported = made.host(), made.look(), described.facts
    dimms = tuple(one for one in reported.dimms if one.width)
    memories = {index: node.memory for index, node in reported.nodes.items()}
    nodes = tuple(Node(one.index, one.cpus, memories.get(one.index)) for one in host.nodes)
    named = (reported.hostname or "", "", "", reported.architecture or "", reported.cpu_model)
    details = by_name(
        HostDetails,
        reported,
        distances=seen.host.distances if reported.distances else {},
        node_cpus={
            node: seen.host.node_cpus[node]
            for node, one in reported.nodes.items()
            if one.cpus and node in seen.host.node_cpus
        },
        memory_rate=rate_of(dimms, reported.sockets)[0] if dimms else None,
    )
    inventory = replace(
        seen, host=details, unknown=(),
        pci=tuple(_reported_functions(seen.pci, reported, from_texts=bool(described.tree))),
        accelerators=tuple(_bare_accelerator(one, backend) for one in seen.accelerators),
        assumed=tuple(
            replace(one, parts=tuple(_named(part, backend) for part in one.parts))
            for one in seen.assumed if one.fact == "link"
        ),
        adapters=tuple(_reported_adapters(seen.adapters, reported)),
    )  # fmt: skip
    devices = tuple(
        replace(one, memory=_named(one.memory, backend), driver="", uuid=None)
        for one in made.devices()
    )
    return Machine(
        Host(*named, host.cpus, nodes, None, None, host.memlock_limit, None),
        {backend: devices}, linkgauge=linkgauge.__version__, inventory=inventory,
    )  # fmt: skip


def across(machine: Machine, backend: str, hosts: Sequence[str], ranks: int) -> Machine:
    """Returns the machine with `ranks` accelerators on equal hosts, one per rank, host by host."""
    own = machine.devices[backend][: max(ranks // len(hosts), 1)]
    placed = [*product(hosts, own)][:ranks]
    devices = tuple(replace(one, memory=f"{one.memory}@{n}") for n, (_, one) in enumerate(placed))
    there = zip(range(ranks), placed, devices, strict=False)
    each = tuple(Rank(n, host, 0, one.memory, one.model) for n, (host, _), one in there)
    return replace(machine, devices={backend: devices}, ranks=each)


def _named(place: str, backend: str) -> str:
    return re.sub(r"^sim:", f"{backend}:", place)


_REDIRECTS = "request redirect", "completion redirect"
_PORTS = {"root port": "root port", "upstream port": "PCIe switch"}


def _reported_functions(
    found: Sequence[PciFunction], reported: Facts, *, from_texts: bool
) -> Iterator[PciFunction]:
    """Yields the PCI functions. Bridges whose address no text gives get made-up names."""
    bridges = (one for one in found if one.port != "endpoint")
    kinds = grouped((_PORTS.get(one.port or "", "port"), one.address) for one in bridges)
    names = {at: f"{kind} {n}" for kind, some in kinds.items() for n, at in enumerate(some)}
    above = PciTree(found).above
    for card in reported.cards:
        chain = above(card.pci) if card.pci else ()
        names |= {o.address: at for o, at in zip(chain, card.above, strict=False)}
    for one in found:
        address = names.get(one.address, one.address)
        bridge, link = reported.bridges.get(address, Bridge()), one.link
        if from_texts:
            link = replace(link, target=None) if re.fullmatch(ADDRESS, address) else PciLink()
        yield PciFunction(
            address=address, parent=names.get(one.parent or ""), vendor=one.vendor,
            class_code=one.class_code, numa_node=one.numa_node, port=one.port, link=link,
            acs=_REDIRECTS if bridge.acs else one.acs,
            relaxed_ordering=reported.relaxed if is_accelerator(one) else None,
        )  # fmt: skip


def _reported_adapters(found: Sequence[Adapter], reported: Facts) -> list[Adapter]:
    rates = {nic.pci: nic.rate for nic in reported.nics.values()}
    speed = reported.settings.get("adapter Gb/s", "")
    usual = int(speed) * GIGABIT if speed.isdecimal() else None
    ports = [replace(one, rate=rates.get(one.pci) or usual) for one in found]
    only = int(usual is not None and len(reported.gpus) < 2)  # a host of one GPU has at least one
    count = reported.used_adapters or reported.adapters or len(ports) or only
    more = (Adapter(name=f"adapter{n}", rate=usual) for n in range(len(ports), count))
    return [*ports[:count], *more]


def _bare_accelerator(one: Accelerator, backend: str) -> Accelerator:
    """Returns the accelerator with only what texts say. Leaves out the memory's rate if copy
    engines are slower than the memory."""
    return Accelerator(
        memory=_named(one.memory, backend), model=one.model, pci=one.pci,
        links=tuple(replace(o, errors=None, remote=o.remote and _named(o.remote, backend))
                    for o in one.links),
        memory_rate=None if product_of(one.model).copies else one.memory_rate,
    )  # fmt: skip


def are_judged(cards: Iterable[str], machine: Machine) -> bool:
    """Whether link-width tells that these cards' links are narrow: the ports above offer more."""
    for card in cards:
        own = machine.functions.get(card)
        above = machine.functions.get(own.parent or "") if own else None
        ends = [one.link.max_width for one in (own, above) if one and one.link.max_width]
        if own is None or not 0 < (own.link.width or 0) < min(ends, default=0):
            return False
    return True


def results_of(
    reported: Iterable[ReportedFigure], machine: Machine, backend: str
) -> tuple[tuple[Result, ...], int, list[Failure]]:
    """Returns results, the number of figures in their cells, and failures without a cell."""
    results, judged, lost = list[Result](), 0, dict[Failure, None]()
    # A table of a collective has all sizes. Copies that a cache held are a table of their own.
    tables = grouped(
        ((o.benchmark, None if o.work else o.size, o.ranks, o.host is None), o) for o in reported
    )
    for some in tables.values():
        table, figures = _table(some, machine, backend), grouped((one.place, one) for one in some)
        cells = [_cell(c, figures[c.place], table) for c in table.cells if c.place in figures]
        placed = {cell.place for cell in cells}
        results += [_result(table, cells)] if cells else []
        judged += sum(one.is_measured for one in some if one.place in placed)
        failed = (one for one in some if one.failure and one.place not in placed)
        lost |= dict.fromkeys(Failure(one.benchmark, one.failure) for one in failed)
    return tuple(results), judged, list(lost)


_MOST_WORDS = 3
"""The most failures of a test that its reason lists."""
_UNKNOWN = parse_transfers("null -> null by host:0.cpu")
"""The transfers of a test that is known by its name alone."""


def results_without_figures(failed: Iterable[Failure], backend: str) -> Iterator[Result]:
    """Yields a result for each test without figures, with one cell unless it was skipped."""
    for test, said in grouped((one.test, one.said) for one in failed).items():
        row, each, (status, kind) = CATALOG.get(test), [*dict.fromkeys(said)], _worst_of(said)
        words = "; ".join(each[:_MOST_WORDS])
        words += f"; and {len(each) - _MOST_WORDS} more" if len(each) > _MOST_WORDS else ""
        cell = CellResult("all", "all", _UNKNOWN, Report.FIRST, status, words, kind=kind)
        yield Result(
            benchmark=test, title=row.title if row is not None else test, backend=backend, size=1,
            unit=BANDWIDTH.symbol, better="higher", reason=words if status == "skip" else None,
            status=status, cells=() if status == "skip" else (cell,), sweep=True,
        )  # fmt: skip


def _worst_of(said: Iterable[str]) -> Meaning:
    order = "fail", "error", "skip"
    return min(map(meaning_of, said), key=lambda one: order.index(one.status))


def _result(table: Benchmark, cells: Sequence[CellResult]) -> Result:
    return by_name(
        Result, table, benchmark=table.name, size=table.size or 1,
        unit=table.unit.symbol, better=table.unit.better,
        parts=table.parts if all(cell.parts for cell in cells) else (),
        status=worst(cell.status for cell in cells), cells=tuple(cells), average=average_bus(cells),
    )  # fmt: skip


def _table(reported: Sequence[ReportedFigure], machine: Machine, backend: str) -> Benchmark:
    first, devices = reported[0], machine.devices.get(backend, ())
    row, size = first.of or CATALOG.get(first.benchmark), first.size or 1
    title = row.title if row is not None else first.benchmark
    cells = tuple(dict.fromkeys(_own_cells(reported, devices)))
    if (what := first.host) is not None:
        backend, unit = backend if what.with_device else "host", unit_of(what.unit)
        named = first.benchmark, title, backend, cells, unit, what.parts
        return Benchmark(*named, sweep=True, size=size)
    if first.work is not None or not isinstance(row, Row):
        return Benchmark(first.benchmark, title, backend, cells, COLLECTIVE, sweep=True)
    wanted = set(range(first.ranks)) or {int(one.column) for one in reported} | (
        {int(one.row) for one in reported} if row.between_devices else set()
    )
    some = tuple(one for one in devices if one.index in wanted and not row.on_host)
    laid_out = row.lay_out(DeviceSet(backend, machine.host.nodes, some))
    return replace(laid_out, size=size)


def _own_cells(reported: Iterable[ReportedFigure], devices: Sequence[Device]) -> Iterator[Cell]:
    said = {(o.place, o.work, o.host, o.size, o.ranks): o for o in reported if o.host or o.work}
    for one in said.values():
        if (what := one.host) is not None:
            transfers = parse_transfers(what.work)
            yield Cell(one.row, one.column, transfers, what.report, operation=what.operation)
        elif (work := one.work) is not None and one.size:
            own = one.ranks or len(devices)
            if (work.root or 0) < own <= len(devices):
                yield cell_of(work, devices[:own], one.size, one.row, one.column)


def _cell(cell: Cell, reported: Sequence[ReportedFigure], table: Benchmark) -> CellResult:
    size, better = table.size or 1, table.unit.better
    said = tuple(dict.fromkeys(one.failure for one in reported if one.failure))
    failed = _worst_of(said) if said else None
    measured = [] if failed and failed.status == "error" else [o for o in reported if o.is_measured]
    samples = tuple(one.figure for one in measured if one.part is None)
    counted = cell.counted(size)
    parts = tuple(_parts(measured, counted, better))
    if not samples:
        samples = tuple(map(sum, zip(*(part.samples for part in parts), strict=False)))
    if staged := "_staged" in table.name:  # by the driver, with the host's engine
        cell = replace(cell, transfers=tuple(
            Transfer(o.source, o.destination, Engine(node_memory(0), o.engine.kind), o.scale)
            for o in cell.transfers
        ))  # fmt: skip
    return CellResult(
        **asdict(cell),
        status=failed.status if failed else "pass" if samples else "error",
        reason="; ".join(said) or None,
        bytes=reported[0].size or size if cell.report.is_latency else cell.bytes_reported(size),
        samples=samples,
        summary=summarize(samples, better),
        parts=parts,
        definition="span" if cell.report.is_total else None,
        notes=(STAGED,) if staged else (),
        kind=failed.kind if failed else None if samples else "call",
        verified=False if failed and failed.kind == "wrong-bytes" else None,
    )


def _parts(
    reported: Sequence[ReportedFigure], counted: Sequence[int], better: Better
) -> Iterator[TransferFigure]:
    by_part = grouped((one.part, one.figure) for one in reported)
    for number, moved in enumerate(counted):
        if samples := tuple(by_part.get(number, ())):
            yield TransferFigure(number, moved, samples, summarize(samples, better))
