"""Earlier runs: which ones show how much the runs of a comparison vary (the same machine in the
same state, measured in the same way, and before what is compared), and how a run differs from them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from linkgauge.model.history import EarlierRun
from linkgauge.model.settings import Settings
from linkgauge.model.stats.changes import Aim

from .likeness import Runs, is_alike
from .machine_facts import Fact
from .machine_state import KERNEL_OPTIONS, facts_apart, state_from
from .run_comparison import compare_runs
from .run_figures import RunFigures, cell_figure
from .side_tests import Sides
from .trends import LEAST_CHANGE
from .what_changed import Changed

_OF_FIGURES = (
    "accelerators", "driver", "kernel", KERNEL_OPTIONS, "governor", "linkgauge", "CPU", "CPUs",
    "NUMA nodes", "hypervisor", "faults",
)  # fmt: skip
"""Facts of a machine's state without which its figures may vary otherwise."""


def earlier(first: Runs, used: Runs, found: Iterable[RunFigures], most: int) -> list[RunFigures]:
    """Of these runs, the latest that count for the first side, each once. Not those that are
    compared themselves, nor any later than the first side: it may have what is to be found, which
    would then look like what runs vary by."""
    last = max(_second(run) for run in first)
    known = {_same(run) for run in used}
    draws = {_draw(run.settings) for run in used} - {None}
    counted: list[RunFigures] = []
    for run in sorted(found, key=_second, reverse=True):
        draw = _draw(run.settings)
        if _second(run) > last or _same(run) in known or draw in draws:
            continue
        if any(is_alike(one, run) for one in first):
            counted.append(run)
            known.add(_same(run))
            draws |= {draw} - {None}
    return counted[:most][::-1]


def as_figures(past: EarlierRun, like: RunFigures) -> RunFigures | None:
    """A run of the history as one of this run's machine; None if that was in another state."""
    state = state_from(like.machine, like.facts)
    return _as_run_of(past, like) if _is_in(state, past.state) else None


class Since(msgspec.Struct, frozen=True):
    """How a run differs from the latest ones before it (so many `runs`, which were measured in one
    state of the machine): of the `cells` compared the largest group that changed (null: none), how
    many cells of other groups changed, and the facts of the machine that changed."""

    runs: int
    cells: int
    largest: Changed | None
    more: int
    facts: tuple[Fact, ...]


def apart_from(past: Sequence[EarlierRun], run: RunFigures) -> Since | None:
    """`past` are runs of the same machine and settings, the latest first. None if there are none,
    or nothing tells how much runs vary."""
    before = [_as_run_of(one, run) for one in past if _is_in(one.state, past[0].state)]
    found = compare_runs(Sides(("before", "now"), [before, [run]]), Aim()) if before else None
    if found is None or not found.compared[0]:
        return None
    large = [one for one in found.changed if abs(one.ratio - 1) >= LEAST_CHANGE]
    facts = facts_apart(past[0].state, state_from(run.machine, run.facts))
    more = sum(one.cells for one in large[1:])
    return Since(len(before), found.compared[0], large[0] if large else None, more, facts)


def _is_in(state: dict[str, str], other: dict[str, str]) -> bool:
    return all(_fact(state, name) == _fact(other, name) for name in _OF_FIGURES)


def _as_run_of(past: EarlierRun, like: RunFigures) -> RunFigures:
    return RunFigures(
        id=past.run.id,
        label=past.run.label,
        started=past.run.started,
        machine=like.machine,
        settings=past.settings,
        cells=tuple(map(cell_figure, past.figures)),
        facts={**past.state},
        simulated=past.run.simulated,
    )


def _fact(state: dict[str, str], name: str) -> str | None:
    """Of linkgauge its version alone, as two builds of one measure alike."""
    value = state.get(name)
    return value.partition(" ")[0] if value and name == "linkgauge" else value


def _same(run: RunFigures) -> tuple[str, str, str]:
    """What a run is known by in folders and in the history alike."""
    return run.id, run.label, _second(run)


def _second(run: RunFigures) -> str:
    """When it began: folders and the history write more or fewer digits after that."""
    return run.started[:19]


def _draw(settings: Settings) -> int | None:
    """What the noise of a simulated run is drawn by: with the same, another run tells nothing."""
    return None if settings.simulation is None else settings.simulation.draw
