"""How a simulated machine is used outside of measurements: its parts, links and faults, and which
faults had no effect on a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.errors import InputError, Unsupported
from linkgauge.model.memory import host
from linkgauge.model.operations.collective import Collective
from linkgauge.model.operations.operation import OperationName
from linkgauge.model.settings import Simulation
from linkgauge.model.transfer import Engine, Transfer

from .description import Description, load, parse_description
from .faults import (
    ALL,
    Drift,
    Fault,
    Flip,
    Jitter,
    Lost,
    OrdinalRange,
    Slow,
    Stall,
    parse_fault,
)
from .hardware import build, with_cpus
from .resources import Resources

if TYPE_CHECKING:
    from linkgauge.backends.protocol import Copy

    from .exchanging import Exchanging

_NEAREST = 6
"""The largest number of targets that an error message lists."""


def described(machine: str, faults: Sequence[str] = (), change: str | None = None) -> Simulation:
    """Returns a machine's simulation with these faults and this change. Raises InputError."""
    name, text = load(machine)
    if change is not None:
        from .changes import changed  # loaded for changes alone

        name, text = f"{name} with {change}", changed(text, change)
    simulation = Simulation(name, text, tuple(faults))
    machine_of(simulation)
    return simulation


@lru_cache(maxsize=1)
def machine_of(simulation: Simulation) -> SimMachine:
    """Builds a simulation's machine. Raises InputError for a bad description, fault or target."""
    parts = built(simulation.description, ())
    faults = faults_of(simulation)
    names = parts.targets if faults else ()
    typed = (*parts.hardware.description.faults, *simulation.faults)
    for text, fault in zip(typed, faults, strict=True):
        if not fault.aims_at(names):
            import difflib

            near = difflib.get_close_matches(fault.target, names, n=_NEAREST, cutoff=0.0)
            more = f", {len(names) - _NEAREST} more" if len(names) > _NEAREST else ""
            raise InputError(
                f"fault '{text}': no {fault.target}: targets are {', '.join(near)}{more} and *"
            )
    return SimMachine(parts, faults)


@lru_cache(maxsize=1)
def built(text: str, cpus: tuple[int, ...]) -> Resources:
    """Returns the parts of the machine that `text` describes, limited to `cpus`. Keeps the last
    result, because a large cluster takes seconds to build."""
    return parts_of(parse_description(text), cpus)


def parts_of(description: Description, cpus: Sequence[int] = ()) -> Resources:
    return Resources(with_cpus(build(description), cpus))


def faults_of(simulation: Simulation) -> list[Fault]:
    own = parse_description(simulation.description).faults
    return list(map(parse_fault, (*own, *simulation.faults)))


class SimMachine:
    def __init__(self, parts: Resources, faults: Sequence[Fault] = ()) -> None:
        self._resources = parts
        self._hardware, self._topology = parts.hardware, parts.topology
        self._description = parts.hardware.description
        self.faults = tuple(faults)
        self._node_of: dict[int, int] = {}
        for node in self._hardware.nodes:
            self._node_of |= dict.fromkeys(node.cpus, node.index)

    def touched(self, transfer: Transfer) -> frozenset[str]:
        """Returns the names of the memories, the engine's owner, and the links with their ends."""
        return self._resources.demand(self._on_nodes(transfer), 0).touched

    def touched_by(self, transfers: Sequence[Transfer], operation: OperationName) -> frozenset[str]:
        """Returns the names of the parts that a cell uses, also between a collective's ranks."""
        touched = frozenset[str]().union(*map(self.touched, transfers))
        if not isinstance(operation, Collective):
            return touched
        from linkgauge.backends.protocol import Copy  # what follows is loaded for collectives alone

        ranks = [Copy(transfer, None, None, transfer.scale, 1) for transfer in transfers]
        try:
            exchanging = self._exchanging(ranks, operation)
        except Unsupported:
            return touched
        return touched.union(*(demand.touched for demand in exchanging.demands))

    def _exchanging(self, ranks: Sequence[Copy], work: Collective) -> Exchanging:
        from .exchanging import Exchanging  # loaded for collectives alone

        return Exchanging(ranks, work, self._resources)

    def _on_nodes(self, transfer: Transfer) -> Transfer:
        # A description has no single CPUs.
        if not transfer.source.is_cpu:
            return transfer
        return _between(*(self._node_of[memory.index or 0] for memory in transfer.memories))


@lru_cache(maxsize=1 << 8)
def _between(node: int, other: int) -> Transfer:
    return Transfer(host(node), host(other), Engine(host(node), "cpu", 1))


# Scheduled faults that had no effect on a run, and why.


class _Met(msgspec.Struct, frozen=True, eq=False):
    cell: CellResult
    result: Result
    touched: frozenset[str]


def missed(run: Run) -> Iterator[tuple[Fault, str]]:
    """Yields the faults without effect on a run, and why; none if the run has not ended."""
    simulation = run.settings.simulation
    if simulation is None or run.finished is None:
        return
    try:
        machine = machine_of(simulation)
    except InputError:
        return
    if not machine.faults:
        return
    every: list[_Met] = []
    for result in run.results:
        for cell in result.cells:
            touched = machine.touched_by(cell.transfers, cell.operation)
            every.append(_Met(cell, result, touched))
    for fault in machine.faults:
        if (why := _why_missed(fault, every, run)) is not None:
            yield fault, why


def _reaches(reach: OrdinalRange, number: int, count: int, run: Run) -> bool:
    """Whether `reach` includes cell `number`, of a run's `count` cells, in any round of a soak."""
    passed = run.settings.simulation.passed if run.settings.simulation is not None else 0
    rounds = 1 if run.soak is None else run.soak.rounds + 1
    first = max(0, -(-(reach.first - passed - number) // count)) if count else 0
    return first < rounds and passed + number + first * count in reach


def _why_missed(fault: Fault, every: Sequence[_Met], run: Run) -> str | None:
    # What is lost in one cell is lost in all that follow.
    reach = OrdinalRange(fault.cells.first) if isinstance(fault, Lost) else fault.cells
    needs = _NEEDS.get(type(fault))
    within = touching = measured = 0
    for number, met in enumerate(every):
        if not _reaches(reach, number, len(every), run):
            continue
        within += 1
        touches = fault.aims_at(met.touched)
        is_measured = touches and met.cell.status != "skip"
        if is_measured and (needs is None or needs[0](fault, met)):
            return None  # it had an effect
        touching, measured = touching + touches, measured + is_measured
    if not within:
        rounds = 1 if run.soak is None else run.soak.rounds + 1
        last = len(every) * rounds - 1
        whose = "plan" if run.soak is None else "soak"
        return f"the {whose} has cells 0 to {last}" if every else "the plan has no cells"
    several = "no cell" if within == len(every) else f"none of cells {reach}"
    which = f"cell {reach}" if (one := within == 1) else several
    if not touching:
        return f"{which} {'does not touch' if one else 'touches'} {fault.target}"
    whose = "" if fault.target == ALL else f" through {fault.target}"
    if not measured:
        return f"{which} is skipped" if one else f"the cells{whose} are skipped"
    return f"the cells{whose} {needs[1].format(fault)}" if needs is not None else None


def _checked(fault: Fault, met: _Met) -> bool:
    checked = met.cell.verified is not None or met.cell.status != "pass"
    size = met.cell.transfers[0].bytes_moved(met.result.size)
    return isinstance(fault, Flip) and checked and fault.offset < size


def _often(fault: Fault, met: _Met) -> bool:
    return isinstance(fault, Stall) and len(met.cell.samples) >= fault.every


def _copies(_fault: Fault, met: _Met) -> bool:
    return met.cell.does.is_by_bytes


def _scatters(_fault: Fault, met: _Met) -> bool:
    return not met.cell.does.by_host_alone


_NEEDS: dict[type[Fault], tuple[Callable[[Fault, _Met], bool], str]] = {
    Flip: (_checked, "move no byte {0.offset} that is compared"),
    Stall: (_often, "have fewer than {0.every} samples"),
    Slow: (_copies, "copy nothing: a latency stays as it is"),
    Drift: (_copies, "copy nothing: a latency stays as it is"),
    Jitter: (_scatters, "are the host's time alone"),
}
"""For each kind of fault, a condition that an affected cell must meet, and the message if no cell
does."""
