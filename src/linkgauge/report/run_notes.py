"""Notes on a run besides its figures: warnings, two modes, wide intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.text import Text

from linkgauge.model.notes import Imprecise
from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.statistics import relative_error
from linkgauge.model.units import count_of, unit_of

from .matrix import shown
from .sentences import NAMED, QUIETEN, sentence


def note_lines(run: Run) -> Iterator[Text]:
    """Each warning once, with the number of its cells; then the cells that missed the precision,
    and the faults of a simulated machine that struck nothing."""
    counts = Counter(
        note
        for result in run.results
        for cell in result.cells
        for note in cell.notes
        if not isinstance(note, Imprecise)
    )
    for note, count in counts.items():
        yield Text.assemble(("note", "yellow"), f" ({count_of(count)}): {sentence(note)}")
    yield from _missed(run)
    yield from _idle_faults(run)


def _idle_faults(run: Run) -> Iterator[Text]:
    """A line for each fault that struck nothing."""
    if not run.simulated:
        return
    from linkgauge.backends.sim.missed import missed  # loaded for simulated runs alone

    for fault, why in missed(run):
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
    for result in run.results:
        for cell in result.cells:
            precision = run.settings.of(cell).precision
            if cell.stopped not in ("max-time", "noise") or not precision:
                continue
            error = relative_error(cell.summary)
            if error is None:
                unknown += 1
            elif error > asked:
                found.append((error, f"{result.benchmark} {cell.place} ±{error:.1%}"))
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
