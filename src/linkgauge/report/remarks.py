"""What is said below a table of results: a line for each kind of what is out of the ordinary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from linkgauge.model.result import Result, Verdict
from linkgauge.model.units import BANDWIDTH, unit_of

from .expectations import STYLES, compared, reasons_lines
from .forms import cells_of
from .gpu_text import throttled_lines
from .latency_text import falling_lines, load_matrix, load_title
from .matrix import Matrix, brief, matrices
from .pages import page_lines
from .remote import remote_lines
from .rounds_text import round_lines
from .run_notes import modes
from .run_text import complaint_lines, more_of
from .sentences import first_of
from .thread_lines import steal_lines
from .workload_text import bound_lines

_TELLING: tuple[Verdict, ...] = ("low", "high")
"""Verdicts that make one ask what was expected, and why."""
MOST_MODES = 2
"""Cells of two modes that are shown; of the others, how many there are."""


def below_lines(results: Sequence[Result], *, whole: bool) -> Iterator[Text]:
    """Those below the figures of one table. With `whole`, the table itself has the verdict of each
    cell."""
    yield from _mode_lines(results)
    if not whole:
        yield from _beside(results, "low")
        yield from _beside(results, "high")
    yield from reasons_lines(
        [(cell, one.unit) for one, cell in cells_of(results) if cell.verdict in _TELLING]
    )
    several = len({one.benchmark for one in results}) > 1
    for result in results:
        name = f"{result.benchmark}: " if several else ""
        for line in _own_lines(result):
            yield Text(name, "dim") + line
    yield from complaint_lines(results)


def _own_lines(result: Result) -> Iterator[Text]:
    """What is said of one result."""
    yield from round_lines(result)
    yield from _range_lines(result)
    yield from falling_lines(result)
    yield from throttled_lines(result)
    yield from steal_lines(result)
    yield from page_lines(result)
    yield from remote_lines(result)
    yield from bound_lines(result)


def _range_lines(result: Result) -> Iterator[Text]:
    """The ends of other figures of the same cells: those of their parts, first."""
    unit = unit_of(result.unit).shown
    for matrix in matrices(result) if result.parts else ():
        if matrix.figures and not matrix.name.endswith("_total"):
            ends = _ends([brief(figure, result.unit) for figure in _sorted(matrix)])
            yield Text(
                f"{matrix.name.removeprefix(f'{result.benchmark}_')} ({unit}): {ends}", "dim"
            )
    for title, matrix in more_of(result):
        yield Text(f"{title}: {_ends([f'{figure:.2f}' for figure in _sorted(matrix)])}", "dim")
    if (load := load_matrix(result)) is not None:
        rates = [brief(rate, BANDWIDTH.symbol) for rate in _sorted(load)]
        yield Text(f"{load_title()}: {_ends(rates)}", "dim")


def _sorted(matrix: Matrix) -> list[float]:
    return sorted(matrix.figures.values())


def _ends(ascending: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys((ascending[0], ascending[-1])))


def _mode_lines(results: Sequence[Result]) -> Iterator[Text]:
    found = [(one, cell) for one, cell in cells_of(results) if cell.modes]
    for result, cell in found[:MOST_MODES]:
        name = _named(results, result, str(cell.place))
        yield Text.assemble(("modes", "yellow"), f" {name} {modes(cell, result.unit)}")
    if len(found) > MOST_MODES:
        more = f" {len(found) - MOST_MODES} more cells have samples in two groups"
        yield Text.assemble(("modes", "yellow"), more)


def _beside(results: Sequence[Result], verdict: Verdict) -> Iterator[Text]:
    cells = [
        _named(results, one, compared(cell))
        for one, cell in cells_of(results)
        if cell.verdict == verdict and cell.summary
    ]
    if cells:
        text = f" {first_of([*dict.fromkeys(cells)], ', ')} of what is expected"
        yield Text.assemble((verdict, STYLES[verdict]), text)


def _named(results: Sequence[Result], result: Result, text: str) -> str:
    """With the benchmark's name where there are several."""
    return f"{result.benchmark} {text}" if len({one.benchmark for one in results}) > 1 else text
