"""Decides whether a cell needs more repetitions."""

from __future__ import annotations

import math
from collections.abc import Hashable
from operator import attrgetter

from linkgauge.engine.measuring.merging import spent
from linkgauge.model.documents.result import BenchmarkTable, CellResult
from linkgauge.model.notes import NotRepeated
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import relative_error
from linkgauge.model.transfer import Cell

_DEGREES = 6
"""The degrees of freedom that the variance between repetitions should have. Student's t is then
2.45, little more than the 1.96 of a known variance."""
_LEAST_DEGREES = 4
"""The least degrees of freedom for a cell that varies unlike all its peers."""
_LEAST_TO_JUDGE = 9
"""The fewest samples of a cell that show that it cannot become precise."""
REPETITIONS = 3
"""The repetitions that a cell needs for an interval that includes variation over time."""
PRODUCT_REPETITIONS = 6
"""The repetitions of a matrix product on a device: its speed under a power cap varies between
moments, and by three repetitions alone Student's t makes ranges of ±5 %."""


def class_of(table: BenchmarkTable, cell: Cell) -> Hashable:
    """Returns a key that equivalent cells share. Equivalent cells have the same kinds of figure,
    engines and memories, but their devices and directions may differ."""
    scales = not cell.does.follows_pointers
    shapes = list[Hashable]()
    for transfer in cell.transfers:
        ends = transfer.source, transfer.destination
        is_within, scale = ends[0].place == ends[1].place, transfer.scale if scales else 1
        kinds = sorted(map(attrgetter("space", "kind"), ends))
        shapes.append((transfer.engine.bare, *kinds, is_within, transfer.both_ways, scale))
    figure = table.unit, cell.report, cell.operation, cell.workload
    return table.backend, table.size, *figure, tuple(shapes)


def least_repetitions(equivalent: int) -> int:
    """Returns the repetitions that each of `equivalent` cells needs to show their variance."""
    return 1 + math.ceil(_DEGREES / max(1, equivalent))


def is_done(cell: CellResult, least: int, settings: Settings, always: int = 1) -> bool:
    """Whether a cell needs no more repetitions: it is precise after `least` of them, failed, was
    skipped, is too noisy to become precise, or is out of time (a cell that passed even then gets
    `always` repetitions, at most `least`)."""
    used, error = spent(cell), relative_error(cell.summary)
    if used >= settings.max_time:
        return cell.status != "pass" or len(cell.repetitions) >= min(always, least)
    if cell.status != "pass" or _is_complete(cell, least, settings):
        return True
    if len(cell.repetitions) < least or error is None or settings.precision == 0:
        return False
    degrees = (cell.interval and cell.interval.degrees) or 0
    if degrees < _LEAST_DEGREES:
        return False
    needed = used * (error / settings.precision) ** 2
    # Where repetitions have several samples, nine of its own are cheap, and equivalent cells may be
    # steadier.
    is_single = len(cell.samples) == len(cell.repetitions)
    shows = len(cell.samples) >= _LEAST_TO_JUDGE or (is_single and degrees >= _DEGREES)
    return error <= settings.precision or (shows and needed > settings.max_time)


def _is_complete(cell: CellResult, least: int, settings: Settings) -> bool:
    if NotRepeated in map(type, cell.notes):
        return True
    return settings.samples is not None and len(cell.repetitions) >= least


def is_enough(cell: CellResult, least: int, settings: Settings) -> bool:
    """Whether a cell needs no more repetitions even if there is time, because it failed, cannot be
    repeated, or is precise. A cell that passes needs at least `least` repetitions to be precise."""
    if cell.status != "pass" or _is_complete(cell, least, settings):
        return True
    if len(cell.repetitions) < least:
        return False
    if settings.precision == 0:
        return spent(cell) >= settings.max_time
    error = relative_error(cell.summary)
    degrees = (cell.interval and cell.interval.degrees) or 0
    return error is not None and error <= settings.precision and degrees >= _LEAST_DEGREES
