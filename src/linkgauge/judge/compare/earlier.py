"""Finds earlier runs that show how much runs vary: those of the same machine, in the same state and
with the same settings. Also compares a run with its earlier runs."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec.structs import replace

from linkgauge.model.documents.history import EarlierRun
from linkgauge.model.earlier import Earlier, EarlierLoss
from linkgauge.model.grouped import grouped
from linkgauge.model.settings import Settings
from linkgauge.model.stats.changes import Aim

from .likeness import CellFigure, RunFigures, Runs, cell_figure, is_alike
from .machine_state import KERNEL_OPTIONS, Fact, facts_apart, state_from
from .run_comparison import RunComparison, compare_runs
from .side_tests import Key, Sides, key_of
from .trends import LEAST_CHANGE
from .what_changed import Changed

_OF_FIGURES = (
    "accelerators", "driver", "kernel", KERNEL_OPTIONS, "governor", "linkgauge", "CPU", "CPUs",
    "NUMA nodes", "hypervisor", "faults",
)  # fmt: skip
"""The facts of a machine's state on which the variation of its figures depends."""


def earlier(first: Runs, used: Runs, found: Iterable[RunFigures], most: int) -> list[RunFigures]:
    """Returns the latest runs among `found` that are comparable with the first side, at most
    `most`. The runs in `used` do not count. Neither do runs later than the first side, because they
    may have the change that the comparison looks for."""
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
    """Converts a run of the history to the form of the run `like`. Returns None if the machine was
    in another state then."""
    state = state_from(like.machine, like.facts)
    return _as_run_of(past, like) if _is_in(state, past.state) else None


class Since(msgspec.Struct, frozen=True):
    """The difference between a run and the latest runs before it. `runs` is their number, and
    `cells` the number of compared cells. `largest` is the largest group of changed cells; null if
    none changed. `more` is the number of changed cells in other groups. `facts` are the changed
    facts of the machine. `earlier` is the comparison by which parts are judged; null for too few
    runs."""

    runs: int
    cells: int
    largest: Changed | None
    more: int
    facts: tuple[Fact, ...]
    earlier: Earlier | None = None


CHANCE = 0.001
"""The probability that chance alone makes any cell of a healthy run lose against earlier runs."""
_LATER = (1, 3, 7, 0)
"""How many runs before this one are assumed to have the same loss. The numbers are tried in this
order, 0 (this run alone) last. Otherwise a loss would count as usual once it was measured."""
_FAR = 5.0
"""The standard deviations that each of these runs must lose."""
_FEWEST = 5
"""The fewest earlier runs by which a part is judged."""
SHOWN = 0.1
"""The loss that earlier runs must be able to show for a cell to be known not to have lost."""


def apart_from(past: Sequence[EarlierRun], run: RunFigures) -> Since | None:
    """Compares a run with `past` runs of the same machine and settings, the latest first. Returns
    None without past runs, or if it is unknown how much runs vary."""
    before = [_as_run_of(one, run) for one in past if _is_in(one.state, past[0].state)]
    facts = facts_apart(past[0].state, state_from(run.machine, run.facts)) if past else ()
    found = held_against(before, run, facts, alone=bool(facts))
    return found if found is not None and found.cells else None


def held_against(
    before: Runs, run: RunFigures, facts: tuple[Fact, ...] = (), *, alone: bool = True
) -> Since | None:
    """Compares a run with earlier runs, the latest first. Unless `alone`, the latest earlier runs
    count on the run's side if they show the same loss. Returns None without earlier runs."""
    found: Since | None = None
    logs = grouped(
        (key_of(cell), (number, _log(cell)))
        for number, one in enumerate((run, *before))
        for cell in one.cells
        if cell.figure
    )
    for later in (0,) if alone else _LATER:
        first, second = before[later:], [run, *before[:later]]
        fallen = _fallen(logs, len(second))
        if not first or (later and not (fallen and len(first) >= _FEWEST)):
            continue
        compared = compare_runs(Sides(("before", "now"), [first, second]), Aim(), slow=False)
        found = _since(compared, facts)
        if len(first) >= _FEWEST:
            found = replace(found, earlier=_earlier(compared, run, fallen, facts))
            if found.earlier is not None and found.earlier.lost:
                break
    return found


def _fallen(logs: Mapping[Key, Sequence[tuple[int, float]]], count: int) -> dict[Key, float]:
    """Returns the cells that are worse in all of the latest `count` runs than in the runs before,
    each with its smallest loss as a logarithm. `logs` has the logarithms of each cell's figures,
    with the number of the run, the latest run first."""
    least = -math.log1p(-Aim().least)
    fallen: dict[Key, float] = {}
    for key, own in logs.items():
        if len(own) > count and own[count - 1][0] == count - 1:
            before, after = ([log for _, log in side] for side in (own[count:], own[:count]))
            if (lost := statistics.fmean(before) - max(after)) >= least:
                fallen[key] = lost
    return fallen


def _log(cell: CellFigure) -> float:
    """Returns the logarithm of the figure, or of its inverse for a time."""
    return math.log(cell.figure or 1.0) * (1 if cell.better == "higher" else -1)


def _since(found: RunComparison, facts: tuple[Fact, ...]) -> Since:
    large = [one for one in found.changed if abs(one.ratio - 1) >= LEAST_CHANGE]
    more = sum(one.cells for one in large[1:])
    runs = len(found.sides[0].runs)
    return Since(runs, found.compared[0], large[0] if large else None, more, facts)


def _earlier(
    found: RunComparison, run: RunFigures, fallen: Mapping[Key, float], facts: Iterable[Fact]
) -> Earlier:
    before, now = (len(side.runs) for side in found.sides)
    lost, unknown = list[EarlierLoss](), list[int]()
    cells = {cell.key: cell for cell in found.cells}
    for number, own in enumerate(run.cells):
        key = key_of(own)
        first, (one,) = cells[key].sides[0], cells[key].changes
        if one.needed is None or one.needed.detectable > SHOWN:
            unknown.append(number)
        if first is None or first.figure is None or one.change is None:
            continue
        sure = one.change.holm < CHANCE / len(_LATER)
        if sure and fallen.get(key, 0.0) >= _FAR * one.change.deviation:
            share = math.exp(_log(own) - _log(replace(own, figure=first.figure)))
            lost.append(EarlierLoss(number, first.figure, share))
    changed = {fact.name: (fact.values[0], fact.values[1]) for fact in facts}
    return Earlier(before, now - 1, tuple(lost), tuple(unknown), changed)


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
    """Returns a fact of the state. For linkgauge, this is only the version, without the build."""
    value = state.get(name)
    return value.partition(" ")[0] if value and name == "linkgauge" else value


def _same(run: RunFigures) -> tuple[str, str, str]:
    """Returns a key that is equal for the same run in folders and in the history."""
    return run.id, run.label, _second(run)


def _second(run: RunFigures) -> str:
    """Returns the start of a run up to the second, because folders and the history round it
    differently."""
    return run.started[:19]


def _draw(settings: Settings) -> int | None:
    """Returns the seed of a simulated run's noise, or None for a real run. Two runs with the same
    seed do not vary."""
    return None if settings.simulation is None else settings.simulation.draw
