"""Computes what a machine should reach in a standard run, and in collectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Literal

import msgspec
from msgspec.structs import replace

from linkgauge.benchmarks.collectives import COLLECTIVES, collecting
from linkgauge.benchmarks.table import counts_up_to
from linkgauge.engine.controller import Observer
from linkgauge.engine.plan import Plan, able
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import opened
from linkgauge.judge.expected.across import across, carried_by
from linkgauge.judge.expected.dram import Ceilings
from linkgauge.judge.expected.exchange_rates import ExchangeRates
from linkgauge.judge.expected.expect import Expectations
from linkgauge.judge.expected.healthy import Healthy, rows
from linkgauge.judge.expected.routes import Paths
from linkgauge.model.documents.scaling import BusbwBound
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.operations.collective import (
    Algorithm,
    Collective,
    CollectiveName,
    no_hypercube,
)
from linkgauge.model.settings import Simulation
from linkgauge.model.transfer import Cell
from linkgauge.model.units import COLLECTIVE

FIRST_HOST = "node0"
"""The host of a described cluster whose own figures stand for those of all."""


def is_shown(cell: Cell, away: Collection[str]) -> bool:
    """Whether a cell uses only the first host, or is a copy by it from or to a memory in `away`."""
    owners = {str(each.engine.owner) for each in cell.transfers}
    places = owners.union(*({str(m.place) for m in each.memories} for each in cell.transfers))
    others = places & set(away)
    return not others or (len(cell.transfers) == 1 and len(places) == 2 and owners.isdisjoint(away))


def over_hosts(
    machine: Machine, own: BusbwBound, work: Collective, hosts: int, each: int
) -> BusbwBound | None:
    """Returns the bound over hosts with `each` devices, or None if the traffic of `work` between
    hosts is unknown. `own` is the bound within a host."""
    carried = carried_by(machine, len({device.node for device in machine.all_devices}))
    if carried is None:
        return BusbwBound(because="unknown: what the adapters of each host carry is unknown")
    limits = across(own, work, hosts, each, carried)
    return None if limits is None else limits.bound


def machine_of(row: Healthy) -> str:
    if row.hosts == 1:
        return row.machine
    return f"{row.hosts} x {row.machine} + {row.adapters}"


PROFILE = "standard"
SCHEMA: Literal["linkgauge.expect/1"] = "linkgauge.expect/1"


class ExpectedFigure(msgspec.Struct, frozen=True):
    """What comparable cells of a benchmark should reach.

    benchmark: The benchmark.
    title: What the benchmark measures.
    unit: The unit of the figures.
    achievable: The figure that the cells should reach; null if unknown.
    theoretical: The limit that the cells cannot exceed; null if unknown.
    because: The arithmetic, or what is unknown.
    cells: The number of comparable cells.
    of: The number of cells of the benchmark.
    first: The transfers of the first comparable cell."""

    benchmark: str
    title: str
    unit: str
    achievable: float | None
    theoretical: float | None
    because: str
    cells: int
    of: int
    first: str


class Published(msgspec.Struct, frozen=True):
    """Published measurements of a collective on such machines.

    reached: Bus bandwidths in GB/s, by the size of a call.
    algorithm: How the collective was carried out.
    source: Who published the measurements."""

    reached: dict[str, float]
    algorithm: Algorithm
    source: str


class ExpectedBusbw(msgspec.Struct, frozen=True):
    """The bus bandwidth that large calls of a collective should reach.

    collective: The collective.
    devices: The number of devices: the first devices of a host, or all of several hosts.
    hosts: The number of hosts.
    bound: The bus bandwidth in bytes/s, with the arithmetic.
    published: Published measurements of as many devices of such machines."""

    collective: CollectiveName
    devices: int
    hosts: int
    bound: BusbwBound
    published: tuple[Published, ...] = ()


class ExpectedMachine(msgspec.Struct, frozen=True, kw_only=True):
    """What a machine should reach, as `linkgauge expect --json` writes it.

    schema: The kind and version of the document.
    name: The name of the described machine; null for this machine.
    devices: The number of devices, by model.
    figures: What the benchmarks of the standard profile should reach.
    collectives: What collectives over 2, 4, 8 … and all devices should reach.
    without: The benchmarks without an expected figure, each with the reason."""

    schema: Literal["linkgauge.expect/1"] = SCHEMA
    name: str | None
    devices: dict[str, int]
    figures: tuple[ExpectedFigure, ...]
    collectives: tuple[ExpectedBusbw, ...]
    without: dict[str, str]


def expectations_of(
    simulation: Simulation | None, backends: tuple[str, ...] = ()
) -> ExpectedMachine:
    """Returns what a simulated machine, or this machine if it is None, should reach."""
    settings = replace(PROFILES[PROFILE], simulation=simulation)
    request = RunRequest(settings=settings, profile=PROFILE, backends=backends)
    with opened(request) as session:
        machine, plan = session.machine, session.plan(Observer())
    found, name = tuple(_figures(plan, machine)), simulation.machine if simulation else None
    known = tuple(one for one in found if one.achievable or one.theoretical)
    named = {one.benchmark for one in known}
    return ExpectedMachine(
        name=name,
        devices=dict(Counter(device.model for device in machine.all_devices)),
        figures=known,
        collectives=tuple(_collectives(request, machine, name)),
        without={one.benchmark: one.because for one in found if one.benchmark not in named},
    )


def _figures(plan: Plan, machine: Machine) -> Iterator[ExpectedFigure]:
    expectations = Expectations(machine)
    away = frozenset(
        device.memory for device in machine.all_devices if device.node not in (None, FIRST_HOST)
    )
    cells = [
        (table, cell)
        for table, cell in able(plan)
        if table.unit != COLLECTIVE.symbol and is_shown(cell, away)
    ]
    many = Counter(table.benchmark for table, _ in cells)
    known = (expectations.of(c, t.size, t.unit, loaded=False).expected for t, c in cells)
    equivalent = grouped(
        ((table.benchmark, table.title, table.unit, own.achievable, own.theoretical, own.because),
         str(cell))
        for (table, cell), own in zip(cells, known, strict=True)
    )  # fmt: skip
    for figure, some in equivalent.items():
        yield ExpectedFigure(*figure, len(some), many[figure[0]], some[0])


def _collectives(
    request: RunRequest, machine: Machine, name: str | None
) -> Iterator[ExpectedBusbw]:
    """Yields bounds for 2, 4, 8 … and all devices of a host, then for 2, 4, 8 … and all hosts."""
    paths = Paths(machine, Ceilings())
    for fabric in collecting(request.over(machine))[:1]:
        hosts = grouped((device.node, device.memory) for device in fabric.devices)
        first, *others = hosts.values() if all(hosts) else ([d.memory for d in fabric.devices],)
        for row in COLLECTIVES:
            rates = ExchangeRates(paths, Collective(row.collective))
            for count in counts_up_to(len(first)):
                if count > 1 and no_hypercube(row.collective, count) is None:
                    yield _expected(row.collective, count, 1, rates.bound((*first[:count],)), name)
            for count in counts_up_to(1 + len(others))[1:]:
                own = rates.bound((*first,))
                bound = over_hosts(machine, own, Collective(row.collective), count, len(first))
                if bound is not None:
                    yield _expected(row.collective, count * len(first), count, bound, name)


def _expected(
    collective: CollectiveName, devices: int, hosts: int, bound: BusbwBound, name: str | None
) -> ExpectedBusbw:
    published = tuple(
        Published(one.reached, one.algorithm, one.source)
        for one in rows()
        if (one.operation, one.ranks) == (collective, devices)
        and one.reached
        and _spelled(name or "") == _spelled(machine_of(one))
    )
    return ExpectedBusbw(collective, devices, hosts, bound, published)


def _spelled(name: str) -> str:
    return "".join(name.lower().replace("×", "x").split())
