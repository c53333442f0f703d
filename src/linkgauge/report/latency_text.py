"""What is said of latencies besides their figures: the levels of a memory hierarchy, and the
bandwidth that loads the memory meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from linkgauge.model.result import CellResult, Level, Result
from linkgauge.model.transfer import Place
from linkgauge.model.units import BANDWIDTH, format_size, unit_of

from .matrix import Matrix, shown


def level_lines(result: Result) -> Iterator[Text]:
    """The levels of each row of a curve: `level 1: 1.10 ns up to 32 KiB`."""
    width = max((len(one.row) for one in result.levels), default=0)
    for one in result.levels:
        named = ", ".join(_named(level, result.unit) for level in one.levels)
        yield Text.assemble((f"{one.row:>{width}} ", "cyan"), named)


def _named(level: Level, unit: str) -> str:
    most = f"up to {format_size(level.most)}" if level.most else f"from {format_size(level.least)}"
    return f"level {level.number}: {shown(level.seconds, unit)} {unit_of(unit).shown} {most}"


def load(cell: CellResult) -> float | None:
    """Bytes/s that are moved while a latency is measured; None if nothing is."""
    if not cell.report.is_latency:
        return None
    rates = [part.summary.median for part in cell.parts[1:] if part.summary is not None]
    return sum(rates) if rates else None


def load_matrix(result: Result) -> Matrix | None:
    """The bandwidth beside each latency, in bytes/s; None if there is none."""
    loads = ((cell.place, load(cell)) for cell in result.cells)
    figures: dict[Place, float] = {place: rate for place, rate in loads if rate is not None}
    if not figures:
        return None
    rows = tuple(dict.fromkeys(place.row for place in figures))
    columns = tuple(dict.fromkeys(place.column for place in figures))
    return Matrix(f"{result.benchmark}_load", rows, columns, figures, None, len(figures))


def load_title() -> str:
    return f"bandwidth of what loads the memory meanwhile ({BANDWIDTH.shown})"
