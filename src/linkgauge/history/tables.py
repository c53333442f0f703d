"""The tables of the history. If they change, `VERSION` changes, and store.py must convert older
tables. Only a nullable column in `figures` needs no new version. Rows that several runs share are
stored once, and found by their digest. Reading a damaged value raises ValidationError."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import msgspec
from msgspec.structs import FieldInfo, fields
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    TypeDecorator,
)
from sqlalchemy.schema import SchemaItem
from sqlalchemy.types import TypeEngine

from linkgauge.model.documents.history import Figure, SeriesId
from linkgauge.model.documents.result import RunVerdict, Status, Verdict
from linkgauge.model.settings import Settings

STATUSES: tuple[Status, ...] = ("pass", "fail", "skip", "error", "timeout")
VERDICTS: tuple[Verdict, ...] = (
    "not judged", "ok", "low", "high", "degraded", "perhaps low", "waived",
)  # fmt: skip
"""All verdicts. The database stores a verdict as its position here, so add new verdicts only at the
end; likewise for runs."""
RUN_VERDICTS: tuple[RunVerdict, ...] = get_args(RunVerdict)
DIGEST = 16
"""The length of a digest in bytes."""
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class _Kept(TypeDecorator[Any]):
    impl = Text
    cache_ok = True

    def __init__(
        self, stored: TypeEngine[Any], keep: Callable[[Any], Any], read: Callable[[Any], Any]
    ) -> None:
        super().__init__()
        self.impl = self.stored = stored  # type: ignore[assignment]
        self.keep, self.read = keep, read

    def process_bind_param(self, value: Any, dialect: object) -> Any:
        return None if value is None else self.keep(value)

    def process_result_value(self, value: Any, dialect: object) -> Any:
        try:
            return None if value is None else self.read(value)
        except (TypeError, LookupError, OverflowError) as error:
            raise msgspec.ValidationError(f"{error} of {value!r:.40}") from error


def _word(name: str, words: Sequence[str], *, nullable: bool = False) -> Column[str]:
    kind = _Kept(SmallInteger(), words.index, dict(enumerate(words)).__getitem__)
    return Column(name, kind, nullable=nullable)


def _json(name: str, kind: Any) -> Column[Any]:
    read = msgspec.json.Decoder(kind).decode
    kept = _Kept(Text(), lambda value: msgspec.json.encode(value).decode(), read)
    return Column(name, kept, nullable=False)


_UTC_EPOCH = EPOCH.replace(tzinfo=None)


def _moment_of(microseconds: int) -> str:
    moment = _UTC_EPOCH + timedelta(microseconds=microseconds)
    return f"{moment.isoformat(timespec='milliseconds')}Z"


_MOMENT = _Kept(BigInteger(), int, _moment_of)
"""A column type for times. It stores microseconds since 1970; values are ISO 8601 texts in UTC."""
_HEX = _Kept(LargeBinary(DIGEST), bytes.fromhex, bytes.hex)

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _filled(kind: type[TypeEngine[Any]], *names: str) -> list[Column[Any]]:
    return [Column(name, kind, nullable=False) for name in names]


def _with_digest(name: str, *more: SchemaItem) -> Table:
    number = Column("id", Integer, primary_key=True)
    return Table(name, metadata, number, Column("digest", _HEX, nullable=False, unique=True), *more)


VERSION = "1"
"""The version of these tables. The table `versions` of a database has the version of its tables."""
versions = Table("linkgauge_version", metadata, Column("version_num", String(32), primary_key=True))
machines = _with_digest(
    "machines",
    *_filled(Text, "host", "accelerators"),
    Column("simulated", Boolean, nullable=False),
    Column("ranks", Integer, nullable=False),
)
states = _with_digest("states")
facts = Table(
    "facts",
    metadata,
    Column("state_id", ForeignKey(states.c.id, ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
setups = _with_digest("setups", _json("document", dict[str, str]))
runs = _with_digest(
    "runs",
    Column("content", _HEX, nullable=False),
    *_filled(Text, "uid", "label"),
    Column("started", _MOMENT, nullable=False),
    Column("finished", _MOMENT, comment="null: interrupted"),
    Column("machine_id", ForeignKey(machines.c.id), nullable=False),
    Column("state_id", ForeignKey(states.c.id), nullable=False),
    Column("setup_id", ForeignKey(setups.c.id), nullable=False),
    *_filled(Text, "profile"),
    Column("profiled", Boolean, nullable=False),
    _word("status", STATUSES),
    *_filled(Integer, "cells", "passed", "low"),
    Column("path", Text),
    _json("command", tuple[str, ...]),
    _json("settings", Settings),
    _word("verdict", RUN_VERDICTS, nullable=True),
    Column("lost", Integer),
    Column("accepted", _MOMENT),
    Index(None, "started"),
    Index(None, "machine_id", "setup_id", "started"),
)
tables = _with_digest(
    "sheets",
    Column("benchmark", Text, nullable=False, index=True),
    *_filled(Text, "title", "backend"),
    Column("size", BigInteger, nullable=False),
    *_filled(Text, "unit", "better"),
)
results = Table(
    "results",
    metadata,
    Column("run_id", ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("sheet_id", ForeignKey(tables.c.id), nullable=False, index=True, key="table_id"),
    _word("status", STATUSES),
    Column("reason", Text),
)
cells = _with_digest(
    "cells",
    Column("sheet_id", ForeignKey(tables.c.id), nullable=False, index=True, key="table_id"),
    *_filled(Text, "row", "column", "transfers", "definition"),
    Column("repeat", Integer, nullable=False),
)
_OF_CELL = (*SeriesId.__struct_fields__, "unit", "better")
_WORDS: dict[str, Sequence[str]] = {"status": STATUSES, "verdict": VERDICTS}


def _kept_field(field: FieldInfo) -> Column[Any]:
    if field.name in _WORDS:
        return _word(field.name, _WORDS[field.name])
    if field.type is int:
        return Column(field.name, Integer, nullable=False)
    return Column(field.name, Double)


_kept = [_kept_field(field) for field in fields(Figure) if field.name not in _OF_CELL]
KEPT = [column.name for column in _kept]
"""The fields of a figure that the history keeps: all but those of its cell. Columns that are
missing in a database of an earlier version are null, and are added before the next run is."""
figures = Table(
    "figures",
    metadata,
    # The key begins with the cell, so that the rows of a cell are read quickly.
    Column("cell_id", ForeignKey(cells.c.id), primary_key=True),
    Column("run_id", ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True, index=True),
    *_kept,
    sqlite_with_rowid=False,
)
