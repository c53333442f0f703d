"""The tables of the history. A change of them takes another version, and a step to it in schema.py.

A run's figures refer to their run and their cell by number; what many runs share (machines, their
states, settings, sheets, cells) is kept once, and found by the digest of its content. The key of
figures begins with the cell, since a trend reads those of a cell together.
"""

from __future__ import annotations

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
)

from linkgauge.model.result import Status, Verdict

STATUSES: tuple[Status, ...] = ("pass", "fail", "skip", "error", "timeout")
VERDICTS: tuple[Verdict, ...] = ("unknown", "ok", "low", "high")
"""Kept as their number: never change the order, only add."""
DIGEST = 16
"""Bytes."""

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "fk": "fk_%(table_name)s_%(column_0_N_name)s",
        "pk": "pk_%(table_name)s",
    }
)


def _number() -> Column[int]:
    return Column("id", Integer, primary_key=True)


def _digest() -> Column[bytes]:
    return Column("digest", LargeBinary(DIGEST), nullable=False, unique=True)


versions = Table("linkgauge_version", metadata, Column("version_num", String(32), primary_key=True))
machines = Table(
    "machines",
    metadata,
    _number(),
    _digest(),
    Column("host", Text, nullable=False),
    Column("accelerators", Text, nullable=False),
    Column("simulated", Boolean, nullable=False),
    Column("ranks", Integer, nullable=False),
)
states = Table("states", metadata, _number(), _digest())
facts = Table(
    "facts",
    metadata,
    Column("state_id", ForeignKey(states.c.id, ondelete="CASCADE"), primary_key=True),
    Column("name", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
setups = Table(
    "setups",
    metadata,
    _number(),
    _digest(),
    Column("document", Text, nullable=False, comment="JSON: what differs from the defaults"),
)
runs = Table(
    "runs",
    metadata,
    _number(),
    _digest(),
    Column("content", LargeBinary(DIGEST), nullable=False),
    Column("uid", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("started", BigInteger, nullable=False, comment="microseconds since 1970"),
    Column("finished", BigInteger, comment="null: interrupted"),
    Column("machine_id", ForeignKey(machines.c.id), nullable=False),
    Column("state_id", ForeignKey(states.c.id), nullable=False),
    Column("setup_id", ForeignKey(setups.c.id), nullable=False),
    Column("profile", Text, nullable=False),
    Column("profiled", Boolean, nullable=False),
    Column("status", SmallInteger, nullable=False),
    Column("cells", Integer, nullable=False),
    Column("passed", Integer, nullable=False),
    Column("low", Integer, nullable=False),
    Column("path", Text),
    Column("command", Text, nullable=False, comment="JSON"),
    Column("settings", Text, nullable=False, comment="JSON: all of them"),
    Index(None, "started"),
    Index(None, "machine_id", "setup_id", "started"),
)
sheets = Table(
    "sheets",
    metadata,
    _number(),
    _digest(),
    Column("benchmark", Text, nullable=False, index=True),
    Column("title", Text, nullable=False),
    Column("backend", Text, nullable=False),
    Column("size", BigInteger, nullable=False),
    Column("unit", Text, nullable=False),
    Column("better", Text, nullable=False),
)
results = Table(
    "results",
    metadata,
    Column("run_id", ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True),
    Column("number", Integer, primary_key=True),
    Column("sheet_id", ForeignKey(sheets.c.id), nullable=False, index=True),
    Column("status", SmallInteger, nullable=False),
    Column("reason", Text),
)
cells = Table(
    "cells",
    metadata,
    _number(),
    _digest(),
    Column("sheet_id", ForeignKey(sheets.c.id), nullable=False, index=True),
    Column("row", Text, nullable=False),
    Column("column", Text, nullable=False),
    Column("transfers", Text, nullable=False),
    Column("definition", Text, nullable=False),
    Column("repeat", Integer, nullable=False),
)
figures = Table(
    "figures",
    metadata,
    Column("cell_id", ForeignKey(cells.c.id), primary_key=True),
    Column("run_id", ForeignKey(runs.c.id, ondelete="CASCADE"), primary_key=True, index=True),
    Column("status", SmallInteger, nullable=False),
    Column("verdict", SmallInteger, nullable=False),
    Column("n", Integer, nullable=False),
    Column("figure", Double),
    Column("median", Double),
    Column("low", Double),
    Column("high", Double),
    Column("slow_p95", Double),
    Column("slow_p99", Double),
    sqlite_with_rowid=False,
)
