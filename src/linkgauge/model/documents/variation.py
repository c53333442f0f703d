"""The output of `linkgauge vary`, kept as `vary.json`. Figures are in SI base units."""

from __future__ import annotations

from typing import Literal

import msgspec

from linkgauge.model.cell_id import CellId
from linkgauge.model.printable import BriefRepr
from linkgauge.model.stats.changes import Direction
from linkgauge.model.stats.ranks import Change
from linkgauge.model.units import Better

from .result import Status

SCHEMA: Literal["linkgauge.vary/1"] = "linkgauge.vary/1"


class Setting(msgspec.Struct, frozen=True):
    """One combination of the varied options.

    name: The letter of the setting in tables.
    values: The options and environment variables, with their values as the user typed them.
    label: The label under which the runs of the setting are kept."""

    name: str
    values: dict[str, str]
    label: str

    def __str__(self) -> str:
        return " ".join(
            f"{name} {value}" if name.startswith("-") else f"{name}={value}"
            for name, value in self.values.items()
        )


class KeptRun(msgspec.Struct, frozen=True):
    """A run of one setting in one round.

    round: The number of the round, from 0.
    setting: The index of the setting, from 0.
    folder: The folder of the run; null if the run is not kept.
    status: The worst status of the run's results.
    finished: Whether the run got to its end; false if it was interrupted.
    prepared: What the command before the run printed; null without such a command."""

    round: int
    setting: int
    folder: str | None
    status: Status
    finished: bool
    prepared: str | None = None


class Compared(msgspec.Struct, frozen=True):
    """A cell's results under one setting.

    figures: The cell's figure in each round, in the cell's unit; null in a round without a figure.
    median: The median of the figures; null without figures.
    change: The change from the first setting; null for that setting, or if no round has both.
    direction: `better` or `worse` if proven, else `same`; `unknown` with too few rounds or figures.
    reason: Why figures are missing; null if no figure is missing, or if unknown."""

    figures: tuple[float | None, ...]
    median: float | None = None
    change: Change | None = None
    direction: Direction = "unknown"
    reason: str | None = None


class VariedCell(CellId, frozen=True, kw_only=True, omit_defaults=False):
    """A cell's results under each setting. The column is `all threads` for all CPUs of each
    setting.

    title: What the cell measures, as text for people.
    unit: The unit of its figures.
    better: Whether higher or lower figures are better.
    settings: The cell's results under each setting, in the order of the settings."""

    title: str
    unit: str
    better: Better
    settings: tuple[Compared, ...]


class Variation(BriefRepr, msgspec.Struct, frozen=True, kw_only=True):
    """A comparison of settings with the first setting, as kept in `vary.json`.

    schema: The kind and version of the document.
    label: The label that the user gave.
    simulated: Whether it was measured on a simulated machine.
    command: The command line, argument by argument.
    started: When it began (ISO 8601, UTC).
    finished: When it ended (ISO 8601, UTC); null if it was interrupted.
    significance: The largest probability that a single comparison calls equal settings different.
    rounds: The number of rounds that was asked for.
    prepare: The command that ran before each run; null without such a command.
    settings: The settings.
    runs: The runs of all settings.
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
