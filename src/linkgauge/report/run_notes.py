"""Notes on a run besides its figures: warnings, two modes, wide intervals."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from msgspec.structs import replace
from rich.text import Text

from linkgauge.judge.as_one import as_one
from linkgauge.model.notes import Imprecise, NearCache, Note
from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.statistics import relative_error
from linkgauge.model.units import count_of, format_size, unit_of

from .matrix import shown
from .sentences import NAMED, QUIETEN, near_cache, sentence

CellNotes = list[Note]
"""Notes of one cell."""


def note_lines(run: Run) -> Iterator[Text]:
    """Each warning once, with the number of its cells, those of sizes near a cache's together; then
    the cells that missed the precision, and the faults of a simulated machine that struck
    nothing."""
    told: defaultdict[Note, list[CellNotes]] = defaultdict(list)
    for result in run.results:
        for cell in result.cells:
            alike: defaultdict[Note, list[Note]] = defaultdict(list)
            for note in cell.notes:
                if not isinstance(note, Imprecise):
                    alike[_subject(note)].append(note)
            for subject, notes in alike.items():
                told[subject].append(notes)
    for cells in told.values():
        count = count_of(len(cells))
        yield Text.assemble(("note", "yellow"), f" ({count}): {_sentence_of_all(cells)}")
    if (crowd := run.machine.crowd) is not None:
        cpus = "1 CPU" if crowd.cpus == 1 else f"{crowd.cpus} CPUs"
        share = f"{crowd.ranks} ranks share {cpus} of {crowd.host}: they wait for each other"
        yield Text.assemble(("note", "yellow"), f": {share}")
    yield from _missed(run)
    yield from _idle_faults(run)


def _subject(note: Note) -> Note:
    """Equal for notes of which one sentence speaks."""
    if isinstance(note, NearCache):
        return replace(note, size=0 if note.fits else note.cache)
    return note


def _sentence_of_all(cells: Sequence[CellNotes]) -> str:
    notes = [note for one in cells for note in one]
    near = [note for note in notes if isinstance(note, NearCache)]
    return near_cache(near[0], {note.size for note in near}) if near else sentence(notes[0])


def _idle_faults(run: Run) -> Iterator[Text]:
    """A line for each fault that struck nothing."""
    if not run.simulated:
        return
    from linkgauge.backends.sim.missed import missed  # loaded for simulated runs alone

    for fault, why in missed(as_one(run)):
        yield Text.assemble(("note", "yellow"), f": fault {fault} struck nothing: {why}")


def mode_lines(result: Result) -> Iterator[Text]:
    """Cells whose samples fall into two groups; the larger one is the headline."""
    for cell in result.cells:
        if cell.modes:
            yield Text.assemble(("modes", "yellow"), f" {cell.place} {modes(cell, result.unit)}")


def modes(cell: CellResult, unit: str) -> str:
    """`396.10 or 356.20 GB/s, 60 : 40`, the larger group first."""
    larger, smaller = cell.modes
    both = larger.gates + smaller.gates
    share = round(100 * larger.gates / both)
    values = f"{shown(larger.median, unit)} or {shown(smaller.median, unit)} {unit_of(unit).shown}"
    return f"{values}, {share} : {100 - share}"


def _missed(run: Run) -> Iterator[Text]:
    asked = run.settings.precision
    found: list[tuple[float, str]] = []
    unknown = 0
    measured = Counter((result.benchmark, result.backend) for result in run.results)
    for result in run.results:
        for cell in result.cells:
            precision = run.settings.of(cell).precision
            if cell.stopped not in ("max-time", "noise") or not precision:
                continue
            error = relative_error(cell.summary)
            if error is None:
                unknown += 1
            elif error > asked:
                several = measured[result.benchmark, result.backend] > 1 and result.size
                size = f" {format_size(result.size)}" if several else ""
                found.append((error, f"{result.benchmark}{size} {cell.place} ±{error:.1%}"))
    if not found and not unknown:
        return
    found.sort(reverse=True)
    named = [text for _, text in found[:NAMED]]
    rest = [f"{len(found) - NAMED} more"] if len(found) > NAMED else []
    rest += [f"{count_of(unknown)} without an interval"] if unknown else []
    yield Text.assemble(
        ("note", "yellow"),
        f" ({count_of(len(found) + unknown)}): precision of ±{asked:.2%} missed: "
        f"{', '.join((*named, *rest))}; {QUIETEN}",
    )
