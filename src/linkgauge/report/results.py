"""Makes texts that several sections share: names, figures in tables, and headings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from linkgauge.model.cell_id import bytes_of
from linkgauge.model.documents.result import BenchmarkTable, CellResult, PlannedTable, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.names import range_of
from linkgauge.model.transfer import Cell
from linkgauge.model.units import format_figure, format_size, unit_of
from linkgauge.report.words.expectations import Word, word_of

from .blocks import (
    TONES,
    Column,
    Entry,
    Line,
    Span,
    Table,
    Tile,
    Tone,
    cut,
    line,
    plain,
)
from .forms import cells_of, peers_sign

# The sizes that cells have of their own, and names that tell results apart.

_UNIT = 1
"""The size of a result whose cells have sizes of their own, or none."""


def size_without_cells(result: BenchmarkTable) -> int | None:
    return result.size if result.size > _UNIT else None


def sizes_of(result: Result | PlannedTable) -> tuple[int, ...]:
    if not result.cells:
        return () if (size := size_without_cells(result)) is None else (size,)
    cells: Iterable[Cell] = {cell.operation: cell for cell in result.cells}.values()
    if any(cell.does.of_sizes for cell in cells):
        cells = result.cells
    known = {bytes_of(cell, result.size) for cell in cells}
    return tuple(sorted(size for size in known if size is not None))


def size_ends(result: Result | PlannedTable) -> str:
    return ends_of_sizes(sizes_of(result))


def ends_of_sizes(sizes: Iterable[int | None]) -> str:
    return range_of(format_size, (size for size in sizes if size is not None))


def names_of(results: Sequence[Result]) -> list[str]:
    """Returns a name for each result. Adds the result's row or a number if names would be equal."""
    equivalent = [(one.benchmark, one.backend, sizes_of(one)) for one in results]
    rows = [frozenset(cell.row for cell in one.cells) for one in results]
    counts, named = Counter(equivalent), Counter(zip(equivalent, rows, strict=True))
    seen, names = Counter[object](), []
    for result, same, own in zip(results, equivalent, rows, strict=True):
        seen[same] += 1
        is_alone = len(own) == named[same, own] == 1
        which = " ".join(own) if is_alone else f"({seen[same]})"
        names.append(f"{result.benchmark} {which}" if counts[same] > 1 else result.benchmark)
    return names


MOST_LABEL = 80
SIMULATED = Span("SIMULATED", "simulated")
"""Stands beside every figure of a simulated machine."""
SIMULATED_TILE = Tile(SIMULATED.text, "", SIMULATED.tone)


def named(machine: Machine) -> str:
    return label(machine.simulated or machine.host.hostname or "this machine")


def mark(simulated: bool) -> Span:
    return Span(f"  {SIMULATED.text}" if simulated else "", SIMULATED.tone)


def label(text: str, most: int = MOST_LABEL) -> str:
    return cut(text, most)


def title_of(text: str) -> str:
    return label(text, 2 * MOST_LABEL)


def figure(value: float | None, unit: str, tone: Tone = "") -> Entry:
    return Entry("", None) if value is None else Entry(format_figure(value, unit), value, tone)


def ends(figures: Sequence[float], unit: str) -> tuple[Entry, Entry, Entry]:
    found = (min(figures), median(figures), max(figures)) if figures else (None, None, None)
    least, middle, most = (figure(value, unit) for value in found)
    return least, middle, most


def share(value: float | None, tone: Tone = "") -> Entry:
    return Entry("", None) if value is None else Entry(f"{value:.0%}", value, tone)


def least_share(values: Iterable[float | None]) -> Entry:
    return share(min((value for value in values if value is not None), default=None))


def verdict(results: Sequence[Result], cells: Sequence[CellResult]) -> Entry:
    """Returns the verdict on cells, with ▽ or △ if ok or unjudged ones are far from their peers."""
    word = word_of(results, cells) or Word("not judged", "not judged")
    unsaid = (cell for cell in cells if cell.verdict in ("ok", "not judged"))
    signs = "".join(sorted(set(map(peers_sign, unsaid))))
    tone = "warn" if signs else TONES[word.kind]
    return Entry(f"{word.text} {signs}".rstrip(), list(TONES).index(word.kind), tone)


def degraded_note(cells: Iterable[CellResult]) -> str:
    if not any(cell.verdict == "degraded" for cell in cells):
        return ""
    return "degraded: links on the way run below their best; the share is of their best"


def without_empty(table: Table) -> Table:
    kept = [at for at in range(len(table.columns)) if any(row[at].text for row in table.rows)]
    rows = [[row[at] for at in kept] for row in table.rows]
    return table._replace(columns=[table.columns[at] for at in kept], rows=rows)


def table(
    title: str,
    columns: Sequence[str | Column],
    rows: Iterable[Sequence[str | int | Entry | None]],
) -> Table:
    heads = [Column(one) if isinstance(one, str) else one for one in columns]
    entries = [[_entry(one) for one in row] for row in rows]
    return without_empty(Table(plain(title, "strong"), heads, entries))


def _entry(one: str | int | Entry | None) -> Entry:
    return one if isinstance(one, Entry) else Entry("" if one is None else str(one))


def heading(result: Result) -> Line:
    return line(Span(result.benchmark, "strong"), where(result), *marks([result]))


def where(table: Result | PlannedTable) -> str:
    """Formats a table's backend, sizes and plug-ins, and how many of all pairs were sampled."""
    parts = [table.backend, size_ends(table), _of_plugins([table])]
    if (one := table.sampled) is not None:
        parts.append(f"{one.pairs} of {one.all} pairs (sampled, seed {one.seed})")
    return "".join(f"  {part}" for part in parts if part)


def _of_plugins(tables: Sequence[Result | PlannedTable]) -> str:
    names = dict.fromkeys(name for table in tables for name in table.plugins or ())
    return f"of {', '.join(names)}" if names else ""


def marks(results: Sequence[Result]) -> Iterator[Span]:
    """Yields the worst verdict if any cell is judged, and a mark if the figures are simulated."""
    cells = [cell for _, cell in cells_of(results)]
    if word_of(results, cells) is not None:
        word = verdict(results, cells)
        yield from (Span("  "), Span(word.text, word.tone))
    yield mark(results[0].simulated)


def title_line(result: Result) -> str:
    unit = unit_of(result.unit)
    title = f"{result.title}:" if "," in result.title else result.title
    return label(f"{title} {unit.quantity} ({unit.shown})", 200)


def turned(title: str) -> str:
    return title.replace("(row)", "(\0)").replace("(column)", "(row)").replace("(\0)", "(column)")


def common(results: Sequence[Result], more: str = "", *, judged: bool = True) -> Line:
    size = usual_size(results)
    parts = (results[0].backend, format_size(size) if size else "", more, _of_plugins(results))
    name = Span("  ".join(filter(None, parts)), "strong")
    return line(name, *(marks(results) if judged else [mark(results[0].simulated)]))


def usual_size(results: Sequence[Result]) -> int:
    return Counter(next(iter(sizes_of(one)), 0) for one in results).most_common(1)[0][0]


# Benchmarks that do the same in several ways, named together as a shell would:
# `host_to_device_memcpy_{ce,sm}`.

_ENGINES = ("ce", "sm")
_KERNELS = ("read", "write", "copy", "scale", "add", "triad")


class Family(NamedTuple):
    name: str
    results: Sequence[Result]
    words: Sequence[str]

    @property
    def is_range(self) -> bool:
        """Whether to show the family's figures as one range, not as a figure for each engine."""
        equivalent = len(self.results) == 1 or tuple(self.words) == _ENGINES
        return not equivalent or any(one.sweep or one.levels for one in self.results)


def families_of(results: Sequence[Result], *, folded: bool = True) -> Iterator[Family]:
    """Yields results that share a line: those of a benchmark or, if `folded`, of benchmarks whose
    names differ only in the engine or kernel."""
    by_name = grouped(((one.benchmark, one.backend), one) for one in results)
    found = grouped(
        ((first.benchmark if others or not folded else "", _framed(first.benchmark)[0],
          first.backend, first.unit, first.size), (first, *others))
        for first, *others in by_name.values()
    )  # fmt: skip
    for (_, frame, *_), each in found.items():
        own = [one for repeated in each for one in repeated]
        if len(each) == 1:
            words = [size_ends(one) for one in own] if len(own) > 1 else [""]
            yield Family(own[0].benchmark, own, words)
        else:
            words = [_framed(one.benchmark)[1] for one in own]
            yield Family(_filled(frame, words), own, words)


def folded(names: Iterable[str]) -> list[str]:
    """Joins names that differ only in the engine (`ce`, `sm`) or the kernel (`read`, `write`)."""
    found = grouped(_framed(name) for name in dict.fromkeys(names))
    return [_filled(frame, words) for frame, words in found.items()]


def _filled(frame: str, words: Sequence[str]) -> str:
    return frame.format(f"{{{','.join(words)}}}" if len(words) > 1 else words[0])


def _framed(benchmark: str) -> tuple[str, str]:
    """Replaces the engine or kernel in a name by `{}`. Returns the new name and the old word."""
    words = benchmark.replace("{", "").replace("}", "").split("_")
    for kind in (_ENGINES, _KERNELS):
        for at in reversed(range(len(words))):
            if words[at] in kind:
                return "_".join([*words[:at], "{}", *words[at + 1 :]]), words[at]
    return benchmark, ""
