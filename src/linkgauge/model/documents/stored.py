"""A run as its files hold it: `run.json` has fields that a result's cells share only once, and
`samples.bin` has the samples. tools/schemas makes docs/run.schema.json from these types."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.stats.summary import Summary

from .result import SCHEMA, CellResult, Placement, RankTimes, Result, Run, TransferFigure


class StoredPart(TransferFigure, frozen=True, gc=False, omit_defaults=True):
    """The separate figure of one concurrent transfer. In a cell that reports hidden time, it is the
    time of a loop in seconds, of the kernel alone or of the copies alone.

    samples: Its samples, in the order of measuring, in the result's unit; in bytes/s if it runs
        beside a latency, in seconds if the cell reports hidden time. Absent if samples.bin has
        them.
    summary: Statistics of the samples; null without samples, absent if samples.bin has it."""

    samples: tuple[float, ...] = ()
    summary: Summary | None = None


class StoredTimes(RankTimes, frozen=True, gc=False, omit_defaults=True):
    """The times of a rank's part of each of several collectives, one after another. A rank that
    comes late waits less for the others than they wait for it.

    seconds: Seconds of its part of each collective; absent if samples.bin has them.
    summary: Statistics of these; null without any, absent if samples.bin has it."""

    seconds: tuple[float, ...] = ()


class StoredCell(CellResult, frozen=True, gc=False):
    """A cell's result. If the run's samples are in samples.bin, a field that is absent here has the
    value in its result's `common`, and otherwise is null or empty.

    placement: The placement of each buffer, or its index in the `placements` of the result, from 0.
    samples: Every sample, in the order of measuring, in the result's unit; absent if samples.bin
        has them.
    parts: The separate figures of concurrent transfers; empty for a single one.
    readings: The readings that the libraries of its accelerators reported meanwhile, or their
        indices in the `readings` of the result, from 0.
    iterations: The times of each rank of a collective."""

    placement: tuple[Placement | int, ...] = ()  # type: ignore[assignment]
    readings: tuple[Reading | int, ...] = ()  # type: ignore[assignment]
    parts: tuple[StoredPart, ...] = ()
    iterations: tuple[StoredTimes, ...] = ()


class StoredResult(Result, frozen=True, kw_only=True):
    """A table of measured cells.

    cells: The cells.
    common: If the run's samples are in samples.bin, the values of fields that its cells leave out.
    placements: The placements to which the `placement` of its cells refers.
    readings: The readings to which the `readings` of its cells refer."""

    cells: tuple[StoredCell, ...]
    common: dict[str, Any] | UnsetType = UNSET
    placements: tuple[Placement, ...] | UnsetType = UNSET
    readings: tuple[Reading, ...] | UnsetType = UNSET


class SamplesFile(msgspec.Struct, frozen=True):
    """The samples.bin that belongs to a run.json.

    bytes: Its size in bytes.
    sha256: Its SHA-256 in hexadecimal digits.
    """

    bytes: int
    sha256: str


class StoredRun(Run, frozen=True, kw_only=True):
    """A whole run: as `--json` writes it, or as `run.json` and `samples.bin` keep it together.

    schema: The kind of document, and its version.
    results: What was measured.
    samples: The samples.bin in the same folder; absent if the cells have their samples."""

    schema: Literal["linkgauge.run/1", "linkgauge.run/2"] = SCHEMA  # type: ignore[assignment]
    results: tuple[StoredResult, ...]
    samples: SamplesFile | UnsetType = UNSET


class PackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """A samples.bin, which is MessagePack. Its series are in the order of the run's cells: a cell's
    own samples, those of its parts, and the seconds of its ranks. Numbers are little-endian.

    schema: The schema of the run.json.
    id: The id of the run.
    lengths: The number of samples of each series: unsigned 32-bit integers.
    values: The samples of all series, one after the other: 64-bit floats.
    summaries: Statistics of the series of parts and ranks, in thirteen 64-bit floats each: n, min,
        median, mean, max, p50, p95, p99, stddev, both ends of ci95, slow_p95, slow_p99. NaN stands
        for null; a series without a summary has it as n."""

    schema: Literal["linkgauge.run/2"] = SCHEMA
    id: str
    lengths: memoryview
    values: memoryview
    summaries: memoryview
