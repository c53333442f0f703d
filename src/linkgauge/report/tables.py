"""Writes tables of a run, in SI units: as CSV, JSON, Parquet or data frames (extra `analysis`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, get_type_hints

from msgspec import Struct
from msgspec.structs import astuple

from linkgauge.machine.extras import needed
from linkgauge.model.by_name import by_name, shown_of
from linkgauge.model.cell_id import bytes_of
from linkgauge.model.documents.result import Result, Run, Status, Verdict
from linkgauge.model.printable import printable
from linkgauge.model.units import Better, count_of

from .csv_text import csv_text
from .files import json_document, judged_document
from .results import size_without_cells
from .rows import OneRun, SampleRow, sample_rows

if TYPE_CHECKING:
    import pandas as pd

EXTRA = "analysis"
_R = TypeVar("_R", bound=Struct)
_ARROW = {int: "int64", float: "float64", bool: "bool"}


class CellRow(Struct, frozen=True, gc=False):
    """A cell as a row. A benchmark that was skipped as a whole has a row, too.

    run: The run's id.
    label: The run's label.
    benchmark: The benchmark.
    backend: The backend.
    size: The bytes; null for work without memory.
    row: The row of the matrix; empty if the benchmark was skipped.
    column: The column of the matrix; empty if the benchmark was skipped.
    transfers: The transfers (`host:0 -> cuda:0`), joined by `&`.
    status: The status.
    verdict: The verdict.
    unit: The unit of the figures.
    better: Whether higher or lower figures are better.
    figure: The figure in a matrix: the cell's median or, for some benchmarks, its best sample.
    median: The median.
    low: The lower end of the 95 % interval of the median.
    high: The upper end of the 95 % interval of the median.
    slow_p95: 95 % of the samples are at least as good.
    slow_p99: 99 % of the samples are at least as good.
    min: The least sample.
    max: The greatest sample.
    n: The number of samples.
    expected: The figure to expect of the hardware as it is.
    nominal: The figure to expect with all links at their best rate; null if the same as expected.
    share: The figure as a share of `nominal`, else of `expected`; null if it is not judged.
    reason: Why the cell was skipped or failed, or was not judged.
    simulated: Whether the machine is simulated."""

    run: str
    label: str
    benchmark: str
    backend: str
    size: int | None
    row: str
    column: str
    transfers: str
    status: Status
    verdict: Verdict
    unit: str
    better: Better
    figure: float | None = None
    median: float | None = None
    low: float | None = None
    high: float | None = None
    slow_p95: float | None = None
    slow_p99: float | None = None
    min: float | None = None
    max: float | None = None
    n: int = 0
    expected: float | None = None
    nominal: float | None = None
    share: float | None = None
    reason: str | None = None
    simulated: bool = False


def cell_rows(run: Run) -> Iterator[CellRow]:
    return (row for result in run.results for row in result_rows(run, result))


def result_rows(run: Run, result: Result) -> Iterator[CellRow]:
    for cell in result.cells:
        own = {"run": run.id, "size": bytes_of(cell, result.size), **shown_of(cell)}
        yield by_name(CellRow, cell, cell.summary, result, run, **own)
    if not result.cells:
        own = {"run": run.id, "size": size_without_cells(result)}
        no_cell = {"row": "", "column": "", "transfers": "", "verdict": "not judged"}
        yield by_name(CellRow, result, run, **own, **no_cell)


class Typed(NamedTuple):
    """A kind of table, with rows of the type `kind`. If it `judges`, its JSON also has findings."""

    name: str
    schema: str
    kind: type[Struct]
    rows: Callable[[Run], Iterable[Struct]]
    judges: bool = False

    @property
    def fields(self) -> Sequence[str]:
        return self.kind.__struct_fields__

    def csv(self, one: OneRun) -> str:
        return csv_text((self.fields, *map(astuple, self.rows(one.run))))

    def json(self, one: OneRun) -> str:
        run = one.run
        head = {name: getattr(run, name) for name in ("label", "started", "finished")}
        document = {
            "schema": self.schema, "run": run.id, **head, "simulated": run.machine.simulated,
            self.name: list(self.rows(run)),
        }  # fmt: skip
        found = one.outcome.answer
        return judged_document(document, *found) if self.judges else json_document(document)

    def parquet(self, one: OneRun) -> bytes:
        parquet, file = needed("pyarrow.parquet", EXTRA), BytesIO()
        parquet.write_table(self.arrow(self.rows(one.run)), file)
        return file.getvalue()

    def arrow(self, rows: Iterable[Struct]) -> Any:
        arrow, types = needed("pyarrow", EXTRA), self._types()
        schema = arrow.schema([(name, _ARROW.get(types[name], "string")) for name in types])
        return arrow.Table.from_pydict(self._columns(rows), schema)

    def frame(self, rows: Iterable[Struct]) -> pd.DataFrame:
        pandas, hints = needed("pandas", EXTRA), get_type_hints(self.kind)
        types = {
            # numpy's integers cannot be absent.
            name: "Int64" if hints[name] == int | None else _ARROW[kind]
            for name, kind in self._types().items()
            if kind in _ARROW
        }
        frame = pandas.DataFrame(self._columns(rows), columns=list(self.fields))
        made: pd.DataFrame = frame.astype(types)
        return made

    def _columns(self, rows: Iterable[Struct]) -> dict[str, list[Any]]:
        values = [
            [printable(value) if isinstance(value, str) else value for value in astuple(row)]
            for row in rows
        ]
        return {name: [row[at] for row in values] for at, name in enumerate(self.fields)}

    def _types(self) -> dict[str, type]:
        hints = get_type_hints(self.kind)
        return {n: next(iter(getattr(hints[n], "__args__", ())), hints[n]) for n in self.fields}


CELLS = Typed("cells", "linkgauge.summary/1", CellRow, cell_rows, judges=True)
SAMPLES = Typed("samples", "linkgauge.samples/1", SampleRow, sample_rows)


class RowTable(tuple[_R, ...]):
    """The rows of a table, as a tuple that can be converted to a data frame."""

    _kind: Typed

    def __new__(cls, kind: Typed, rows: Iterable[_R]) -> Self:
        made = super().__new__(cls, rows)
        made._kind = kind
        return made

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self._kind.fields)

    def to_pandas(self) -> pd.DataFrame:
        """Returns a data frame, with NaN for absent figures. Raises MissingPackage."""
        return self._kind.frame(self)

    def to_polars(self) -> Any:
        """Returns a data frame, with null for absent figures. Raises MissingPackage."""
        return needed("polars", "polars").from_arrow(self.to_arrow())

    def to_arrow(self) -> Any:
        """Returns an Arrow table, with null for absent figures. Raises MissingPackage."""
        return self._kind.arrow(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Lets DuckDB, pandas 3 and others read the rows. Raises MissingPackage."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{count_of(len(self), 'row')} of {self._kind.name}: {', '.join(self.columns)}>"
