"""Where the native core's errors become ours, and what host memory holds is written and checked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from linkgauge import _native
from linkgauge.model.errors import BackendError

from .base import Pattern


@contextmanager
def native_errors(call: str) -> Iterator[None]:
    """Threads that cannot start, CPUs that went away, calls out of order: a BackendError."""
    try:
        yield
    except (OSError, RuntimeError, ValueError, MemoryError) as error:
        raise BackendError(call, str(error)) from error


def fill(
    address: int, size: int, pattern: Pattern, seed: int, inverted: bool, cpus: Sequence[int]
) -> None:
    """Writes a pattern, or its complement, by a thread on each of `cpus`."""
    with native_errors("fill"):
        _native.fill(address, size, seed, _native.Pattern(pattern), inverted, cpus)


def first_mismatch(
    address: int, size: int, pattern: Pattern, seed: int, cpus: Sequence[int]
) -> int | None:
    """Offset of the first byte that differs from a pattern, None if all agree."""
    with native_errors("compare"):
        return _native.first_mismatch(address, size, seed, _native.Pattern(pattern), cpus)


def checksum(address: int, size: int, cpus: Sequence[int]) -> int:
    """Xor of all 64-bit words, the tail zero-extended."""
    with native_errors("checksum"):
        return _native.checksum(address, size, cpus)
