"""Makes lines on a whole run: notes, missed precision, and how to reach it."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import inf
from operator import attrgetter
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.engine.budget import FOR_PASSES, seconds_between
from linkgauge.engine.enough import REPETITIONS
from linkgauge.engine.plan import setup_seconds
from linkgauge.judge.doctor.busy import shortfall
from linkgauge.judge.expected.assumed import shown as assumed_shown
from linkgauge.judge.expected.readings import as_one
from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.soak import FailedRepetition, Moment
from linkgauge.model.grouped import grouped
from linkgauge.model.notes import Imprecise, NearCache, Note
from linkgauge.model.settings import REPETITION_SECONDS
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.units import (
    clock,
    count_of,
    format_decimals,
    format_duration,
    format_size,
    unit_of,
)
from linkgauge.report.blocks import Line, Span, line
from linkgauge.report.forms import cells_of

from .comparison import in_words
from .sentences import NAMED, QUIET, first_of, near_cache, sentence

MOST_NOTES = 4
MORE = "linkgauge show -v"
_MORE = "show -v"
_NUMBER = re.compile(r"[0-9]+")


ANEW = "computed anew from their samples: an older linkgauge wrote the files"


class Noted(NamedTuple):
    """A note, and the number of cells that have it; None for a note on the machine or request."""

    sentence: str
    cells: int | None = None

    def line(self, more: str = "") -> Line:
        count = "" if self.cells is None else f" ({count_of(self.cells)})"
        return line(Span("note", "warn"), f"{count}: {self.sentence}{more}")


def note_lines(run: Run) -> Iterator[Line]:
    yield from (noted.line() for noted in (*_of_cells(run), *_shared(run)))
    if (missed := missed_precision(run)) is not None:
        yield missed.noted.line()
    yield from deciding_lines(run)


def folded_notes(run: Run) -> Iterator[Line]:
    kinds = grouped(
        (_NUMBER.sub("0", noted.sentence.partition(": ")[0]), noted) for noted in _of_cells(run)
    )
    first, more = list(kinds.values())[:MOST_NOTES], list(kinds.values())[MOST_NOTES:]
    for equivalent in first:
        like_it = f", and {len(equivalent) - 1} like it ({_MORE})" if len(equivalent) > 1 else ""
        yield equivalent[0].line(like_it)
    if more:
        yield Noted(f"{sum(map(len, more))} more ({MORE})").line()
    yield from (noted.line() for noted in _shared(run))
    yield from deciding_lines(run)


def _of_cells(run: Run) -> Iterator[Noted]:
    noted = grouped(
        (_subject(note), (number, note))
        for number, (_, cell) in enumerate(cells_of(run.results))
        for note in cell.notes
        if not isinstance(note, Imprecise)
    )
    for own in noted.values():
        yield Noted(_sentence_of_all([note for _, note in own]), len({at for at, _ in own}))


def _shared(run: Run) -> Iterator[Noted]:
    if (oversubscription := run.machine.oversubscription) is not None:
        yield Noted(f"{oversubscription}: they wait for each other")


def _subject(note: Note) -> Note:
    if isinstance(note, NearCache):
        return replace(note, size=0 if note.fits else note.cache)
    return note


def _sentence_of_all(notes: Sequence[Note]) -> str:
    near = [note for note in notes if isinstance(note, NearCache)]
    return near_cache(near[0], {note.size for note in near}) if near else sentence(notes[0])


def deciding_lines(run: Run) -> Iterator[Line]:
    """Yields notes on recomputed ranges and a simulation's assumptions and ineffective faults."""
    if run.ranges == "anew":
        yield Noted(f"ranges are {ANEW}").line()
    if not run.simulated:
        return
    if assumed := run.machine.known.assumed:
        yield Noted(f"assumed, because not stated: {assumed_shown(assumed)}").line()
    from linkgauge.backends.sim.machine import missed  # loaded for simulated runs alone

    for fault, why in missed(as_one(run)):
        yield Noted(f"fault {fault} had no effect: {why}").line()


def modes(cell: CellResult, unit: str) -> str:
    """Formats medians and shares of two groups of samples: `396.10 or 356.20 GB/s, 60 : 40`."""
    larger, smaller = cell.modes
    both = larger.gates + smaller.gates
    share = round(100 * larger.gates / both)
    one, other = (format_decimals(mode.median, unit) for mode in (larger, smaller))
    return f"{one} or {other} {unit_of(unit).shown}, {share} : {100 - share}"


class Missed(NamedTuple):
    """Cells with errors above precision `asked`, worst first; `unknown` more have no interval."""

    asked: float
    cells: tuple[str, ...]
    unknown: int
    advice: str

    @property
    def number(self) -> int:
        return len(self.cells) + self.unknown

    @property
    def noted(self) -> Noted:
        rest = [f"{len(self.cells) - NAMED} more"] if len(self.cells) > NAMED else []
        rest += [f"{count_of(self.unknown)} without an interval"] if self.unknown else []
        named = ", ".join((*self.cells[:NAMED], *rest))
        return Noted(f"precision of ±{self.asked:.2%} missed: {named}; {self.advice}", self.number)


def missed_precision(run: Run) -> Missed | None:
    asked = run.settings.precision
    name = naming(run)
    missed = [
        (error, "" if error == inf else f"{name(result, cell)} ±{error:.1%}")
        for result, cell in cells_of(run.results)
        if (error := shortfall(cell, run.settings)) is not None
    ]
    if not missed:
        return None
    named = tuple(text for _, text in sorted(missed, reverse=True) if text)
    advice = QUIET if run.finished is not None else _how_to_go_on(run)
    return Missed(asked, named, len(missed) - len(named), advice)


def _how_to_go_on(run: Run) -> str:
    how = "--resume goes on with it" if not run.machine.ranks else "start a new run"
    return f"the run was interrupted: {how}"


def more_precise(run: Run, *, is_busy: bool = False) -> str:
    """Returns advice on more precise figures: a longer time budget or, if `is_busy`, less load."""
    if run.finished is None:
        return f"; {_how_to_go_on(run)}"
    aim = format_duration(run.budget.aim) if run.budget else ""
    used = f"; the time budget of {aim} was used" if aim else ""
    cells = [cell for _, cell in cells_of(run.results)]
    if any(cell.kind == "budget" for cell in cells):
        return used
    give = None if is_busy else budget_needed(run)
    if give is None:
        return f"{used}: {QUIET}"
    few = any(cell.repetitions and relative_error(cell.summary) is None for cell in cells)
    return f"{used}: give --budget {give}" + (" to repeat each three times" if few else "")


def unreached(run: Run) -> str | None:
    if not run.budget:
        return None
    left = [
        (result.benchmark, number, len(result.cells))
        for result in run.results
        if (number := sum(cell.kind == "budget" for cell in result.cells))
    ]
    if not left:
        return None
    whole = dict.fromkeys(name for name, number, all_ in left if number == all_)
    names = list(dict.fromkeys((*whole, *(name for name, _, _ in left))))
    cells = count_of(sum(number for _, number, _ in left))
    aim = format_duration(run.budget.most)
    give = budget_needed(run)
    advice = f": give --budget {give}" if give else f": name those to measure ({_LIST})"
    first_took_all = not any(cell.repetitions for _, cell in cells_of(run.results))
    advice = ": give a longer --budget or a smaller --size" if first_took_all else advice
    return f"{cells} of {first_of(names, ', ', FEW_NAMED)} in {aim}{advice}"


_LIST = "linkgauge run BENCHMARK..."
FEW_NAMED = 3


def naming(run: Run) -> Callable[[Result, CellResult], str]:
    measured = Counter(map(attrgetter("benchmark", "backend"), run.results))

    def name(result: Result, cell: CellResult) -> str:
        several = measured[result.benchmark, result.backend] > 1 and result.size
        size = f" {format_size(result.size)}" if several else ""
        return in_words(result, cell) or f"{result.benchmark}{size} {place_of(result, cell)}"

    return name


MOST_SECONDS = 3600.0
"""Where it takes more, more time is no help."""
ROOM = 3.0
"""The factor by which a variance that few repetitions show may be too small."""
SLOWER = 1.25
"""The factor by which the same repetitions may take longer in another run."""


def budget_needed(run: Run) -> str | None:
    """Returns a time budget (`3m`) that is enough to measure all cells or, if all are measured, to
    reach the wanted precision. Returns None if it is unknown or too long."""
    if run.tool or run.command[1:2] not in ((), ("run",)):
        return None
    cells = [*cells_of(run.results)]
    repetitions = sum(len(cell.repetitions) for _, cell in cells)
    usual = sum(len(cell.repetitions) * _usual(result) for result, cell in cells)
    used = _used(run, [cell for _, cell in cells])
    if not repetitions or used is None:
        return None
    reaches = any(cell.kind == "budget" for _, cell in cells)
    needed = 0.0
    for result, cell in cells:
        if cell.kind == "budget":
            needed += REPETITIONS * max(_usual(result), usual / repetitions)  # it may be no cheaper
        elif cell.repetitions:
            more = 1.0 if reaches else _times_more(cell, run)
            needed += max(REPETITIONS, len(cell.repetitions) * more) * _usual(result)
    rest = max(0.0, run.budget.most - run.budget.measuring) if run.budget else 0.0
    asked = SLOWER * (needed * used / usual / FOR_PASSES + rest)
    return _rounded(asked) if asked <= MOST_SECONDS else None


def _usual(result: Result) -> float:
    return REPETITION_SECONDS + setup_seconds(result.size)


def _used(run: Run, cells: Sequence[CellResult]) -> float | None:
    if run.simulated:
        return sum(
            max(REPETITION_SECONDS * len(cell.repetitions), cell.seconds or 0.0) for cell in cells
        )
    if run.finished is None or run.resumed:
        return None
    return seconds_between(run.started, run.finished) or None


def _times_more(cell: CellResult, run: Run) -> float:
    """Returns the factor by which repetitions must grow to reach the requested precision."""
    asked, error = run.settings.of(cell).precision, relative_error(cell.summary)
    if not asked or error is None or error <= asked:
        return 1.0
    return ROOM * (error / asked) ** 2


def _rounded(seconds: float) -> str:
    if seconds <= 60:
        return f"{math.ceil(seconds / 10) * 10}s"
    step = 1 if seconds <= 600 else 5
    return f"{math.ceil(seconds / 60 / step) * step}m"


def when(moment: Moment) -> str:
    return f"at {clock(moment.at)}, in round {moment.round} ({day(moment)} UTC)"


def day(moment: Moment) -> str:
    return moment.time[:19].replace("T", " ")


def failed_line(failed: FailedRepetition) -> Line:
    reason = f": {failed.reason}" if failed.reason else ""
    return line(
        Span(failed.status.upper(), "bad"), f"  {failed.cell}  {when(failed.moment)}{reason}"
    )
