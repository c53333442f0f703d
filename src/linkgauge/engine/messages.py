"""What the controller asks of a worker process: whole values, never while a clock runs."""

from __future__ import annotations

import msgspec

from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings, Tried


class Start(msgspec.Struct, frozen=True, tag=True):
    """The first message: what this worker opens in addition to the host. It has no answer."""

    accelerator: str | None
    settings: Settings


class Survey(msgspec.Struct, frozen=True, tag=True):
    """Asks for the machine. Answered by a `Machine`."""


class Look(msgspec.Struct, frozen=True, tag=True):
    """Asks for everything else known about the machine by now. Answered by an `Inventory`."""


class Visit(msgspec.Struct, frozen=True):
    """The number of this visit of cells, from 0, how many samples of them were `taken` before, the
    seconds that these took, and the benchmark that they are of. Simulated faults count cells from
    the `passed` ones of earlier rounds on."""

    number: int = 0
    taken: int = 0
    spent: float = 0.0
    benchmark: str = ""
    passed: int = 0


FIRST = Visit()


class Measure(msgspec.Struct, frozen=True, tag=True):
    """Visit these cells at the same time. Answered by their results, in their order."""

    cells: tuple[PlannedCell, ...]
    size: int
    visit: Visit = FIRST


class Tune(msgspec.Struct, frozen=True, tag=True):
    """Find the settings with which a device copies fastest. Answered by whether there was anything
    to search."""

    device: str
    peer: str | None


class Release(msgspec.Struct, frozen=True, tag=True):
    """Free the buffers kept for later cells: another worker needs memory. It has no answer."""


Command = Start | Survey | Look | Measure | Tune | Release


class Trying(msgspec.Struct, frozen=True, tag=True):
    """A word before the answer to `Tune`, as `Standing` is before that to `Measure`."""

    tried: Tried
