"""Makes lines that say how page sizes, memory policies and remote memory change a result's
figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.memory import POLICY_KINDS, Memory
from linkgauge.report.words.sentences import first_of

from .blocks import Line, Span, line

HUGE = ("huge", "thp", "hugetlb")
MOST_SIZES = 6
"""The most sizes of a curve that are named."""

_Figures = dict[str, float]


def page_lines(result: Result) -> Iterator[Line]:
    """Yields lines below a result on the effects of page sizes and memory policies. One kind of
    line says what huge pages gain or lose against base pages. Other lines compare memory policies,
    or memory on other nodes with memory on the own node."""
    cells = [cell for cell in result.cells if cell.summary is not None and cell.transfers]
    if any(cell.does.follows_pointers and len(cell.transfers) == 1 for cell in cells):
        yield from _shares(cells)
        return
    for row, own in grouped((cell.row, cell) for cell in cells).items():
        figures = {_kind(cell): _median(cell) for cell in own}
        yield from _ratios(f"huge pages ({row})", figures, "base", HUGE, "base pages")
        yield from _ratios(f"policies ({row})", figures, "", POLICY_KINDS, "bind")
    nodes: dict[tuple[str, ...], _Figures] = {}
    for cell in cells:
        if (place := _node_of(cell)) is not None:
            alike = cell.row, *(memory.kind for memory in cell.transfers[0].memories)
            is_own = place == cell.transfers[0].engine.owner
            nodes.setdefault(alike, {})["" if is_own else str(place)] = _median(cell)
    for (row, *_), figures in nodes.items():
        others = [place for place in figures if place]
        yield from _ratios(f"remote memory ({row})", figures, "", others, "its own node's")


def _node_of(cell: CellResult) -> Memory | None:
    """Returns the NUMA node whose memory the cell's only transfer uses. Returns None for several
    transfers, for several nodes or none, and for operations that do not work on arrays."""
    if cell.does.array is None or len(cell.transfers) != 1:
        return None
    places = {memory.place for memory in cell.transfers[0].memories if memory.is_host}
    return places.pop() if len(places) == 1 else None


def _ratios(
    what: str, figures: _Figures, reference: str, kinds: Sequence[str], name: str
) -> Iterator[Line]:
    found = [kind for kind in kinds if kind in figures]
    if found and figures.get(reference):
        ratios = [f"{kind} {figures[kind] / figures[reference]:.2f}" for kind in found]
        yield _line(what, f"{first_of(ratios, ', ')} times {name}")


def _shares(cells: Sequence[CellResult]) -> Iterator[Line]:
    """Yields a line for each row: the share of the latency that huge pages save. This share is the
    cost of address translation (TLB) in base pages."""
    curves: dict[str, dict[str, dict[str, CellResult]]] = {}
    for cell in cells:
        row = cell.row.removesuffix(_kind(cell)).strip()
        curves.setdefault(row, {}).setdefault(_kind(cell), {})[cell.column] = cell
    for row, kinds in curves.items():
        base = kinds.get("base", {})
        for kind in HUGE:
            huge = kinds.get(kind, {})
            shares = {size: _share(base[size], huge[size]) for size in base if size in huge}
            if shares:
                some = {size: shares[size] for size in _some([*shares])}
                yield _line(f"TLB ({row} {kind})", "; ".join(_words(some)))


def _words(shares: Mapping[str, float | None]) -> Iterator[str]:
    clear = [f"{share:.0%} at {size}" for size, share in shares.items() if share is not None]
    if clear:
        yield f"{', '.join(clear)} of the base pages' latency"
    noise = [size for size, share in shares.items() if share is None]
    if noise:
        yield f"within noise at {', '.join(noise)}"


def _share(base: CellResult, huge: CellResult) -> float | None:
    """Returns the share of the `base` latency that `huge` saves, or None if their intervals
    overlap."""
    ends = [cell.summary.ci95 for cell in (base, huge) if cell.summary and cell.summary.ci95]
    if len(ends) == 2 and ends[0][0] <= ends[1][1] and ends[1][0] <= ends[0][1]:
        return None
    return 1 - _median(huge) / _median(base)


def _some(sizes: Sequence[str]) -> list[str]:
    """Returns an evenly spaced selection of the sizes, including the last size."""
    count = min(MOST_SIZES, len(sizes))
    return [sizes[(place + 1) * len(sizes) // count - 1] for place in range(count)]


def _kind(cell: CellResult) -> str:
    """Returns the kind of the first memory that the cell uses, or an empty text if it uses none."""
    memories = cell.transfers[0].memories
    return memories[0].kind if memories else ""


def _median(cell: CellResult) -> float:
    return cell.summary.median if cell.summary else 0.0


def _line(what: str, text: str) -> Line:
    return line(Span(what, "dim"), f": {text}")
