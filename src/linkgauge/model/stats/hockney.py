"""Fits Hockney's line t = t0 + bytes ÷ r∞, by least squares of relative deviations (R. W. Hockney,
Parallel Computing 20, 1994, 389-398). At size n½ = t0 × r∞, the rate is half of r∞."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from math import fsum, sqrt
from typing import NamedTuple

import msgspec

from ..curves import SizeLine, SizePiece
from .student import critical

LEAST = 3
"""The fewest different sizes. Two sizes always lie on a line."""
RANGE = 4
"""The least ratio of the largest size to the smallest. Sizes beyond these two are extrapolated."""
OFF = 0.15
"""No line fits if it misses a time by more than this share. Among nccl-tests' collectives on two
and four H200s, those that keep one algorithm are off by at most 0.13 (broadcast, reduce-scatter).
The others are off by 0.16 to 0.31 (alltoall, sendrecv, all-gather, reduce, all-reduce)."""
OFF_PIECE = 0.05
"""A piece misses no time by more than this share."""
NOISE = 0.01
"""The least relative error of a time (what a run asks for), however well a line fits."""
KNOWN = 0.25
"""t0 and r∞ are known if their 95 % interval (Student's t) reaches no farther than this share."""


class Timed(msgspec.Struct, frozen=True):
    size: int
    bytes: int
    seconds: float


def fit(
    points: Sequence[Timed],
    benchmark: str = "",
    backend: str = "",
    row: str = "",
    column: str | None = None,
) -> SizeLine | None:
    """Returns a line; None for too few sizes. If it is off by over `OFF`, it lacks t0 and r∞."""
    sizes = {point.size for point in points}
    if len(sizes) < LEAST or max(sizes) < RANGE * min(sizes):
        return None
    points = sorted(points, key=lambda point: point.bytes)
    start, each_byte, start_error, each_byte_error = _least_squares(points)
    off = [start / p.seconds + each_byte * p.bytes / p.seconds - 1 for p in points]
    error, worst = max((abs(one), point.size) for one, point in zip(off, points, strict=True))
    path = benchmark, backend, row, column, tuple(sorted(sizes)), error, worst
    pieces = _pieces(points) if error > OFF_PIECE else ()
    if error > OFF:
        return SizeLine(*path, pieces=pieces)
    degrees = len(points) - 2
    deviation = sqrt(fsum(one * one for one in off) / degrees)
    unsure = max(critical(0.05, degrees) * deviation, NOISE) / KNOWN
    latency = start if start > unsure * start_error else None
    bandwidth = 1 / each_byte if each_byte > unsure * each_byte_error else None
    half = None
    if latency is not None and bandwidth is not None:
        half = latency * bandwidth * points[-1].size / points[-1].bytes
    return SizeLine(*path, latency, bandwidth, half, pieces)


class _Cut(NamedTuple):
    number: int
    error: float
    pieces: tuple[SizePiece, ...] = ()


def _pieces(points: Sequence[Timed]) -> tuple[SizePiece, ...]:
    cuts = [_Cut(0, 0.0)]
    for end in range(1, len(points) + 1):
        tried = ((cuts[begin], _piece(points[begin:end])) for begin in range(end))
        found = (
            _Cut(cut.number + 1, max(cut.error, piece.error), (*cut.pieces, piece))
            for cut, piece in tried
            if piece.error <= OFF_PIECE
        )
        cuts.append(min(found, key=lambda cut: cut[:2]))
    return cuts[-1].pieces if 2 * cuts[-1].number <= len(points) else ()


def _piece(points: Sequence[Timed]) -> SizePiece:
    first, last = points[0], points[-1]
    start, each_byte = first.seconds, 0.0
    with suppress(ZeroDivisionError):  # one point, or all move as many bytes
        start, each_byte, *_ = _least_squares(points)
    error = max(abs((start + each_byte * p.bytes) / p.seconds - 1) for p in points)
    return SizePiece(first.size, last.size, start, 1 / each_byte if each_byte else None, error)


def _least_squares(points: Sequence[Timed]) -> tuple[float, float, float, float]:
    # In units of the largest point: squares of seconds and bytes lie too far apart.
    most = points[-1]
    u = [most.seconds / point.seconds for point in points]
    v = [one * point.bytes / most.bytes for one, point in zip(u, points, strict=True)]
    uu, vv = fsum(one * one for one in u), fsum(one * one for one in v)
    uv = fsum(one * other for one, other in zip(u, v, strict=True))
    su, sv = fsum(u), fsum(v)
    determinant = uu * vv - uv * uv
    start = (su * vv - sv * uv) / determinant
    each_byte = (sv * uu - su * uv) / determinant
    if start < 0:
        start, each_byte = 0.0, sv / vv
    elif each_byte < 0:
        start, each_byte = su / uu, 0.0
    each = most.seconds / most.bytes
    return (
        start * most.seconds,
        each_byte * each,
        sqrt(vv / determinant) * most.seconds,
        sqrt(uu / determinant) * each,
    )
