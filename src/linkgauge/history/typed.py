"""Rows as values of known types: a damaged file of SQLite may hold anything anywhere."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypeVar

import msgspec
from sqlalchemy import Row

from linkgauge.model.units import Better

from .tables import STATUSES, VERDICTS

StatusNumber = Annotated[int, msgspec.Meta(ge=0, lt=len(STATUSES))]
VerdictNumber = Annotated[int, msgspec.Meta(ge=0, lt=len(VERDICTS))]
Microseconds = Annotated[int, msgspec.Meta(ge=-(1 << 55), le=1 << 57)]
"""Since 1970, between the years 828 and 6536."""


class RunRow(msgspec.Struct, frozen=True, gc=False):
    id: int
    uid: str
    label: str
    started: Microseconds
    finished: Microseconds | None
    profile: str
    profiled: bool
    status: StatusNumber
    cells: int
    passed: int
    low: int
    path: str | None
    state_id: int
    machine_id: int
    host: str
    accelerators: str
    simulated: bool
    digest: bytes


class CellRow(msgspec.Struct, frozen=True, gc=False):
    """A cell with its sheet."""

    id: int
    benchmark: str
    backend: str
    size: int
    unit: str
    better: Better
    row: str
    column: str
    transfers: str
    definition: str
    repeat: int


class FigureRow(msgspec.Struct, frozen=True, gc=False):
    cell_id: int
    run_id: int
    status: StatusNumber
    verdict: VerdictNumber
    n: int
    figure: float | None
    median: float | None
    low: float | None
    high: float | None
    slow_p95: float | None
    slow_p99: float | None


class PointRow(msgspec.Struct, frozen=True, gc=False):
    cell_id: int
    run_id: int
    figure: float
    low: float | None
    high: float | None


class BenchmarkRow(msgspec.Struct, frozen=True, gc=False):
    run_id: int
    benchmark: str


class FactRow(msgspec.Struct, frozen=True, gc=False):
    state_id: int
    name: str
    value: str


class SettingsRow(msgspec.Struct, frozen=True, gc=False):
    id: int
    settings: str


class SetupRow(msgspec.Struct, frozen=True, gc=False):
    document: str


Kind = TypeVar("Kind")


def typed(kind: type[Kind], rows: Iterable[Row[tuple[object, ...]]]) -> list[Kind]:
    """The rows, whose columns have the names of the kind's fields. Raises ValidationError where a
    value is of another type."""
    return msgspec.convert(list(rows), list[kind], from_attributes=True)  # type: ignore[valid-type]
