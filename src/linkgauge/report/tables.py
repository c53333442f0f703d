"""Defines typed tables of a run. Each table can be written as CSV, JSON, a Parquet file or a pandas
data frame. Parquet and pandas need the extra `analysis`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, NamedTuple, get_type_hints

from msgspec import Struct
from msgspec.structs import astuple

from linkgauge.machine.extras import needed
from linkgauge.model.documents.result import Run
from linkgauge.model.printable import printable

from .files import csv_text, json_document
from .rows import CellRow, OneRun, SampleRow, cell_rows, sample_rows

if TYPE_CHECKING:
    import pandas as pd

EXTRA = "analysis"
_ARROW = {int: "int64", float: "float64", bool: "bool"}


class Typed(NamedTuple):
    """A table of a run. `name` is its name in JSON, `kind` the type of its rows, and `rows` the
    function that makes rows from a judged run. If it `judges`, the JSON also has the doctor's
    findings."""

    name: str
    schema: str
    kind: type[Struct]
    rows: Callable[[Run], Iterable[Struct]]
    judges: bool = False

    @property
    def fields(self) -> Sequence[str]:
        return self.kind.__struct_fields__

    def csv(self, one: OneRun) -> str:
        """Returns the table as CSV, with a line for each row."""
        return csv_text((self.fields, *map(astuple, self.rows(one.run))))

    def json(self, one: OneRun) -> str:
        """Returns the table as JSON: a document with an object for each row."""
        run, found = one.run, {"findings": one.outcome.findings, "exit_code": one.outcome.code}
        head = {name: getattr(run, name) for name in ("label", "started", "finished")}
        return json_document({
            "schema": self.schema, "run": run.id, **head, "simulated": run.machine.simulated,
            **(found if self.judges else {}), self.name: list(self.rows(run)),
        })  # fmt: skip

    def parquet(self, one: OneRun) -> bytes:
        """Returns the table as a Parquet file."""
        arrow, parquet = needed("pyarrow", EXTRA), needed("pyarrow.parquet", EXTRA)
        types = self._types()
        schema = arrow.schema([(name, _ARROW.get(types[name], "string")) for name in types])
        file = BytesIO()
        table = arrow.Table.from_pydict(self._columns(self.rows(one.run)), schema)
        parquet.write_table(table, file)
        return file.getvalue()

    def frame(self, rows: Iterable[Struct]) -> pd.DataFrame:
        """Returns the rows as a data frame. Absent figures are NaN."""
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
        columns: dict[str, list[Any]] = {name: [] for name in self.fields}
        for row in rows:
            for value, column in zip(astuple(row), columns.values(), strict=True):
                column.append(printable(value) if isinstance(value, str) else value)
        return columns

    def _types(self) -> dict[str, type]:
        """Returns the type of each column. For an optional column, this is the type of its
        values."""
        hints = get_type_hints(self.kind)
        return {n: next(iter(getattr(hints[n], "__args__", ())), hints[n]) for n in self.fields}


CELLS = Typed("cells", "linkgauge.summary/1", CellRow, cell_rows, judges=True)
SAMPLES = Typed("samples", "linkgauge.samples/1", SampleRow, sample_rows)
