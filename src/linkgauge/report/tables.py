"""Tables of a run for data analysis: pandas' data frames and Parquet files, by libraries that are
installed with the extra `analysis`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import TYPE_CHECKING, Any, get_type_hints

from linkgauge.machine.extras import needed
from linkgauge.model.printable import printable

from .rows import CellRow, JudgedRun, SampleRow, cell_rows, sample_rows

if TYPE_CHECKING:
    import pandas as pd

EXTRA = "analysis"
_ARROW = {int: "int64", float: "float64", bool: "bool"}


def summary_frame(rows: Iterable[CellRow]) -> pd.DataFrame:
    """A data frame with a row for each cell; absent figures are NaN."""
    return _frame(CellRow, CellRow.__struct_fields__, rows)


def samples_frame(rows: Iterable[SampleRow]) -> pd.DataFrame:
    """A data frame with a row for each raw sample."""
    return _frame(SampleRow, SampleRow._fields, rows)


def summary_parquet(judged: JudgedRun) -> bytes:
    """A Parquet file with a row for each cell."""
    return _parquet(CellRow, CellRow.__struct_fields__, cell_rows(judged.run))


def samples_parquet(judged: JudgedRun) -> bytes:
    """A Parquet file with a row for each raw sample."""
    return _parquet(SampleRow, SampleRow._fields, sample_rows(judged.run))


def _frame(kind: type, names: Sequence[str], rows: Iterable[object]) -> pd.DataFrame:
    pandas = needed("pandas", EXTRA)
    columns = _columns(names, rows)
    hints = get_type_hints(kind)
    types = {
        # numpy's integers cannot be absent.
        name: "Int64" if hints[name] == int | None else dtype
        for name, dtype in _types(kind, names).items()
        if dtype is not None
    }
    frame: pd.DataFrame = pandas.DataFrame(columns, columns=list(names)).astype(types)
    return frame


def _parquet(kind: type, names: Sequence[str], rows: Iterable[object]) -> bytes:
    arrow, parquet = needed("pyarrow", EXTRA), needed("pyarrow.parquet", EXTRA)
    types = _types(kind, names)
    schema = arrow.schema([(name, types[name] or "string") for name in names])
    file = BytesIO()
    parquet.write_table(arrow.Table.from_pydict(_columns(names, rows), schema), file)
    return file.getvalue()


def _columns(names: Sequence[str], rows: Iterable[object]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for row in rows:
        for name, column in columns.items():
            value = getattr(row, name)
            column.append(printable(value) if isinstance(value, str) else value)
    return columns


def _types(kind: type, names: Sequence[str]) -> dict[str, str | None]:
    """The type of each column that holds numbers; None of text."""
    hints = get_type_hints(kind)
    plain = {name: next(iter(getattr(hints[name], "__args__", ())), hints[name]) for name in names}
    return {name: _ARROW.get(plain[name]) for name in names}
