"""Finds earlier runs of the same machine, state and settings, and compares a run with them."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from statistics import fmean, variance

import msgspec
from msgspec.structs import replace

from linkgauge.judge.blame.limits import SHOWN
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.expected import Earlier, EarlierLoss
from linkgauge.model.documents.history import EarlierMedians, EarlierRun
from linkgauge.model.recorded import PathKind
from linkgauge.model.stats.changes import Aim, detectable, proven
from linkgauge.model.units import Better

from .likeness import CellFigure, RunFigures, Runs, cell_figure, conditions
from .machine_state import KERNEL_OPTIONS, Fact, changed_facts, state_from
from .side_tests import (
    Key,
    Logs,
    SideFigures,
    Sides,
    Tests,
    key_of,
    logs_of,
    table_of,
    tested,
)
from .trends import LEAST_CHANGE
from .what_changed import Changed, grouped

_OF_FIGURES = (
    "accelerators", "driver", "kernel", KERNEL_OPTIONS, "governor", "linkgauge", "CPU", "CPUs",
    "NUMA nodes", "hypervisor", "faults",
)  # fmt: skip
"""The facts of a machine's state on which the variation of its figures depends."""


def earlier(first: Runs, used: Runs, found: Iterable[RunFigures], most: int) -> list[RunFigures]:
    """Returns the latest runs in `found` that can be compared with `first` and are not in `used`:
    at most `most`, oldest first. Leaves out runs later than `first`, because they may already have
    the change to find."""
    last = max(_second(run) for run in first)
    known = set[Hashable]().union(*map(_identities, used))
    wanted = set(map(conditions, first))
    counted: list[RunFigures] = []
    for run in sorted(found, key=_second, reverse=True):
        own = _identities(run)
        if _second(run) <= last and known.isdisjoint(own) and conditions(run) in wanted:
            counted.append(run)
            known |= own
    return counted[:most][::-1]


def is_in_same_state(state: Mapping[str, str], other: Mapping[str, str]) -> bool:
    """Whether two states agree in all facts on which a machine's figures depend."""
    return all(_fact(state, name) == _fact(other, name) for name in _OF_FIGURES)


def as_figures(past: EarlierRun, like: RunFigures) -> RunFigures | None:
    """Converts a run of the history. Returns None if the machine was in another state than now."""
    if not is_in_same_state(state_from(like.machine, like.facts), past.state):
        return None
    own = {"cells": tuple(map(cell_figure, past.figures)), "facts": {**past.state}}
    return by_name(RunFigures, past.run, past, machine=like.machine, **own)


class Since(msgspec.Struct, frozen=True):
    """What changed since earlier runs. `largest` is the largest group of changed cells. `more` is
    the number of cells in other groups. `facts` are changes in the machine. `earlier` is what parts
    are judged by; null if there are too few runs."""

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
FEWEST = 5
"""The fewest earlier runs by which a part is judged, and that show how much figures vary."""


def between_runs(past: EarlierMedians, run: RunFigures) -> dict[PathKind, float]:
    """Returns relative standard deviations of figures between earlier runs, by path kind."""
    paths = {key_of(cell): cell.path for cell in run.cells}
    found: dict[PathKind, list[float]] = {}
    for cell, medians in past.cells:
        if len(medians) >= FEWEST and (path := paths.get(key_of(cell))) is not None:
            found.setdefault(path, []).append(variance(map(math.log, medians.values())))
    return {path: math.sqrt(fmean(variances)) for path, variances in found.items()}


_Table = Mapping[Key, SideFigures]


def changes_since(past: EarlierMedians, run: RunFigures) -> Since | None:
    """Compares a run with earlier runs. Leaves out recent runs that may have the same loss: the
    runs known to be low or, if the machine did not change, up to seven runs. Returns None if too
    little is known to compare."""
    facts = changed_facts(past.state, state_from(run.machine, run.facts))
    cells = [(by_name(CellFigure, cell, status="pass"), own) for cell, own in past.cells]
    before = [
        replace(
            run,
            cells=tuple(replace(cell, figure=own[number]) for cell, own in cells if number in own),
        )
        for number in range(1, past.runs + 1)
    ]
    found: Since | None = None
    for low in dict.fromkeys((past.low, 0)):
        recent = (low,) if low else (0,) if facts else _LATER
        found = _held(before[past.low - low :], run, facts, recent)
        if found is not None and found.earlier is not None and found.earlier.lost:
            break
    return found if found is not None and found.cells else None


def held_against(before: Runs, run: RunFigures) -> Since | None:
    """Compares a run with runs `before` it, latest first. Returns None if there are none."""
    return _held(before, run, (), (0,))


def _held(
    before: Runs, run: RunFigures, facts: tuple[Fact, ...], recent: Sequence[int]
) -> Since | None:
    """Compares a run with earlier runs, latest first. Each of `recent` is how many of the latest
    of them may have the same loss, and count with the run. They are tried in order."""
    found: Since | None = None
    whole = table_of(Sides(("before", "now"), (before, (run,))))
    logs = {key: [logs_of(side) for side in own.sides] for key, own in whole.items()}
    for later in recent:
        earlier = len(before) - later
        if earlier < 1:
            continue
        fallen = _fallen(run, logs, later) if earlier >= FEWEST else {}
        if later and not fallen:
            continue
        given = Sides(("before", "now"), (before[later:], (run, *before[:later])))
        table = table_of(given) if later else whole
        tests = tested(table, given, "figure")
        found = _since(table, tests, earlier, facts)
        if earlier >= FEWEST:
            lost, unknown = _lost(table, tests, run, fallen)
            changed = {fact.name: (fact.values[0], fact.values[1]) for fact in facts}
            found = replace(found, earlier=Earlier(earlier, later, lost, unknown, changed))
            if lost:
                break
    return found


def _loss(before: float, after: float, better: Better) -> float:
    return before - after if better == "higher" else after - before


def _fallen(run: RunFigures, logs: Mapping[Key, Sequence[Logs]], later: int) -> dict[Key, float]:
    """Returns the smallest loss (a logarithm) of each cell that is worse in all latest runs."""
    least = -math.log1p(-Aim().least)
    fallen: dict[Key, float] = {}
    for cell in run.cells:
        earlier, now = logs[key := key_of(cell)]
        before = [log for number, log in earlier.items() if number >= later]
        after = [*now.values(), *(log for number, log in earlier.items() if number < later)]
        if before and len(after) > later:
            mean = fmean(before)
            if (lost := min(_loss(mean, one, cell.better) for one in after)) >= least:
                fallen[key] = lost
    return fallen


def _since(table: _Table, tests: Tests, runs: int, facts: tuple[Fact, ...]) -> Since:
    cells = [found.any for found in table.values()]
    moved = [
        (to, test.ratio) if test and (to := proven(test, Aim(), cell.better)) else None
        for cell, test in zip(cells, tests.tests[0], strict=True)
    ]
    large = [one for one in grouped("now", cells, moved) if abs(one.ratio - 1) >= LEAST_CHANGE]
    more = sum(one.cells for one in large[1:])
    return Since(runs, tests.counts[0], large[0] if large else None, more, facts)


def _lost(
    table: _Table, tests: Tests, run: RunFigures, fallen: Mapping[Key, float]
) -> tuple[tuple[EarlierLoss, ...], tuple[int, ...]]:
    lost, unknown = list[EarlierLoss](), list[int]()
    found = dict(zip(table, tests.tests[0], strict=True))
    for number, cell in enumerate(run.cells):
        test = found[key := key_of(cell)]
        if test is None or detectable(test, Aim(), tests.counts[0], cell.better) > SHOWN:
            unknown.append(number)
        if test is None or not cell.figure or test.holm >= CHANCE / len(_LATER):
            continue
        if fallen.get(key, 0.0) >= _FAR * test.deviation:
            usual = test.sides[0].mean
            share = math.exp(-_loss(usual, math.log(cell.figure), cell.better))
            lost.append(EarlierLoss(number, math.exp(usual), share))
    return tuple(lost), tuple(unknown)


def _fact(state: Mapping[str, str], name: str) -> str | None:
    value = state.get(name)
    return value.partition(" ")[0] if value and name == "linkgauge" else value


def _identities(run: RunFigures) -> set[Hashable]:
    """Returns a run's name and a simulated run's seed: runs with the same seed do not vary."""
    name, simulation = (run.id, run.label, _second(run)), run.settings.simulation
    return {name} if simulation is None else {name, simulation.draw}


def _second(run: RunFigures) -> str:
    """Returns the start in whole seconds: run folders and the history round it differently."""
    return run.started[:19]
