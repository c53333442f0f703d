"""Which earlier runs show how much the runs of a comparison vary: the same machine in the same
state, measured in the same way, and before what is compared."""

from __future__ import annotations

from collections.abc import Iterable

from linkgauge.model.history import EarlierRun
from linkgauge.model.settings import Settings

from .likeness import Runs, is_alike
from .machine_state import KERNEL_OPTIONS, state_from
from .run_figures import RunFigures, cell_figure

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
    if any(_fact(state, name) != _fact(past.state, name) for name in _OF_FIGURES):
        return None
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
