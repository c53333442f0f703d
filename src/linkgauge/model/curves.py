"""Facts read from curves over sizes: the levels of a memory hierarchy, and Hockney's line."""

from __future__ import annotations

import msgspec

from linkgauge.model.shareable import OwnName, PlaceName


class Level(msgspec.Struct, frozen=True):
    """A plateau in a curve of latency over sizes, which is one level of a memory hierarchy.

    number: The level's number, from 1.
    seconds: Latency of an access in seconds.
    least: The smallest size in bytes on the plateau.
    most: The largest size in bytes on the plateau; null for the last level."""

    number: int
    seconds: float
    least: int
    most: int | None = None


class Levels(msgspec.Struct, frozen=True):
    """The levels of a memory hierarchy that one row of a result shows.

    row: The row's label.
    levels: The levels, the fastest first."""

    row: PlaceName
    levels: tuple[Level, ...]


class SizePiece(msgspec.Struct, frozen=True):
    """A line through the times of some neighbouring sizes: time = `latency` + bytes ÷ `bandwidth`.

    least: The smallest size in bytes.
    most: The largest size in bytes.
    latency: The line's seconds at 0 bytes.
    bandwidth: The line's bytes/s; null if the time is the same at all these sizes.
    error: The largest relative distance of a time from the line."""

    least: int
    most: int
    latency: float
    bandwidth: float | None
    error: float


class SizeLine(msgspec.Struct, frozen=True):
    """Hockney's line through a path's times: time = `latency` + bytes ÷ `bandwidth`.

    benchmark: The benchmark's name.
    backend: The backend that measured the path.
    row: The label of the path's row.
    column: The label of the path's column; null where the columns are sizes.
    sizes: The measured sizes in bytes.
    error: The largest relative distance of a time from the line.
    worst: The size in bytes with the largest distance (`error`).
    latency: Seconds that a transfer of any size takes at least; null if the sizes do not show it.
    bandwidth: Bytes/s that large sizes approach; null if the sizes do not show it.
    half_size: The size in bytes that reaches half of `bandwidth`; null unless both are known.
    pieces: Lines through neighbouring sizes, if `error` is above 5 % and few such lines suffice."""

    benchmark: OwnName
    backend: OwnName
    row: PlaceName
    column: PlaceName | None
    sizes: tuple[int, ...]
    error: float
    worst: int
    latency: float | None = None
    bandwidth: float | None = None
    half_size: float | None = None
    pieces: tuple[SizePiece, ...] = ()
