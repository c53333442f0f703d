"""What is said below a table of results: a line for each kind of what is out of the ordinary."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.model.result import Result, Status, Verdict
from linkgauge.model.units import BANDWIDTH, unit_of

from .blocks import TONES, Line, Span, line, plain
from .concurrency_text import each_matrix, own_matrix
from .expectations import beside_lines, in_result, reasons_lines
from .forms import cells_of
from .gpu_text import more_matrices, state_lines, throttled_lines
from .latency_text import falling_lines, load_matrix, load_title
from .matrix import Matrix, brief, matrices
from .overlap_text import time_matrices
from .pages import page_lines
from .remote import remote_lines
from .rounds_text import round_lines
from .run_notes import modes
from .sentences import first_of
from .thread_lines import steal_lines, thread_lines
from .workload_text import bound_lines, latency_matrices, workload_lines

_TELLING: tuple[Verdict, ...] = ("low", "high")
"""Verdicts that make one ask what was expected, and why."""
MOST_MODES = 2
"""Cells of two modes that are shown; of the others, how many there are."""


def below_lines(
    results: Sequence[Result], *, named: bool = False, detailed: bool = False
) -> Iterator[Line]:
    """Those below the figures of one table. `named`: the table itself has the verdict of each cell;
    `detailed`: all that is known, where matrices of their own show other figures."""
    yield from _mode_lines(results, most=None if detailed else MOST_MODES)
    if not named:
        for verdict in _TELLING:
            yield from beside_lines(results, verdict)
    cells = [(cell, one.unit) for one, cell in cells_of(results)]
    yield from reasons_lines(each for each in cells if detailed or each[0].verdict in _TELLING)
    several = len({one.benchmark for one in results}) > 1
    for result in results:
        name = Span(f"{result.benchmark}: " if several else "", "dim")
        for own in _detailed(result) if detailed else _own_lines(result):
            yield line(name, *own)
    yield from complaint_lines(results)


def _own_lines(result: Result) -> Iterator[Line]:
    """What is said of one result."""
    yield from round_lines(result)
    yield from _range_lines(result)
    yield from falling_lines(result)
    yield from throttled_lines(result)
    yield from steal_lines(result)
    yield from page_lines(result)
    yield from remote_lines(result)
    yield from bound_lines(result)


def _detailed(result: Result) -> Iterator[Line]:
    """The same with each cell and device."""
    yield from thread_lines(result)
    yield from falling_lines(result)
    yield from state_lines(result)
    yield from page_lines(result)
    yield from remote_lines(result)
    yield from workload_lines(result)


def more_of(result: Result) -> tuple[tuple[str, Matrix], ...]:
    """Matrices of other figures of the same cells, with their titles, in the unit as it is
    shown."""
    return (
        *own_matrix(result),
        *each_matrix(result),
        *more_matrices(result),
        *time_matrices(result),
        *latency_matrices(result),
    )


def _range_lines(result: Result) -> Iterator[Line]:
    """The ends of other figures of the same cells: those of their parts, first."""
    unit = unit_of(result.unit).shown
    for matrix in matrices(result) if result.parts else ():
        if matrix.figures and matrix.part != "total":
            ends = _ends([brief(figure, result.unit) for figure in _sorted(matrix)])
            yield plain(f"{matrix.part} ({unit}): {ends}", "dim")
    for title, matrix in more_of(result):
        yield plain(f"{title}: {_ends([f'{figure:.2f}' for figure in _sorted(matrix)])}", "dim")
    if (load := load_matrix(result)) is not None:
        rates = [brief(rate, BANDWIDTH.symbol) for rate in _sorted(load)]
        yield plain(f"{load_title()}: {_ends(rates)}", "dim")


def _sorted(matrix: Matrix) -> list[float]:
    return sorted(matrix.figures.values())


def _ends(ascending: Sequence[str]) -> str:
    return " to ".join(dict.fromkeys((ascending[0], ascending[-1])))


def _mode_lines(results: Sequence[Result], most: int | None) -> Iterator[Line]:
    """Cells whose samples fall into two groups; the larger one is the headline."""
    found = [(one, cell) for one, cell in cells_of(results) if cell.modes]
    for result, cell in found[:most]:
        name = in_result(results, result, str(cell.place))
        yield line(Span("modes", "warn"), f" {name} {modes(cell, result.unit)}")
    if most is not None and len(found) > most:
        left = len(found) - most
        have = "1 more cell has" if left == 1 else f"{left} more cells have"
        yield line(Span("modes", "warn"), f" {have} samples in two groups")


def complaint_lines(results: Sequence[Result]) -> Iterator[Line]:
    """A line for each status and reason, with the cells that have it; of several
    benchmarks, with their names, too."""
    found: dict[tuple[Status, str | None], dict[str, None]] = {}
    several = len({result.benchmark for result in results}) > 1
    for result in results:
        for cell in result.cells:
            stated = cell.status == "skip" and cell.reason == result.reason
            if cell.status != "pass" and not stated:
                name = in_result(results, result, str(cell.place))
                found.setdefault((cell.status, cell.reason), {})[name] = None
    separator = ", " if several else " "
    for (status, reason), names in sorted(found.items(), key=lambda one: one[0][0] == "skip"):
        yield line(Span(status, TONES[status]), f" {first_of([*names], separator)}: {reason}")
