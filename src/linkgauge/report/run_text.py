"""A run as text: matrices in nvbandwidth's layout, then notes on them.

Colour comes from rich, only on a terminal. Nothing in results is read as markup, and control
characters in them are not sent to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.text import Text

from linkgauge.model.collective import Collective
from linkgauge.model.result import CellResult, Result, Sheet, Status, Verdict
from linkgauge.model.transfer import Place
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, format_size, unit_of

from .collective_text import collective_lines
from .concurrency_text import each_matrix, own_matrix
from .expectations import STYLES, expectation_lines
from .gpu_text import more_matrices, state_lines
from .latency_text import falling_lines, level_lines, load_matrix, load_title, percentile_lines
from .matrix import ABSENT, Matrix, grid, matrices, shown
from .overlap_text import time_matrices
from .pages import page_lines
from .remote import remote_lines
from .run_notes import mode_lines
from .sentences import first_of
from .thread_lines import thread_lines

WIDTH = 10
MOST_COLUMNS = 16
"""A sweep of more columns is shown with its settings as rows."""
OF_SIZES = ("chase", "copy-ping-pong", "timed-copy")
"""Operations of curves, whose cells have sizes of their own."""
UNKNOWN = (ABSENT, "dim")
"""Text and style of a cell without a figure."""
WIDE = 1000
"""Columns where there is no terminal: lines are never wrapped there."""
STATUS_STYLES: dict[Status, str] = {
    "pass": "green",
    "fail": "bold red",
    "error": "bold red",
    "timeout": "bold red",
    "skip": "yellow",
}
_WORST_FIRST: tuple[Verdict, ...] = ("low", "high", "ok")

# Control characters, and those that change the text's direction (Unicode's Bidi_Control).
_TURNING = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
UNSEEN = dict.fromkeys((*range(32), *range(127, 160), *_TURNING), "�")
del UNSEEN[ord("\n")], UNSEEN[ord("\t")]


class _Console(Console):
    """A console that replaces control characters in results and captures."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(segment.text.translate(UNSEEN), segment.style)


def make_console(*, stderr: bool = False) -> Console:
    """A console that wraps nothing and uses colour only on a terminal."""
    console = _Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=True)
    if not console.is_terminal:
        console.width = WIDE
    return console


def render(result: Result) -> RenderableType:
    """A result as its command shows it."""
    return render_transfers(result) if result.benchmark == "copy" else render_result(result)


def render_result(result: Result) -> RenderableType:
    """A result with its matrices; a benchmark without figures is one line with the reason."""
    if not any(cell.summary for cell in result.cells):
        return _unmeasured(result)
    if result.unit == COLLECTIVE.symbol:
        return Group(_heading(result), *collective_lines(result), *_remarks(result), Text())
    unit = unit_of(result.unit)
    turned = result.sweep and len({cell.column for cell in result.cells}) > MOST_COLUMNS
    title = _turned_title(result.title) if turned else result.title
    lines: list[Text] = [_heading(result), Text(f"{title} {unit.quantity} ({unit.shown})")]
    cells: dict[tuple[str, str], CellResult] = {cell.place: cell for cell in result.cells}
    for matrix in matrices(result):
        if result.parts:
            lines.append(Text(matrix.name.removeprefix(f"{result.benchmark}_"), style="italic"))
        entry = partial(_entry, matrix.figures, cells, result.unit)
        lines += matrix_lines(matrix, entry, turned=turned)
        if matrix.total is not None:
            lines.append(_sum_line(matrix, result.unit))
    lines += thread_lines(result)
    lines += _load_lines(result)
    lines += _more_lines(result)
    lines += state_lines(result)
    lines += level_lines(result)
    lines += percentile_lines(result)
    lines += page_lines(result)
    lines += remote_lines(result)
    return Group(*lines, *_remarks(result), Text())


def _remarks(result: Result) -> Iterator[Text]:
    """What is said below the figures, whatever they are."""
    yield from mode_lines(result)
    yield from expectation_lines(result)
    yield from _complaints([c for c in result.cells if c.status not in ("pass", "skip")])
    yield from _complaints(
        [c for c in result.cells if c.status == "skip" and c.reason != result.reason]
    )


def _heading(result: Result) -> Text:
    heading = Text.assemble((result.benchmark, "bold"), where(result, _sizes(result)))
    if (word := _word(result)) is not None:
        heading.append("  ").append(word)
    return heading.append("  ").append(simulated()) if result.simulated else heading


def where(sheet: Sheet, sizes: str | None = None) -> str:
    """Backend and size of a heading, and how many pairs if they are a sample; work that is in no
    memory has no size."""
    size = f"  {sizes or format_size(sheet.size)}" if sheet.size else ""
    return f"  {sheet.backend}{size}{_sample(sheet)}"


def _sample(sheet: Sheet) -> str:
    if (drawn := sheet.drawn) is None:
        return ""
    return f"  {drawn.pairs} of {drawn.all} pairs, drawn with seed {drawn.seed}"


def _sizes(result: Result) -> str:
    """The size, or of a curve the least and the largest one."""
    own = [
        cell.transfers[0]
        for cell in result.cells
        if cell.operation in OF_SIZES or isinstance(cell.operation, Collective)
    ]
    sizes = {transfer.bytes_moved(result.size) for transfer in own} or {result.size}
    ends = dict.fromkeys((min(sizes), max(sizes)))
    return " to ".join(map(format_size, ends))


def _word(result: Result) -> Text | None:
    """What to say of its cells, the worst of them first; None where none is judged."""
    if result.status != "pass":
        return Text(result.status, STATUS_STYLES[result.status])
    verdicts = {cell.verdict for cell in result.cells}
    worst = next((verdict for verdict in _WORST_FIRST if verdict in verdicts), None)
    return worst and Text(worst, "green" if worst == "ok" else STYLES[worst])


def simulated() -> Text:
    """The mark beside every figure of a simulated machine."""
    return Text("SIMULATED", "bold magenta")


def _unmeasured(result: Result) -> Text:
    reasons = tuple(dict.fromkeys(cell.reason or "" for cell in result.cells))
    return _heading(result).append(f": {result.reason or _first_reason(reasons)}")


def _first_reason(reasons: Sequence[str]) -> str:
    """Why most cells have no figure is much the same: the first reason, and how many more."""
    more = len(reasons) - 1
    count = f" (and {more} more reason{'' if more == 1 else 's'})" if more > 0 else ""
    return "".join(reasons[:1]) + count


def _complaints(cells: Sequence[CellResult]) -> Iterator[Text]:
    """A line for each status and reason, with the cells that have it."""
    found: dict[tuple[Status, str | None], list[str]] = {}
    for cell in cells:
        found.setdefault((cell.status, cell.reason), []).append(str(cell.place))
    for (status, reason), places in found.items():
        yield Text.assemble((status, STATUS_STYLES[status]), f" {first_of(places)}: {reason}")


def matrix_lines(
    matrix: Matrix,
    entry: Callable[[tuple[str, str]], tuple[str, str]],
    *,
    turned: bool = False,
) -> Iterator[Text]:
    """The rows below a line of columns; `entry` returns the text and style of each place. `turned`
    is with rows and columns exchanged."""
    heads = (matrix.columns, matrix.rows) if turned else (matrix.rows, matrix.columns)
    label = max(4, *(len(row) + 1 for row in heads[0]))
    width = max(WIDTH, *(len(column) + 2 for column in heads[1]))
    labels = [f"{row:>{label - 1}} " for row in heads[0]]
    rows = (
        [entry((column, row) if turned else (row, column)) for column in heads[1]]
        for row in heads[0]
    )
    yield from grid(labels, heads[1], width, rows)


def _turned_title(title: str) -> str:
    """The title of a matrix that is shown with rows and columns exchanged."""
    return title.replace("(row)", "(\0)").replace("(column)", "(row)").replace("(\0)", "(column)")


def _load_lines(result: Result) -> Iterator[Text]:
    """What moved beside latencies, as a matrix of its own."""
    matrix = load_matrix(result)
    if matrix is not None:
        yield Text(load_title())
        figures = matrix.figures
        yield from matrix_lines(
            matrix,
            lambda at: (
                (shown(figures[Place(*at)], BANDWIDTH.symbol), "dim")
                if Place(*at) in figures
                else UNKNOWN
            ),
        )
    yield from falling_lines(result)


def _more_lines(result: Result) -> Iterator[Text]:
    """Matrices of other figures of the same cells."""
    more = (
        *own_matrix(result),
        *each_matrix(result),
        *more_matrices(result),
        *time_matrices(result),
    )
    for title, matrix in more:
        yield Text(title)
        figures = matrix.figures
        yield from matrix_lines(
            matrix,
            lambda at, of=figures: (  # type: ignore[misc]  # bound in this turn
                (f"{of[Place(*at)]:.2f}", "dim") if Place(*at) in of else UNKNOWN
            ),
        )


def _sum_line(matrix: Matrix, unit: str) -> Text:
    """The sum of the figures; if some are missing, with the number that it covers."""
    line = Text(f"SUM {matrix.name} {shown(matrix.total or 0.0, unit)}", style="dim")
    there = len(matrix.figures)
    return line.append(f" of {there} of {matrix.cells} cells") if there < matrix.cells else line


def _entry(
    figures: Mapping[Place, float], cells: Mapping[tuple[str, str], CellResult], unit: str,
    at: Place,
) -> tuple[str, str]:  # fmt: skip
    """The text and style of a place in the matrix."""
    if at not in figures:
        return UNKNOWN
    cell = cells[at]
    style = STYLES[cell.verdict] if cell.status == "pass" else STATUS_STYLES[cell.status]
    return shown(figures[at], unit), style


def render_transfers(result: Result) -> RenderableType:
    """One cell of `linkgauge copy`: each transfer's figure, then the total."""
    cell = result.cells[0] if result.cells else None
    if cell is None or cell.summary is None:
        return _unmeasured(result) if cell is None else Group(*_complaints([cell]))
    unit = unit_of(result.unit)
    rows = [
        (str(cell.transfers[part.transfer]), part.summary)
        for part in cell.parts
        if part.summary is not None
    ]
    rows.append(("total" if cell.parts else str(cell), cell.summary))
    width = max(len(name) for name, _ in rows)
    lines = [Text(f"{format_size(result.size)}", style="bold")]
    if result.simulated:
        lines[0].append("  ").append(simulated())
    for name, summary in rows:
        figure = shown(summary.median, result.unit)
        line = Text(f"{name:<{width}}{figure:>{WIDTH + 2}} {unit.shown}")
        if summary.ci95 is not None:
            low, high = (shown(end, result.unit) for end in summary.ci95)
            line.append(f"  {_kept(cell)}[{low}, {high}]", "dim")
        if summary.slow_p99 is not None:
            line.append(f"  slow p99 {shown(summary.slow_p99, result.unit)}", "dim")
        line.append(f"  {summary.n} samples of {cell.loops} loops", "dim")
        lines.append(line)
    lines += mode_lines(result)
    lines += expectation_lines(result)
    lines += _complaints([cell]) if cell.status != "pass" else []
    return Group(*lines)


def _kept(cell: CellResult) -> str:
    """How often another run's figure falls into a cell's interval; unknown for an interval formed
    from this run's samples alone."""
    if cell.interval is None:
        return ""
    return "samples " if cell.interval.coverage is None else f"{cell.interval.coverage:.0%} "
