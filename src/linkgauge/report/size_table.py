"""Benchmarks that were measured at several sizes: a column for each size, a line for each path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from linkgauge.model.result import CellResult, Result
from linkgauge.model.units import format_size

from .folding import Entry, Folded
from .matrix import brief
from .run_text import MOST_COLUMNS, hanging
from .shading import ABSENT, legend, shaded_headline
from .sweep_text import MOST_PATHS, curves_of, extremes

_Line = tuple[str, list[Entry]]


def size_tables(results: Sequence[Result]) -> Iterator[RenderableType]:
    """One table of all results; of very many sizes they are the rows. Of a size that was measured
    several times, the last figure."""
    sizes = sorted({one.size for one in results})
    lines: list[_Line] = []
    for name in dict.fromkeys(one.benchmark for one in results):
        own = [one for one in results if one.benchmark == name]
        lines += _lines(name, own, sizes)
    names, entries = [name for name, _ in lines], [row for _, row in lines]
    columns = [format_size(size) for size in sizes]
    if len(sizes) > MOST_COLUMNS:
        yield Folded(columns, names, [list(row) for row in zip(*entries, strict=True)])
    else:
        yield Folded(names, columns, entries, names=True)
    signs = legend([entry for row in entries for entry in row])
    if signs is not None:
        yield hanging(signs)


def _lines(name: str, results: Sequence[Result], sizes: Sequence[int]) -> Iterator[_Line]:
    paths: dict[str, dict[int, CellResult]] = {}
    for result in results:
        for cell in result.cells:
            paths.setdefault(str(cell.place), {})[result.size] = cell
    unit = results[0].unit
    if len(paths) > MOST_PATHS:
        for word, curve in extremes(curves_of(results), sizes).items():
            figures = [Entry(brief(curve[at], unit)) if at in curve else ABSENT for at in sizes]
            yield f"{name}, {word} of {len(paths)} paths", figures
        return
    for path, cells in paths.items():
        entries = [shaded_headline(cells.get(size), unit) for size in sizes]
        yield f"{name} {path}" if len(paths) > 1 else name, entries
