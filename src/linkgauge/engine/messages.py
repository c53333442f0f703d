"""What the controller and a worker process say to each other: whole values, never while a clock
runs. A command is answered by any number of `Standing` and `Trying` and then by one answer."""

from __future__ import annotations

import msgspec

from linkgauge.backends.base import Tried
from linkgauge.model.inventory import Inventory
from linkgauge.model.machine import Machine
from linkgauge.model.result import CellResult, PlannedCell, Settings

from .standing import Standing


class Start(msgspec.Struct, frozen=True, tag=True):
    """The first message: what this worker opens beside the host. It has no answer."""

    accelerator: str | None
    settings: Settings


class Survey(msgspec.Struct, frozen=True, tag=True):
    """What machine is there? Answered by `Surveyed`."""


class Look(msgspec.Struct, frozen=True, tag=True):
    """What else is there to know of it by now? Answered by `Seen`."""


class Before(msgspec.Struct, frozen=True):
    """What precedes a visit of cells: visits, samples of each, and the seconds that these took."""

    visits: int = 0
    samples: int = 0
    seconds: float = 0.0


class Measure(msgspec.Struct, frozen=True, tag=True):
    """Visit these cells at the same time. Answered by `Results`."""

    cells: tuple[PlannedCell, ...]
    size: int
    before: Before = Before()


class Tune(msgspec.Struct, frozen=True, tag=True):
    """Search how a device copies fastest. Answered by `Tuned`."""

    device: str
    peer: str | None


class Release(msgspec.Struct, frozen=True, tag=True):
    """Free the buffers kept for later cells: another worker needs memory. It has no answer."""


Command = Start | Survey | Look | Measure | Tune | Release


class Surveyed(msgspec.Struct, frozen=True, tag=True):
    machine: Machine


class Seen(msgspec.Struct, frozen=True, tag=True):
    inventory: Inventory


class Results(msgspec.Struct, frozen=True, tag=True):
    cells: tuple[CellResult, ...]


class Trying(msgspec.Struct, frozen=True, tag=True):
    tried: Tried


class Tuned(msgspec.Struct, frozen=True, tag=True):
    """False where the device's backend has nothing to search."""

    found: bool


class Refused(msgspec.Struct, frozen=True, tag=True):
    """The command failed, and the worker goes on."""

    reason: str


class Broke(msgspec.Struct, frozen=True, tag=True):
    """The worker met what it did not foresee, and ends."""

    reason: str


Answer = Surveyed | Seen | Results | Tuned | Refused | Broke
Reply = Answer | Trying | Standing
