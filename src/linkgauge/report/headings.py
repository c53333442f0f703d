"""What stands above the figures of results: names, where they were measured, the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from linkgauge.model.result import PlannedSheet, Result
from linkgauge.model.units import format_size, unit_of

from .blocks import Line, Span, line
from .cell_sizes import size_ends, sizes_of
from .forms import cells_of
from .results import label, mark, verdict
from .verdicts import word_of


def heading(result: Result) -> Line:
    """Its name, where it was measured, the worst of its verdicts, and whether it is simulated."""
    return line(Span(result.benchmark, "strong"), where(result), *marks([result]))


def where(sheet: Result | PlannedSheet) -> str:
    """Backend and sizes, and how many pairs if they are a sample."""
    sizes, drawn = size_ends(sheet), sheet.drawn
    sample = f"  {drawn.pairs} of {drawn.all} pairs, drawn with seed {drawn.seed}" if drawn else ""
    return f"  {sheet.backend}{f'  {sizes}' if sizes else ''}{sample}"


def marks(results: Sequence[Result]) -> Iterator[Span]:
    """The verdict, where one is judged, and that they are simulated."""
    cells = [cell for _, cell in cells_of(results)]
    if word_of(results, cells) is not None:
        word = verdict(results, cells)
        yield from (Span("  "), Span(word.text, word.tone))
    yield mark(results[0].simulated)


def title_line(result: Result) -> str:
    """What its rows and columns are, and the unit."""
    unit = unit_of(result.unit)
    return label(f"{result.title} {unit.quantity} ({unit.shown})", 200)


def turned(title: str) -> str:
    """The title of a matrix that is shown with rows and columns exchanged."""
    return title.replace("(row)", "(\0)").replace("(column)", "(row)").replace("(\0)", "(column)")


def common(results: Sequence[Result], more: str = "", *, judged: bool = True) -> Line:
    """What a table's results have in common."""
    size = usual_size(results)
    parts = (results[0].backend, format_size(size) if size else "", more)
    name = Span("  ".join(part for part in parts if part), "strong")
    return line(name, *(marks(results) if judged else [mark(results[0].simulated)]))


def usual_size(results: Sequence[Result]) -> int:
    """That of the most results."""
    return Counter(next(iter(sizes_of(one)), 0) for one in results).most_common(1)[0][0]
