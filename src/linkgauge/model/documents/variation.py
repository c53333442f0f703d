"""The output of `linkgauge vary`: `vary.json`. tools/schemas makes docs/vary.schema.json from these
types.

Absent is null, never 0; figures are in the cell's unit (SI base units)."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.cell_id import CellId
from linkgauge.model.stats.changes import Direction
from linkgauge.model.stats.ranks import Change
from linkgauge.model.units import Better

from .result import Status

SCHEMA: Literal["linkgauge.vary/1"] = "linkgauge.vary/1"


class Setting(msgspec.Struct, frozen=True):
    """One combination of the varied options.

    name: Its letter in tables.
    values: The options with their values as they were typed, environment variables as `NAME`.
    label: The label that its runs are kept under.
    """

    name: str
    values: dict[str, str]
    label: str

    def __str__(self) -> str:
        return " ".join(
            f"{name} {value}" if name.startswith("-") else f"{name}={value}"
            for name, value in self.values.items()
        )


class KeptRun(msgspec.Struct, frozen=True):
    """The run of a setting in a round. Runs are in the order of measuring.

    round: The round, from 0.
    setting: The place of the setting, from 0.
    folder: The folder that it is kept in; null if it is not kept.
    status: The worst of its results.
    finished: Whether it got to its end; false if it was interrupted.
    prepared: What the command before it printed; null if there was none."""

    round: int
    setting: int
    folder: str | None
    status: Status
    finished: bool
    prepared: str | None = None


class Compared(msgspec.Struct, frozen=True):
    """A cell's results under one setting.

    figures: Its figure in each round, in the cell's unit; null: none.
    median: Their median; null without figures.
    change: The change against the first setting; null for the first setting, and if no round has
        both figures.
    direction: Whether the change is proven, and for the better or the worse by the unit; `same` if
        it is not proven, `unknown` for lack of rounds or figures.
    reason: Why figures are missing; null if none are, or it is unknown."""

    figures: tuple[float | None, ...]
    median: float | None = None
    change: Change | None = None
    direction: Direction = "unknown"
    reason: str | None = None


class VariedCell(CellId, frozen=True, kw_only=True, omit_defaults=False):
    """A cell under each setting. If settings differ in the number of threads of a sweep over
    threads, its column is `all threads`.

    title: What it measures, for people.
    unit: The unit of its figures.
    better: Which figures are better.
    settings: Its results under each setting, in their order."""

    title: str
    unit: str
    better: Better
    settings: tuple[Compared, ...]


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """Settings compared with the first of them, as kept in `vary.json`.

    schema: The kind of document, and its version.
    label: The label that it was given.
    simulated: Whether it was measured on a simulated machine.
    command: The command line, argument by argument.
    started: When it began (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    significance: The largest probability with which a single comparison calls settings different
        that do not differ.
    rounds: The number of rounds that was asked for.
    prepare: The command that ran before each run; null: none.
    settings: The settings.
    runs: Their runs.
    cells: The cells that were compared."""

    schema: Literal["linkgauge.vary/1"] = SCHEMA
    label: str
    simulated: bool = False
    command: tuple[str, ...]
    started: str
    finished: str | None
    significance: float
    rounds: int
    prepare: str | None = None
    settings: tuple[Setting, ...]
    runs: tuple[KeptRun, ...]
    cells: tuple[VariedCell, ...]
