"""What a run says of a cell: the one row that history, exporter, watch, gate and tables hold."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from .cell_id import CellId, SheetId, numbered
from .result import CellResult, Result, Status, Verdict
from .units import Better


class SeriesId(CellId, frozen=True, gc=False, omit_defaults=False):
    """What identifies a cell over runs of a machine.

    transfers: Its transfers, in the notation: the same place may be measured by other engines or
        from other memory.
    definition: How a total is computed; empty of other figures.
    """

    transfers: str = ""
    definition: str = ""

    @property
    def cell(self) -> SeriesId:
        """Without what a kind of series adds."""
        return SeriesId(*(getattr(self, name) for name in SeriesId.__struct_fields__))


class Figure(msgspec.Struct, frozen=True, gc=False):
    """What a run says of a cell, in its `unit`: its headline figure (`value`), the `median` of its
    `n` samples with its interval (`low` to `high`), and the percentiles of the slow side; what is
    `expected` of it, and `nominal` if all links ran at their best. None where there is none."""

    id: SeriesId
    unit: str
    better: Better
    status: Status
    verdict: Verdict = "unknown"
    value: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    slow_p95: float | None = None
    slow_p99: float | None = None
    n: int = 0
    expected: float | None = None
    nominal: float | None = None


def figures_by_result(results: Iterable[Result]) -> Iterator[tuple[Result, list[Figure]]]:
    """Each result, with the figures of its cells."""
    for result, of, repeat in numbered(results):
        yield result, [figure_of(result, cell, of, repeat) for cell in result.cells]


def figure_of(result: Result, cell: CellResult, of: SheetId, repeat: int = 0) -> Figure:
    transfers = " & ".join(map(str, cell.transfers))
    name = SeriesId(*of, *cell.place, repeat, transfers, cell.definition or "")
    expected, summary = cell.expected, cell.summary
    low, high = (summary.ci95 if summary is not None else None) or (None, None)
    return Figure(
        name,
        result.unit,
        result.better,
        cell.status,
        cell.verdict,
        cell.headline,
        median=None if summary is None else summary.median,
        low=low,
        high=high,
        slow_p95=None if summary is None else summary.slow_p95,
        slow_p99=None if summary is None else summary.slow_p99,
        n=0 if summary is None else summary.n,
        expected=None if expected is None else expected.figure,
        nominal=None if expected is None else expected.nominal,
    )
