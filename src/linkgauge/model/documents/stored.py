"""A run's files: `run.json`, in which cells refer to values that they share, and `samples.bin`."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.shareable import Digest
from linkgauge.model.stats.summary import Summary

from .result import (
    SCHEMA,
    CellResult,
    NotJudged,
    Placement,
    RankTimes,
    Result,
    Run,
    TransferFigure,
    Verdict,
)


class StoredPart(TransferFigure, frozen=True, gc=False, omit_defaults=True):
    """The figure of one of several concurrent transfers.

    samples: Its samples, in the order of measuring; absent if the samples are in samples.bin.
    summary: Statistics of the samples; absent without samples, or if they are in samples.bin."""

    samples: tuple[float, ...] = ()
    summary: Summary | None = None


class StoredTimes(RankTimes, frozen=True, gc=False, omit_defaults=True):
    """The times of one rank in a collective. The rank that arrives last does not wait for others.

    seconds: Seconds in each collective (in code: `samples`); absent if they are in samples.bin.
    summary: Statistics of the seconds; absent without any, or if they are in samples.bin."""

    samples: tuple[float, ...] = ()


class StoredCell(CellResult, frozen=True, gc=False):
    """The result of one cell. If there is a samples.bin, the table's `common` holds shared values.

    placement: The placement of each buffer, or its index in the table's `placements`, from 0.
    samples: Every sample, in the order of measuring; absent if the samples are in samples.bin.
    readings: What the accelerators' libraries reported, or indices in the table's `readings`.
    verdict: Whether the figure is as expected; in older files `unknown` if the cell is not judged.
    not_judged: Why the cell is not judged, else null. `unsure` in older files is `perhaps low`."""

    placement: tuple[Placement | int, ...] = ()  # type: ignore[assignment]
    readings: tuple[Reading | int, ...] = ()  # type: ignore[assignment]
    parts: tuple[StoredPart, ...] = ()
    iterations: tuple[StoredTimes, ...] = ()
    verdict: Verdict | Literal["unknown"] = "not judged"  # type: ignore[assignment]
    not_judged: NotJudged | Literal["unsure"] | None = None  # type: ignore[assignment]


class StoredResult(Result, frozen=True, kw_only=True):
    """A table of measured cells.

    common: The values of fields that cells leave out; absent if the run has no samples.bin.
    placements: The placements that the indices in the cells' `placement` refer to.
    readings: The readings that the indices in the cells' `readings` refer to."""

    cells: tuple[StoredCell, ...]
    common: dict[str, Any] | UnsetType = UNSET
    placements: tuple[Placement, ...] | UnsetType = UNSET
    readings: tuple[Reading, ...] | UnsetType = UNSET


class SamplesFile(msgspec.Struct, frozen=True):
    """The size and checksum of the samples.bin that belongs to a run.json.

    bytes: The size of samples.bin in bytes.
    sha256: The SHA-256 of samples.bin in hexadecimal digits."""

    bytes: int
    sha256: Digest


_Schema = Literal["linkgauge.run/1", "linkgauge.run/2", "linkgauge.run/3"]


class StoredRun(Run, frozen=True, kw_only=True):
    """A complete run as `--json` writes it. A folder holds it as `run.json` and `samples.bin`.

    samples: The samples.bin in the same folder; absent if the cells contain the samples."""

    schema: _Schema = SCHEMA  # type: ignore[assignment]
    results: tuple[StoredResult, ...]
    samples: SamplesFile | UnsetType = UNSET


class PackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a samples.bin, in MessagePack, little-endian. `values` (f64) holds the samples
    of each cell, then those of its parts, then the seconds of its ranks. `lengths` (u32) holds the
    lengths of these lists. `summaries` holds thirteen f64 for each part and rank: the fields of
    Summary in order, with two for ci95. NaN stands for null; if `n` is NaN, there is no summary."""

    schema: Literal["linkgauge.run/2", "linkgauge.run/3"] = SCHEMA
    id: str
    lengths: memoryview
    values: memoryview
    summaries: memoryview
