"""Makes the lines below a table of figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from linkgauge.model.counters import Counters
from linkgauge.model.documents.result import CellResult, Result, Verdict
from linkgauge.model.grouped import grouped, tabled
from linkgauge.model.memory import POLICY_KINDS, Memory
from linkgauge.model.names import range_of
from linkgauge.model.units import format_decimals, format_figure, format_with_unit, unit_of
from linkgauge.report.blocks import TONES, Line, Span, line, plain
from linkgauge.report.forms import cells_of
from linkgauge.report.matrix import concurrent_matrices, load, matrices
from linkgauge.report.sections import of_rooms

from .expectations import are_several, beside_lines, in_result, reasons_lines
from .run_notes import modes
from .sentences import first_of

# What the threads of a cell met with, as text, for work that each does by itself.

STOLEN = 0.01


def thread_lines(result: Result) -> Iterator[Line]:
    for cell in result.cells:
        if cell.counters is not None and cell.counters.threads:
            yield plain("; ".join(_parts(cell.counters, result.unit)), "dim")


def steal_lines(result: Result) -> Iterator[Line]:
    most = 0.0
    for cell in result.cells:
        if (own := cell.counters) and own.steal is not None and own.seconds:
            most = max(most, own.steal / own.seconds)
    if most >= STOLEN:
        yield plain(f"steal up to {most:.1%}", "warn")


def _parts(counters: Counters, unit: str) -> Iterator[str]:
    count = len(counters.threads)
    name = "1 thread" if count == 1 else f"{count} threads"
    if (fair := counters.fairness) is not None:
        each = f"{format_decimals(fair.mean, unit)} {unit_of(unit).shown} each"
        name += f": {each}, stddev {format_decimals(fair.stddev, unit)} ({fair.variation:.2%})"
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
"""They make a reader ask what was expected, and why."""
MOST_MODES = 2


def below_lines(
    results: Sequence[Result], *, named: bool = False, detailed: bool = False
) -> Iterator[Line]:
    """Yields the lines below a table. Does not list cells by verdict if the table shows verdicts
    (`named`). If `detailed`, adds all reasons and threads, and omits summaries of figures."""
    found = [(one, cell) for one, cell in cells_of(results) if cell.modes]
    most = len(found) if detailed else MOST_MODES
    for result, cell in found[:most]:
        where = in_result(results, result, str(cell.place))
        yield line(Span("modes", "warn"), f" {where} {modes(cell, result.unit)}")
    if (left := len(found) - most) > 0:
        have = "1 more cell has" if left == 1 else f"{left} more cells have"
        yield line(Span("modes", "warn"), f" {have} samples in two groups")
    if not named:
        for verdict in _TELLING:
            yield from beside_lines(results, verdict)
    yield from reasons_lines(
        (cell, one.unit) for one, cell in cells_of(results)
        if detailed or cell.verdict in _TELLING
    )  # fmt: skip
    several = are_several(results)
    for result in results:
        name = Span(f"{result.benchmark}: " if several else "", "dim")
        for own in _own_lines(result, detailed=detailed):
            yield line(name, *own)
    yield from complaint_lines(results)


def _own_lines(result: Result, *, detailed: bool) -> Iterator[Line]:
    if detailed:
        yield from thread_lines(result)
    else:
        yield from round_lines(result)
        yield from _range_lines(result)
        yield from steal_lines(result)
    if len(result.cells) > 1:
        if any(map(load, result.cells)):
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
    unit = unit_of(result.unit).shown
    for matrix in matrices(result) if result.parts else ():
        if matrix.figures and matrix.part != "total":
            ends = range_of(partial(format_figure, unit=result.unit), matrix.figures.values())
            yield plain(f"{matrix.part} ({unit}): {ends}", "dim")
    for matrix in concurrent_matrices(result):
        ends = range_of("{:.2f}".format, matrix.figures.values())
        yield plain(f"{matrix.name}: {ends}", "dim")


def complaint_lines(results: Sequence[Result]) -> Iterator[Line]:
    found = tabled(
        ((cell.status, cell.reason), in_result(results, result, str(cell.place)), None)
        for result, cell in cells_of(results)
        if cell.status not in ("pass", "skip")
        or (cell.status == "skip" and cell.reason != result.reason)
    )
    separator = ", " if are_several(results) else " "
    for (status, reason), names in sorted(found.items(), key=lambda one: one[0][0] == "skip"):
        yield line(Span(status, TONES[status]), f" {first_of([*names], separator)}: {reason}")


LEAST = 17


def round_lines(result: Result) -> Iterator[Line]:
    rounds = grouped(
        (cell.round, cell)
        for cell in result.cells
        if cell.round is not None and cell.headline is not None and "->" in cell.row
    )
    if result.better != "higher" or sum(map(len, rounds.values())) < LEAST:
        return
    name = "bisection" if "bisect" in result.benchmark else "round"
    for number, cells in rounds.items():
        which = f"{name} {number + 1} of {len(rounds)}: " if len(rounds) > 1 else ""
        figure = sum(cell.headline or 0.0 for cell in cells)
        shown = format_with_unit(figure, result.unit)
        yield plain(f"{which}{len(cells)} copies together: {shown}{_share(figure, cells)}", "dim")


def _share(figure: float, cells: list[CellResult]) -> str:
    expected = [cell.expected.figure if cell.expected else None for cell in cells]
    if not all(expected):
        return ""
    return f", {figure / sum(one or 0.0 for one in expected):.1%} of what their links carry"


HUGE = ("huge", "thp", "hugetlb")
MOST_SIZES = 6

_Figures = dict[str, float]


def page_lines(result: Result) -> Iterator[Line]:
    cells = [cell for cell in result.cells if cell.summary is not None and cell.transfers]
    if any(cell.does.follows_pointers and len(cell.transfers) == 1 for cell in cells):
        yield from _shares(cells)
        return
    if any(map(_kind, cells)):
        for row, own in grouped((cell.row, cell) for cell in cells).items():
            figures = {_kind(cell): _median(cell) for cell in own}
            yield from _ratios(f"huge pages ({row})", figures, "base", HUGE, "base pages")
            yield from _ratios(f"policies ({row})", figures, "", POLICY_KINDS, "bind")
    arrays = [cell for cell in cells if cell.does.array is not None and len(cell.transfers) == 1]
    nodes = tabled(
        (
            (cell.row, *(memory.kind for memory in cell.transfers[0].memories)),
            "" if place == cell.transfers[0].engine.owner else str(place),
            _median(cell),
        )
        for cell in arrays
        if (place := _node_of(cell)) is not None
    )
    for (row, *_), figures in nodes.items():
        others = [place for place in figures if place]
        yield from _ratios(f"remote memory ({row})", figures, "", others, "its own node")


def _node_of(cell: CellResult) -> Memory | None:
    places = {memory.place for memory in cell.transfers[0].memories if memory.is_host}
    return places.pop() if len(places) == 1 else None


def _ratios(
    what: str, figures: _Figures, reference: str, kinds: Sequence[str], name: str
) -> Iterator[Line]:
    found = [kind for kind in kinds if kind in figures]
    if found and figures.get(reference):
        ratios = [f"{kind} {figures[kind] / figures[reference]:.2f}" for kind in found]
        yield _line(what, f"{first_of(ratios, ', ')} times the figure of {name}")


def _shares(cells: Sequence[CellResult]) -> Iterator[Line]:
    """Yields the share of the latency, by size, that huge pages save: the cost of TLB misses."""
    curves = grouped((cell.row.removesuffix(_kind(cell)).strip(), cell) for cell in cells)
    for row, own in curves.items():
        kinds = tabled((_kind(cell), cell.column, cell) for cell in own)
        base = kinds.get("base", {})
        for kind in HUGE:
            huge = kinds.get(kind, {})
            sizes = _some([size for size in base if size in huge])
            if shares := {size: _gain(base[size], huge[size]) for size in sizes}:
                yield _line(f"TLB ({row} {kind})", "; ".join(_words(shares)))


def _words(shares: Mapping[str, float | None]) -> Iterator[str]:
    clear = [f"{share:.0%} at {size}" for size, share in shares.items() if share is not None]
    if clear:
        yield f"latency below that of base pages by {', '.join(clear)}"
    noise = [size for size, share in shares.items() if share is None]
    if noise:
        yield f"within noise at {', '.join(noise)}"


def _gain(base: CellResult, huge: CellResult) -> float | None:
    ends = [cell.summary.ci95 for cell in (base, huge) if cell.summary and cell.summary.ci95]
    if len(ends) == 2 and ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]:
        return None
    return 1 - _median(huge) / _median(base)


def _some(sizes: Sequence[str]) -> list[str]:
    count = min(MOST_SIZES, len(sizes))
    return [sizes[(place + 1) * len(sizes) // count - 1] for place in range(count)]


def _kind(cell: CellResult) -> str:
    memories = cell.transfers[0].memories
    return memories[0].kind if memories else ""


def _median(cell: CellResult) -> float:
    return cell.summary.median if cell.summary else 0.0


def _line(what: str, text: str) -> Line:
    return line(Span(what, "dim"), f": {text}")
