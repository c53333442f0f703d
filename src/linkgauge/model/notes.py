"""Notes on a cell in addition to its figures. Their sentences are generated where they are
shown."""

from __future__ import annotations

import msgspec


class _Note(msgspec.Struct, frozen=True, gc=False, tag_field="code"):
    """A note on a cell.

    code: Which note it is.
    """


class Beside(_Note, frozen=True, gc=False, tag="beside"):
    """A note that other pairs were measured at the same time.

    others: The number of these pairs."""

    others: int


class Imprecise(_Note, frozen=True, gc=False, tag="imprecise"):
    """The requested precision was not reached.

    asked: The requested precision, relative.
    reached: The precision that was reached, relative; null without an interval.
    samples: The number of samples.
    """

    asked: float
    reached: float | None
    samples: int


class NotRevisited(_Note, frozen=True, gc=False, tag="not-revisited"):
    """A later visit was skipped.

    reason: Why; null if that is unknown.
    """

    reason: str | None


class Unjudged(_Note, frozen=True, gc=False, tag="unjudged"):
    """A limit could not be judged.

    limit: The limit, as it was given.
    where: Where it was given.
    why: Why it could not be judged.
    """

    limit: str
    where: str
    why: str


class NearCache(_Note, frozen=True, gc=False, tag="near-cache"):
    """A buffer is smaller than a multiple of the last-level cache.

    size: Size of the buffer in bytes.
    cache: Size of the cache in bytes.
    times: How many times the cache a buffer should have.
    """

    size: int
    cache: int
    times: int

    @property
    def fits(self) -> bool:
        return self.size < self.cache


class Profiled(_Note, frozen=True, gc=False, tag="profiled"):
    """The cell was measured under a profiler, whose work is in its figures.

    by: The profiler.
    """

    by: str


class Remark(_Note, frozen=True, gc=False, tag="remark"):
    """A remark by a backend or a buffer.

    text: The remark.
    """

    text: str


STAGED = Remark("without peer access: the driver copies by way of the host")

Note = Beside | Imprecise | NotRevisited | Unjudged | NearCache | Profiled | Remark
