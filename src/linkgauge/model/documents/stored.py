"""A run as its files hold it: `run.json` says once what the cells of a result have in common, and
`samples.bin` has the samples. tools/schemas makes docs/run.schema.json of these types.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.stats.summary import Summary

from .result import SCHEMA, CellResult, Placement, RankTimes, Result, Run, TransferFigure


class StoredPart(TransferFigure, frozen=True, gc=False, omit_defaults=True):
    """The separate figure of one concurrent transfer. Of a cell that reports what is hidden, it is
    the time of a loop in seconds, without the kernel or without the copies.

    samples: Its samples, in the order of measuring, in the result's unit; beside a latency in
        bytes/s, where the cell reports what is hidden in seconds. Absent if samples.bin has them.
    summary: What the samples come to; null without samples, absent if samples.bin has it.
    """

    samples: tuple[float, ...] = ()
    summary: Summary | None = None


class StoredTimes(RankTimes, frozen=True, gc=False, omit_defaults=True):
    """The times of a rank's part of each of several collectives, one after another: a rank that
    comes late waits less for the others than they for it.

    seconds: Seconds of its part of each collective; absent if samples.bin has them.
    summary: What these come to; null without any, absent if samples.bin has it.
    """

    seconds: tuple[float, ...] = ()


class StoredCell(CellResult, frozen=True, gc=False):
    """One cell. Of a run whose samples are in samples.bin, what is absent here is as its result's
    `common` says, and otherwise null or empty.

    placement: Where each buffer lies: that, or its place among the `placements` of the result, from
        0.
    samples: Every sample, in the order of measuring, in the result's unit; absent if samples.bin
        has them.
    parts: The separate figures of concurrent transfers; empty of a single one.
    readings: What the libraries of its accelerators reported while it was measured: that, or its
        place among the `readings` of the result, from 0.
    iterations: The times of each rank of a collective.
    """

    placement: tuple[Placement | int, ...] = ()  # type: ignore[assignment]
    readings: tuple[Reading | int, ...] = ()  # type: ignore[assignment]
    parts: tuple[StoredPart, ...] = ()
    iterations: tuple[StoredTimes, ...] = ()


class StoredResult(Result, frozen=True, kw_only=True):
    """A sheet with what was measured.

    cells: The cells.
    common: Of a run whose samples are in samples.bin, fields of its cells: those that a cell does
        not have itself are so.
    placements: What the `placement` of its cells refers to.
    readings: What the `readings` of its cells refer to.
    """

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
    samples: The samples.bin beside this file; absent if the cells have their samples.
    """

    schema: Literal["linkgauge.run/1", "linkgauge.run/2"] = SCHEMA  # type: ignore[assignment]
    results: tuple[StoredResult, ...]
    samples: SamplesFile | UnsetType = UNSET


class PackedSamples(msgspec.Struct, frozen=True, kw_only=True):
    """A samples.bin, which is MessagePack. Its series are in the order of the run's cells: of a
    cell its own, those of its parts, and the seconds of its ranks. Numbers are little-endian.

    schema: That of the run.json.
    id: The id of the run.
    lengths: The number of samples of each series: unsigned 32-bit integers.
    values: The samples of all series, one after the other: 64-bit floats.
    summaries: What the series of parts and ranks come to, in thirteen such floats each: n, min,
        median, mean, max, p50, p95, p99, stddev, both ends of ci95, slow_p95, slow_p99. NaN stands
        for null; a series without a summary has it as n.
    """

    schema: Literal["linkgauge.run/2"] = SCHEMA
    id: str
    lengths: memoryview
    values: memoryview
    summaries: memoryview
