"""Makes remarks below a table of results: a line for each kind of irregularity."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from linkgauge.model.counters import Counters
from linkgauge.model.documents.result import CellResult, Result, Status, Verdict
from linkgauge.model.units import unit_of
from linkgauge.report.beside import matrices_beside
from linkgauge.report.blocks import TONES, Line, Span, line, plain
from linkgauge.report.forms import cells_of
from linkgauge.report.matrix import Matrix, brief, matrices, shown
from linkgauge.report.sections import of_rooms

from .expectations import beside_lines, in_result, reasons_lines
from .run_notes import modes
from .sentences import first_of

# What the threads of a cell met with, as text, for work that each does by itself.

STOLEN = 0.01
"""The share of the time from which a run's report mentions stolen CPU time."""


def thread_lines(result: Result) -> Iterator[Line]:
    """Yields a line for each cell on its threads: how fast they are, how much they differ, and what
    disturbed them."""
    for cell in result.cells:
        if cell.counters is not None and cell.counters.threads:
            yield plain("; ".join(_parts(cell.counters, result.unit)), "dim")


def steal_lines(result: Result) -> Iterator[Line]:
    """Yields a line on the CPU time that a hypervisor took from threads of the cells, if the
    highest share is large."""
    shares = [
        counters.steal / counters.seconds
        for cell in result.cells
        if (counters := cell.counters) and counters.steal is not None and counters.seconds
    ]
    if shares and max(shares) >= STOLEN:
        yield plain(f"steal up to {max(shares):.1%}", "warn")


def _parts(counters: Counters, unit: str) -> Iterator[str]:
    count = len(counters.threads)
    name = "1 thread" if count == 1 else f"{count} threads"
    if (fair := counters.fairness) is not None:
        each = f"{shown(fair.mean, unit)} {unit_of(unit).shown} each"
        name += f": {each}, stddev {shown(fair.stddev, unit)} ({fair.variation:.2%})"
    yield name
    if counters.steal is not None and counters.seconds:
        yield f"steal {counters.steal / counters.seconds:.2%}"
    if counters.involuntary is not None:
        plural = "" if counters.involuntary == 1 else "es"
        yield f"{counters.involuntary} involuntary context switch{plural}"
    if counters.cycles and counters.instructions is not None and counters.seconds:
        yield f"{counters.cycles / counters.seconds / 1e9:.2f} GHz"
        yield f"{counters.instructions / counters.cycles:.2f} instructions a cycle"


_TELLING: tuple[Verdict, ...] = ("low", "perhaps low", "high")
"""The verdicts that make a reader ask what was expected, and why."""
MOST_MODES = 2
"""The most cells with two modes that are shown; the others are counted."""


def below_lines(
    results: Sequence[Result], *, named: bool = False, detailed: bool = False
) -> Iterator[Line]:
    """Yields all remarks below the figures of one table. `named` means that the table itself shows
    the verdict of each cell. `detailed` shows everything that is known, for matrices that also show
    other figures."""
    yield from _mode_lines(results, most=None if detailed else MOST_MODES)
    if not named:
        for verdict in _TELLING:
            yield from beside_lines(results, verdict)
    cells = [(cell, one.unit) for one, cell in cells_of(results)]
    yield from reasons_lines(each for each in cells if detailed or each[0].verdict in _TELLING)
    several = len({one.benchmark for one in results}) > 1
    for result in results:
        name = Span(f"{result.benchmark}: " if several else "", "dim")
        for own in _own_lines(result, detailed=detailed):
            yield line(name, *own)
    yield from complaint_lines(results)


def _own_lines(result: Result, *, detailed: bool) -> Iterator[Line]:
    """Yields the remarks on one result. If `detailed`, yields remarks on each cell and device,
    too."""
    if detailed:
        yield from thread_lines(result)
    else:
        yield from round_lines(result)
        yield from _range_lines(result)
        yield from steal_lines(result)
    if len(result.cells) > 1:
        from linkgauge.report.pages import page_lines
        from linkgauge.report.sections.latency import falling_lines

        yield from falling_lines(result)
        yield from page_lines(result)
    if any(cell.does.product for cell in result.cells):
        from linkgauge.report.sections.telemetry import state_lines

        yield from state_lines(result, detailed=detailed)
    for section in of_rooms():
        if section.below is not None:
            yield from section.below(result, detailed)


def _range_lines(result: Result) -> Iterator[Line]:
    """Yields lines with the ranges of further figures: those of named parts of the cells, then
    those of additional matrices."""
    unit = unit_of(result.unit).shown
    for matrix in matrices(result) if result.parts else ():
        if matrix.figures and matrix.part != "total":
            ends = _ends(matrix, lambda figure: brief(figure, result.unit))
            yield plain(f"{matrix.part} ({unit}): {ends}", "dim")
    for matrix in matrices_beside(result):
        yield plain(f"{matrix.name}: {_ends(matrix, '{:.2f}'.format)}", "dim")


def _ends(matrix: Matrix, shown: Callable[[float], str]) -> str:
    figures = matrix.figures.values()
    return " to ".join(dict.fromkeys(map(shown, (min(figures), max(figures)))))


def _mode_lines(results: Sequence[Result], most: int | None) -> Iterator[Line]:
    """Yields lines on cells whose samples fall into two groups (modes). The larger group determines
    the headline figure."""
    found = [(one, cell) for one, cell in cells_of(results) if cell.modes]
    for result, cell in found[:most]:
        name = in_result(results, result, str(cell.place))
        yield line(Span("modes", "warn"), f" {name} {modes(cell, result.unit)}")
    if most is not None and len(found) > most:
        left = len(found) - most
        have = "1 more cell has" if left == 1 else f"{left} more cells have"
        yield line(Span("modes", "warn"), f" {have} samples in two groups")


def complaint_lines(results: Sequence[Result]) -> Iterator[Line]:
    """Yields a line for each status other than pass, with the reason and the cells. If there are
    several benchmarks, the line also names the benchmarks."""
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


LEAST = 17
"""The number of cells from which matrices do not show their sum."""


def round_lines(result: Result) -> Iterator[Line]:
    """Yields a line for each round of simultaneous transfers: the number of cells, the sum of their
    figures, and its share of the expected sum."""
    rounds: dict[int, list[CellResult]] = {}
    for cell in result.cells:
        if cell.round is not None and cell.headline is not None and "->" in cell.row:
            rounds.setdefault(cell.round, []).append(cell)
    if result.better != "higher" or sum(map(len, rounds.values())) < LEAST:
        return
    name = "bisection" if "bisect" in result.benchmark else "round"
    for number, cells in rounds.items():
        which = f"{name} {number + 1} of {len(rounds)}: " if len(rounds) > 1 else ""
        figure = sum(cell.headline or 0.0 for cell in cells)
        shown = f"{brief(figure, result.unit)} {unit_of(result.unit).shown}"
        yield plain(f"{which}{len(cells)} at once carry {shown}{_share(figure, cells)}", "dim")


def _share(figure: float, cells: list[CellResult]) -> str:
    expected = [cell.expected.figure if cell.expected else None for cell in cells]
    if not all(expected):
        return ""
    return f", {figure / sum(one or 0.0 for one in expected):.1%} of what their links carry"
