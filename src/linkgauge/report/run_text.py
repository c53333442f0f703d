"""A result as text: matrices in nvbandwidth's layout, then notes on them.

Colour comes from rich, only on a terminal. Nothing in results is read as markup, and control
characters in them are not sent to the terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from linkgauge.model.result import CellResult, Result, Sheet, Status
from linkgauge.model.transfer import Place
from linkgauge.model.units import BANDWIDTH, COLLECTIVE, format_size, unit_of

from .cell_sizes import size_ends
from .collective_text import collective_lines
from .concurrency_text import each_matrix, own_matrix
from .expectations import expectation_lines
from .folding import Entry, Folded
from .gpu_text import more_matrices, state_lines
from .latency_text import falling_lines, level_lines, load_matrix, load_title, percentile_lines
from .matrix import ABSENT, Matrix, matrices, shown
from .overlap_text import time_matrices
from .pages import page_lines
from .remote import remote_lines
from .run_notes import mode_lines
from .sentences import first_of
from .shading import STATUS_STYLES, WORD_STYLES, legend, shaded
from .thread_lines import thread_lines
from .verdicts import word_of
from .workload_text import latency_matrices, workload_lines
from .wrapping import Hanging

WIDTH = 10
MOST_COLUMNS = 16
"""A sweep of more columns is shown with its settings as rows."""
"""Operations of curves, whose cells have sizes of their own."""
UNKNOWN = Entry(ABSENT, "dim")
"""A cell without a figure."""
INDENT = 4
"""Of continuation lines."""


def render(result: Result) -> RenderableType:
    """A result as its command shows it."""
    return render_transfers(result) if result.benchmark == "copy" else render_result(result)


def render_result(result: Result) -> RenderableType:
    """A result with its matrices; a benchmark without figures is one line with the reason."""
    if not has_figures(result):
        return Hanging(_unmeasured(result), INDENT)
    remarks = map(hanging, _remark_lines(result))
    if result.unit == COLLECTIVE.symbol:
        return Group(heading(result), *collective_lines(result), *remarks, Text())
    turned = result.sweep and len({cell.column for cell in result.cells}) > MOST_COLUMNS
    lines: list[RenderableType] = [heading(result), title_line(result, turned=turned)]
    cells = {cell.place: cell for cell in result.cells}
    for matrix in matrices(result):
        if result.parts:
            lines.append(Text(matrix.name.removeprefix(f"{result.benchmark}_"), style="italic"))
        lines += matrix_lines(matrix, partial(_entry, matrix.figures, cells, result.unit),
                               turned=turned)  # fmt: skip
        if matrix.total is not None:
            lines.append(_sum_line(matrix, result.unit))
    lines += map(hanging, thread_lines(result))
    lines += _load_lines(result)
    lines += _more_lines(result)
    lines += map(hanging, state_lines(result))
    lines += map(hanging, level_lines(result))
    lines += percentile_lines(result)
    lines += map(hanging, page_lines(result))
    lines += map(hanging, remote_lines(result))
    lines += map(hanging, workload_lines(result))
    return Group(*lines, *remarks, Text())


def has_figures(result: Result) -> bool:
    return any(cell.summary for cell in result.cells)


def hanging(line: Text) -> RenderableType:
    return Hanging(line, INDENT)


def title_line(result: Result, *, turned: bool = False) -> RenderableType:
    """What its rows and columns are, and the unit."""
    unit = unit_of(result.unit)
    title = _turned_title(result.title) if turned else result.title
    return hanging(Text(f"{title} {unit.quantity} ({unit.shown})"))


def _remark_lines(result: Result) -> Iterator[Text]:
    """What is said below the figures, whatever they are."""
    yield from mode_lines(result)
    yield from expectation_lines(result)
    yield from complaint_lines([result])


def heading(result: Result) -> Text:
    """Its name, where it was measured, the worst of its verdicts, and whether it is simulated."""
    line = Text.assemble((result.benchmark, "bold"), where(result, size_ends(result)))
    if (word := verdict_word([result])) is not None:
        line.append("  ").append(word)
    return line.append("  ").append(simulated()) if result.simulated else line


def where(sheet: Sheet, sizes: str | None = None) -> str:
    """Backend and size of a heading, and how many pairs if they are a sample; work that is in no
    memory has no size."""
    ends = sizes if sizes is not None else format_size(sheet.size) if sheet.size else ""
    size = f"  {ends}" if ends else ""
    return f"  {sheet.backend}{size}{_sample(sheet)}"


def _sample(sheet: Sheet) -> str:
    if (drawn := sheet.drawn) is None:
        return ""
    return f"  {drawn.pairs} of {drawn.all} pairs, drawn with seed {drawn.seed}"


def verdict_word(results: Sequence[Result]) -> Text | None:
    """The verdict on all of their cells; None where none is judged."""
    word = word_of(results, [cell for result in results for cell in result.cells])
    return word and Text(word.text, WORD_STYLES[word.kind])


def simulated() -> Text:
    """The mark beside every figure of a simulated machine."""
    return Text("SIMULATED", "bold magenta")


def _unmeasured(result: Result) -> Text:
    reasons = tuple(dict.fromkeys(cell.reason or "" for cell in result.cells))
    return heading(result).append(f": {result.reason or _first_reason(reasons)}")


def _first_reason(reasons: Sequence[str]) -> str:
    """Why most cells have no figure is much the same: the first reason, and how many more."""
    more = len(reasons) - 1
    count = f" (and {more} more reason{'' if more == 1 else 's'})" if more > 0 else ""
    return "".join(reasons[:1]) + count


def complaint_lines(results: Sequence[Result]) -> Iterator[Text]:
    """A line for each status and reason, with the cells that have it; of several
    benchmarks, with their names, too."""
    found: dict[tuple[Status, str | None], dict[str, None]] = {}
    several = len({result.benchmark for result in results}) > 1
    for result in results:
        for cell in result.cells:
            stated = cell.status == "skip" and cell.reason == result.reason
            if cell.status != "pass" and not stated:
                name = f"{result.benchmark} {cell.place}" if several else str(cell.place)
                found.setdefault((cell.status, cell.reason), {})[name] = None
    separator = ", " if several else " "
    for (status, reason), names in sorted(found.items(), key=_skipped_last):
        yield Text.assemble(
            (status, STATUS_STYLES[status]), f" {first_of([*names], separator)}: {reason}"
        )


def _skipped_last(found: tuple[tuple[Status, str | None], object]) -> bool:
    (status, _), _ = found
    return status == "skip"


def matrix_lines(
    matrix: Matrix,
    entry: Callable[[Place], Entry],
    *,
    turned: bool = False,
    least: int = WIDTH,
) -> Iterator[RenderableType]:
    """The rows below a line of columns; `entry` returns what stands in each place. `turned` is with
    rows and columns exchanged."""
    rows, columns = matrix.rows, matrix.columns
    entries = [[entry(Place(row, column)) for column in columns] for row in rows]
    if turned:
        rows, columns, entries = columns, rows, [[*one] for one in zip(*entries, strict=True)]
    yield Folded(rows, columns, entries, least=least)
    signs = legend([one for row in entries for one in row])
    if signs is not None:
        yield hanging(signs)


def _turned_title(title: str) -> str:
    """The title of a matrix that is shown with rows and columns exchanged."""
    return title.replace("(row)", "(\0)").replace("(column)", "(row)").replace("(\0)", "(column)")


def _load_lines(result: Result) -> Iterator[RenderableType]:
    """What moved beside latencies, as a matrix of its own."""
    matrix = load_matrix(result)
    if matrix is not None:
        yield Text(load_title())
        yield from _figure_lines(matrix, lambda rate: shown(rate, BANDWIDTH.symbol))
    yield from map(hanging, falling_lines(result))


def _more_lines(result: Result) -> Iterator[RenderableType]:
    """Matrices of other figures of the same cells."""
    for title, matrix in more_of(result):
        yield Text(title)
        yield from _figure_lines(matrix, "{:.2f}".format)


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


def _figure_lines(matrix: Matrix, text: Callable[[float], str]) -> Iterator[RenderableType]:
    figures = matrix.figures
    yield from matrix_lines(
        matrix, lambda at: Entry(text(figures[at]), "dim") if at in figures else UNKNOWN
    )


def _sum_line(matrix: Matrix, unit: str) -> Text:
    """The sum of the figures; if some are missing, with the number that it covers."""
    line = Text(f"SUM {matrix.name} {shown(matrix.total or 0.0, unit)}", style="dim")
    there = len(matrix.figures)
    return line.append(f" of {there} of {matrix.cells} cells") if there < matrix.cells else line


def _entry(
    figures: Mapping[Place, float], cells: Mapping[Place, CellResult], unit: str, at: Place
) -> Entry:
    """What stands in a place of the matrix."""
    return shaded(cells.get(at), shown(figures[at], unit) if at in figures else None)


def render_transfers(result: Result) -> RenderableType:
    """One cell of `linkgauge copy`: each transfer's figure, then the total."""
    cell = result.cells[0] if result.cells else None
    if cell is None or cell.summary is None:
        said = [_unmeasured(result)] if cell is None else complaint_lines([result])
        return Group(*map(hanging, said))
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
    lines += complaint_lines([result])
    return Group(*map(hanging, lines))


def _kept(cell: CellResult) -> str:
    """How often another run's figure falls into a cell's interval; unknown for an interval formed
    from this run's samples alone."""
    if cell.interval is None:
        return ""
    return "samples " if cell.interval.coverage is None else f"{cell.interval.coverage:.0%} "
