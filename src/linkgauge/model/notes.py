"""Notes on a cell, in addition to its results. Reports show a note as a sentence."""

from __future__ import annotations

import msgspec

from linkgauge.model.shareable import Facts, FileName, FreeText, OwnName, Reason


class _Note(msgspec.Struct, frozen=True, gc=False, tag_field="code"):
    """A note on a cell; the base of all kinds of notes.

    code: The kind of note (a tag in JSON)."""


class Concurrent(_Note, frozen=True, gc=False, tag="concurrent"):
    """Other pairs of memories were measured at the same time as the cell.

    others: The number of other pairs."""

    others: int


class Imprecise(_Note, frozen=True, gc=False, tag="imprecise"):
    """Sampling ended before the cell reached the requested precision.

    asked: The requested relative precision.
    reached: The relative precision that was reached; null without an interval.
    samples: The number of samples.
    budget: True if the run's time budget ended sampling; left out if the cell's own time did."""

    asked: float
    reached: float | None
    samples: int
    budget: bool | msgspec.UnsetType = msgspec.UNSET


class NotRepeated(_Note, frozen=True, gc=False, tag="not-repeated"):
    """A later repetition of the cell was skipped.

    reason: Why the repetition was skipped; null if unknown."""

    reason: Reason | None


class Unjudged(_Note, frozen=True, gc=False, tag="unjudged"):
    """A limit for the cell could not be judged.

    limit: The limit, as the user wrote it.
    where: Where the user set the limit.
    why: Why the limit could not be judged."""

    limit: FreeText
    where: FileName
    why: FreeText


class NearCache(_Note, frozen=True, gc=False, tag="near-cache"):
    """A buffer of the cell is smaller than the required multiple of the last-level cache.

    size: Size of the buffer in bytes.
    cache: Size of the cache in bytes.
    times: How many times as large as the cache a buffer should be."""

    size: int
    cache: int
    times: int

    @property
    def fits(self) -> bool:
        return self.size < self.cache


class Profiled(_Note, frozen=True, gc=False, tag="profiled"):
    """The cell was measured under a profiler. The results include the profiler's work.

    by: The name of the profiler; `a profiler` if the user started it."""

    by: OwnName


class Remark(_Note, frozen=True, gc=False, tag="remark"):
    """A remark by a backend or about a buffer.

    text: The text of the remark."""

    text: Facts


STAGED = Remark("without peer access: the driver copies by way of the host")

Note = Concurrent | Imprecise | NotRepeated | Unjudged | NearCache | Profiled | Remark
