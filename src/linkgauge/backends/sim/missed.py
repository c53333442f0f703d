"""Finds scheduled faults that had no effect on a run, and explains why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.errors import InputError

from .faults import ALL, Drift, Fault, Flip, Jitter, Lost, OrdinalRange, Slow, Stall
from .machine import machine_of


class _Met(msgspec.Struct, frozen=True, eq=False):
    cell: CellResult
    result: Result
    touched: frozenset[str]


def missed(run: Run) -> Iterator[tuple[Fault, str]]:
    """Yields nothing if the run has not ended, or its description is no longer valid."""
    simulation = run.settings.simulation
    if simulation is None or run.finished is None:
        return
    try:
        machine = machine_of(simulation)
    except InputError:
        return
    if not machine.faults:
        return
    every = [
        _Met(cell, result, machine.touched_by(cell.transfers, cell.operation))
        for result in run.results
        for cell in result.cells
    ]
    for fault in machine.faults:
        if (why := _why_missed(fault, every, run)) is not None:
            yield fault, why


def _reaches(reach: OrdinalRange, number: int, count: int, run: Run) -> bool:
    """Whether `reach` includes the cell `number`, of `count` cells, in any round of the run."""
    passed = run.settings.simulation.passed if run.settings.simulation is not None else 0
    rounds = 1 if run.soak is None else run.soak.rounds + 1
    first = max(0, -(-(reach.first - passed - number) // count)) if count else 0
    return first < rounds and passed + number + first * count in reach


def _why_missed(fault: Fault, every: Sequence[_Met], run: Run) -> str | None:
    # What is lost in one cell is lost in all that follow.
    reach = OrdinalRange(fault.cells.first) if isinstance(fault, Lost) else fault.cells
    within = [met for number, met in enumerate(every) if _reaches(reach, number, len(every), run)]
    if not within:
        rounds = 1 if run.soak is None else run.soak.rounds + 1
        last = len(every) * rounds - 1
        whose = "plan" if run.soak is None else "soak"
        return f"the {whose} has cells 0 to {last}" if every else "the plan has no cells"
    touching = [met for met in within if fault.aims_at(met.touched)]
    several = "no cell" if len(within) == len(every) else f"none of cells {reach}"
    which = f"cell {reach}" if (one := len(within) == 1) else several
    if not touching:
        return f"{which} {'does not touch' if one else 'touches'} {fault.target}"
    measured = [met for met in touching if met.cell.status != "skip"]
    whose = "" if fault.target == ALL else f" through {fault.target}"
    if not measured:
        return f"{which} is skipped" if one else f"the cells{whose} are skipped"
    needs = _NEEDS.get(type(fault))
    if needs is None or any(needs[0](fault, met) for met in measured):
        return None
    return f"the cells{whose} {needs[1].format(fault)}"


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
