"""The output of `linkgauge vary`: `vary.json`. docs/vary.schema.json is generated from these types.

Absent is null, never 0; figures are in the cell's unit (SI base units).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from .result import Status
from .signed_ranks import Change
from .units import Better

SCHEMA: Literal["linkgauge.vary/1"] = "linkgauge.vary/1"
Direction = Literal["better", "worse", "same", "unknown"]
"""Of a change: proven and for the better or the worse by the unit, not proven (`same`), or not to
be told, for lack of rounds or figures."""


class Setting(msgspec.Struct, frozen=True):
    """One combination of the varied options. `name` is its letter in tables; `values` are the
    options with their values as they were typed, environment variables as `NAME`; its runs are kept
    under `label`."""

    name: str
    values: dict[str, str]
    label: str

    def __str__(self) -> str:
        return " ".join(
            f"{name} {value}" if name.startswith("-") else f"{name}={value}"
            for name, value in self.values.items()
        )


class KeptRun(msgspec.Struct, frozen=True):
    """The run of a setting in a round, both counted from 0, in the order of measuring. It is kept
    in `folder`; `prepared` is what the command before it printed (null: there was none). `status`
    is the worst of its results, `finished` is false if it was interrupted."""

    round: int
    setting: int
    folder: str | None
    status: Status
    finished: bool
    prepared: str | None = None


class Compared(msgspec.Struct, frozen=True):
    """What one setting makes of a cell: the `figures` of each round (null: none) and their
    `median`. `change` is against the first setting, null of that itself and where no round has
    both figures. Where figures are missing, `reason` says why, if it is known."""

    figures: tuple[float | None, ...]
    median: float | None = None
    change: Change | None = None
    direction: Direction = "unknown"
    reason: str | None = None


class VariedCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell under each setting, in their order. The column of sweeps over threads is `all
    threads` where settings differ in how many there are."""

    benchmark: str
    title: str
    backend: str
    size: int
    row: str
    column: str
    unit: str
    better: Better
    settings: tuple[Compared, ...]


class Variation(msgspec.Struct, frozen=True, kw_only=True):
    """Settings compared with the first of them. A comparison calls settings different that do not
    differ with at most the probability `significance`, each comparison by itself. `rounds` were
    asked for; `finished` is null if it was interrupted. `prepare` is the command that ran before
    each run."""

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
