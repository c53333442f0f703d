"""The form of a run in its files. In `run.json`, a field that most cells of a result share is
written once for the result. `samples.bin` has the samples. tools/schemas makes docs/run.schema.json
from these types."""

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
    """The figure of one of several concurrent transfers. In a cell that reports hidden time, the
    figure is the seconds of one loop, of the kernel alone or of the copies alone.

    samples: Its samples, in the order of measuring, in the result's unit; in bytes/s for a transfer
        that runs while a latency is measured, in seconds for hidden time. Absent if the samples are
        in samples.bin.
    summary: Statistics of the samples; null without samples, absent if the statistics are in
        samples.bin."""

    samples: tuple[float, ...] = ()
    summary: Summary | None = None


class StoredTimes(RankTimes, frozen=True, gc=False, omit_defaults=True):
    """The times that one rank takes for its part of each of several collectives. The rank that
    comes last has the shortest times, because it waits for no other rank.

    seconds: Seconds that the rank's part of each collective takes; absent if they are in
        samples.bin.
    summary: Statistics of the seconds; null without any, absent if they are in samples.bin."""

    samples: tuple[float, ...] = ()


class StoredCell(CellResult, frozen=True, gc=False):
    """The result of one cell. If the run has a samples.bin, a field that is absent here has the
    value in the `common` of the cell's result. A field that is absent there as well is null or
    empty.

    placement: The placement of each buffer, or its index in the `placements` of the result, from 0.
    samples: Every sample, in the order of measuring, in the result's unit; absent if the samples
        are in samples.bin.
    parts: The separate figures of concurrent transfers; empty for a single one.
    readings: What the libraries of the accelerators reported during the measurement, or the indices
        of these readings in the `readings` of the result, from 0.
    iterations: The times of each rank of a collective.
    verdict: Whether the figure is as expected; `degraded` if it is, but on links below their best.
        In files of earlier versions, `unknown` if the cell is not judged.
    not_judged: Why the cell is not judged; null if judged or skipped, and in older files. In files
        of earlier versions, `unsure` if it is perhaps low."""

    placement: tuple[Placement | int, ...] = ()  # type: ignore[assignment]
    readings: tuple[Reading | int, ...] = ()  # type: ignore[assignment]
    parts: tuple[StoredPart, ...] = ()
    iterations: tuple[StoredTimes, ...] = ()
    verdict: Verdict | Literal["unknown"] = "not judged"  # type: ignore[assignment]
    not_judged: NotJudged | Literal["unsure"] | None = None  # type: ignore[assignment]


class StoredResult(Result, frozen=True, kw_only=True):
    """A table of measured cells.

    cells: The cells.
    common: The values of the fields that cells leave out, if the run has a samples.bin.
    placements: The placements to which the `placement` of the cells refers.
    readings: The readings to which the `readings` of the cells refer."""

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
    """A complete run, as `--json` writes it. In the run's folder it is divided into `run.json` and
    `samples.bin`.

    schema: The kind and version of the document.
    results: The results that were measured.
    samples: The samples.bin in the same folder; absent if the cells contain the samples."""

    schema: _Schema = SCHEMA  # type: ignore[assignment]
    results: tuple[StoredResult, ...]
    samples: SamplesFile | UnsetType = UNSET


class PackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a samples.bin, in MessagePack. Series are in the order of the run's cells. For
    each cell, the cell's samples come first, then the samples of its parts, then the seconds of its
    ranks. Numbers are little-endian.

    schema: The schema of the run.json.
    id: The id of the run.
    lengths: The number of samples of each series: unsigned 32-bit integers.
    values: The samples of all series, one after the other: 64-bit floats.
    summaries: Statistics of the series of parts and ranks, in thirteen 64-bit floats each: n, min,
        median, mean, max, p50, p95, p99, stddev, both ends of ci95, slow_p95, slow_p99. NaN stands
        for null; a series without a summary has NaN as n."""

    schema: Literal["linkgauge.run/2", "linkgauge.run/3"] = SCHEMA
    id: str
    lengths: memoryview
    values: memoryview
    summaries: memoryview
