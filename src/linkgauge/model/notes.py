"""Notes on a cell in addition to its figures. Their sentences are generated where they are
shown."""

from __future__ import annotations

import msgspec


class _Note(msgspec.Struct, frozen=True, gc=False, tag_field="code"):
    """A note's `code` in files is its tag."""


class Beside(_Note, frozen=True, gc=False, tag="beside"):
    """The number of other pairs that were measured at the same time."""

    others: int


class Imprecise(_Note, frozen=True, gc=False, tag="imprecise"):
    """The requested precision was not reached; both are relative, null without an interval."""

    asked: float
    reached: float | None
    samples: int


class NotRevisited(_Note, frozen=True, gc=False, tag="not-revisited"):
    """A later visit was skipped, for this reason."""

    reason: str | None


class Unjudged(_Note, frozen=True, gc=False, tag="unjudged"):
    """A limit, given at this place, could not be judged."""

    limit: str
    where: str
    why: str


class NearCache(_Note, frozen=True, gc=False, tag="near-cache"):
    """A buffer of `size` bytes is smaller than `times` the last-level cache of `cache` bytes."""

    size: int
    cache: int
    times: int

    @property
    def fits(self) -> bool:
        return self.size < self.cache


class Profiled(_Note, frozen=True, gc=False, tag="profiled"):
    """The cell was measured under this profiler, whose work is in its figures."""

    by: str


class Remark(_Note, frozen=True, gc=False, tag="remark"):
    """A remark by a backend or a buffer."""

    text: str


Note = Beside | Imprecise | NotRevisited | Unjudged | NearCache | Profiled | Remark
