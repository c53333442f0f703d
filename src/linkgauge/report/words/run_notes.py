"""Makes notes on a run besides its figures: warnings, two modes, wide intervals."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import inf
from typing import NamedTuple

from msgspec.structs import replace

from linkgauge.judge.expected.as_one import as_one
from linkgauge.judge.expected.assumed import shown as assumed_shown
from linkgauge.judge.precision import shortfall
from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.notes import Imprecise, NearCache, Note
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.units import count_of, format_duration, format_size, unit_of
from linkgauge.report.blocks import Line, Span, line
from linkgauge.report.forms import cells_of
from linkgauge.report.matrix import shown

from .host_figures import in_words
from .sentences import NAMED, QUIET, near_cache, sentence

MOST_NOTES = 4
"""The most notes at the end of a run."""
MORE = "linkgauge show -v"
_MORE = "show -v"
"""The option with which all notes are shown."""
_NUMBER = re.compile(r"[0-9]+")


ANEW = "formed anew from the samples, by today's rule: the file has others"


class Noted(NamedTuple):
    """A sentence of a note, and the number of cells with the note. The number is None for a note on
    the machine or the request."""

    sentence: str
    cells: int | None = None

    def line(self, more: str = "") -> Line:
        count = "" if self.cells is None else f" ({count_of(self.cells)})"
        return line(Span("note", "warn"), f"{count}: {self.sentence}{more}")


def note_lines(run: Run) -> Iterator[Line]:
    """Yields each warning once, with the number of its cells. Then come the cells that missed the
    precision, and simulated faults that had no effect. Warnings about sizes near a cache's size are
    combined."""
    yield from (noted.line() for noted in (*_of_cells(run), *_shared(run)))
    if (missed := missed_precision(run)) is not None:
        yield missed.noted.line()
    yield from deciding_lines(run)


def folded_notes(run: Run) -> Iterator[Line]:
    """Yields the notes in few lines, without the note on precision. Notes that differ only in
    numbers, or after a colon, are combined."""
    kinds: dict[str, list[Noted]] = {}
    for noted in _of_cells(run):
        kind = _NUMBER.sub("0", noted.sentence.partition(": ")[0])
        kinds.setdefault(kind, []).append(noted)
    first, more = list(kinds.values())[:MOST_NOTES], list(kinds.values())[MOST_NOTES:]
    for alike in first:
        like_it = f", and {len(alike) - 1} like it ({_MORE})" if len(alike) > 1 else ""
        yield alike[0].line(like_it)
    if more:
        yield Noted(f"{sum(map(len, more))} more ({MORE})").line()
    yield from (noted.line() for noted in _shared(run))
    yield from deciding_lines(run)


def _of_cells(run: Run) -> Iterator[Noted]:
    told: defaultdict[Note, list[Note]] = defaultdict(list)
    cells: Counter[Note] = Counter()
    for _, cell in cells_of(run.results):
        own = [(_subject(note), note) for note in cell.notes if not isinstance(note, Imprecise)]
        for subject, note in own:
            told[subject].append(note)
        cells.update({subject for subject, _ in own})
    yield from (Noted(_sentence_of_all(notes), cells[one]) for one, notes in told.items())


def _shared(run: Run) -> Iterator[Noted]:
    if (crowd := run.machine.crowd) is not None:
        yield Noted(f"{crowd}: they wait for each other")


def _subject(note: Note) -> Note:
    """Returns a key that is equal for notes that can be combined in one sentence."""
    if isinstance(note, NearCache):
        return replace(note, size=0 if note.fits else note.cache)
    return note


def _sentence_of_all(notes: Sequence[Note]) -> str:
    near = [note for note in notes if isinstance(note, NearCache)]
    return near_cache(near[0], {note.size for note in near}) if near else sentence(notes[0])


def deciding_lines(run: Run) -> Iterator[Line]:
    """Yields the notes that decide what figures say: that their ranges are not those of the file,
    and of a simulated machine what is assumed of it, and each fault that had no effect."""
    if run.ranges == "anew":
        yield Noted(f"ranges are {ANEW}").line()
    if not run.simulated:
        return
    if assumed := run.machine.known.assumed:
        yield Noted(f"assumed, as nothing states it: {assumed_shown(assumed)}").line()
    from linkgauge.backends.sim.missed import missed  # loaded for simulated runs alone

    for fault, why in missed(as_one(run)):
        yield Noted(f"fault {fault} had no effect: {why}").line()


def modes(cell: CellResult, unit: str) -> str:
    """Returns two groups of samples in words, the larger first: `396.10 or 356.20 GB/s, 60 :
    40`."""
    larger, smaller = cell.modes
    both = larger.gates + smaller.gates
    share = round(100 * larger.gates / both)
    values = f"{shown(larger.median, unit)} or {shown(smaller.median, unit)} {unit_of(unit).shown}"
    return f"{values}, {share} : {100 - share}"


class Missed(NamedTuple):
    """The cells that missed a precision. `asked` is the requested precision. `cells` are the cells
    with the precision that they reached, the worst first. `unknown` is the number of cells without
    an interval. `advice` says what to do."""

    asked: float
    cells: tuple[str, ...]
    unknown: int
    advice: str

    @property
    def number(self) -> int:
        return len(self.cells) + self.unknown

    @property
    def noted(self) -> Noted:
        """Returns the missed precision as a note."""
        rest = [f"{len(self.cells) - NAMED} more"] if len(self.cells) > NAMED else []
        rest += [f"{count_of(self.unknown)} without an interval"] if self.unknown else []
        named = ", ".join((*self.cells[:NAMED], *rest))
        return Noted(f"precision of ±{self.asked:.2%} missed: {named}; {self.advice}", self.number)


def missed_precision(run: Run) -> Missed | None:
    """Returns the missed precision of a run. None if every cell reached the precision, or if none
    was requested."""
    asked = run.settings.precision
    found: list[tuple[float, str]] = []
    unknown = 0
    name = naming(run)
    for result in run.results:
        for cell in result.cells:
            error = shortfall(cell, run.settings)
            if error == inf:
                unknown += 1
            elif error is not None:
                found.append((error, f"{name(result, cell)} ±{error:.1%}"))
    if not found and not unknown:
        return None
    found.sort(reverse=True)
    advice = QUIET if run.finished is not None else _how_to_go_on(run)
    return Missed(asked, tuple(text for _, text in found), unknown, advice)


def _how_to_go_on(run: Run) -> str:
    how = "--resume goes on with it" if not run.machine.ranks else "start a new run"
    return f"the run was interrupted: {how}"


def more_precise(run: Run, *, is_busy: bool = False) -> str:
    """Returns what to do for the precision that a run missed: give a time budget, if that helps. It
    may not where other programs use the machine (`is_busy`). Where a budget did not reach all
    cells, more time goes to these first, so nothing is said."""
    if run.finished is None:
        return f"; {_how_to_go_on(run)}"
    used = ""
    if run.budget:
        used = f"; the time budget of {format_duration(run.budget.aim)} was used"
    cells = [cell for _, cell in cells_of(run.results)]
    if any(cell.kind == "budget" for cell in cells):
        return used
    give = None if is_busy else _budget_needed(run)
    if give is None:
        return f"{used}: {QUIET}"
    few = any(cell.visits and relative_error(cell.summary) is None for cell in cells)
    return f"{used}: give --budget {give}" + (" to visit each three times" if few else "")


def unreached(run: Run) -> str | None:
    """Returns which benchmarks the time budget did not reach, and the budget that reaches them.
    Returns None if it reached all."""
    left = [
        (result.benchmark, number, len(result.cells))
        for result in run.results
        if (number := sum(cell.kind == "budget" for cell in result.cells))
    ]
    if not left or not run.budget:
        return None
    whole = dict.fromkeys(name for name, number, all_ in left if number == all_)
    names = list(dict.fromkeys((*whole, *(name for name, _, _ in left))))
    cells = count_of(sum(number for _, number, _ in left))
    aim = format_duration(run.budget.most)
    give = _budget_needed(run)
    advice = f": give --budget {give}" if give else f": name those to measure ({_LIST})"
    if not any(cell.visits for _, cell in cells_of(run.results)):  # the first took all of the time
        advice = ": give a longer --budget or a smaller --size"
    more = f" and {len(names) - FEW_NAMED} more" if len(names) > FEW_NAMED else ""
    return f"{cells} of {', '.join(names[:FEW_NAMED])}{more} in {aim}{advice}"


_LIST = "linkgauge run BENCHMARK..."
FEW_NAMED = 3
"""The most benchmarks that are named among those that the budget did not reach."""


def naming(run: Run) -> Callable[[Result, CellResult], str]:
    """Returns a function that names cells by benchmark and place. If the benchmark has several
    sizes, the name has the size, too."""
    measured = Counter((result.benchmark, result.backend) for result in run.results)

    def name(result: Result, cell: CellResult) -> str:
        several = measured[result.benchmark, result.backend] > 1 and result.size
        size = f" {format_size(result.size)}" if several else ""
        return in_words(result, cell) or f"{result.benchmark}{size} {place_of(result, cell)}"

    return name


def _budget_needed(run: Run) -> str | None:
    from .time_needed import budget_needed

    return budget_needed(run)
