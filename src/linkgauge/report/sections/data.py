"""The raw data as files inside the page, as far as a page may hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from linkgauge.engine.journal import RUN_FILE
from linkgauge.model.notation import encode_hook
from linkgauge.model.printable import escaped
from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.stats.summary import Summary
from linkgauge.report.blocks import Attachment, Attachments, Block, Prose, plain
from linkgauge.report.files import SAMPLES_FILE, document_of, samples_csv
from linkgauge.report.tables import CELLS

from . import OneRun, Section

MOST_BYTES = 900_000
"""Of all files, compressed: as text they take a third more."""
MOST_SAMPLES = 120_000
"""More never fit."""
_FEWER = (256, 32, 0)
"""Samples of one cell: cells with more come without, where not all fit."""
_DIGITS = 7
"""Of the statistics in run.json, where not all fit."""


def _blocks(one: OneRun) -> Iterator[Block]:
    total = sum(map(_count, _cells(one.run)))
    whole = _files(one.run, f"all {total:,} raw samples") if total <= MOST_SAMPLES else ()
    if whole and _bytes(whole) <= MOST_BYTES:
        table = CELLS.csv(one).encode()
        cells = Attachment("cells.csv", "a row for each cell", table)
        fits = _bytes((*whole, cells)) <= MOST_BYTES
        yield Attachments((cells, *whole) if fits else whole)
        return
    held, files = 0, whole
    for most in _FEWER:
        run = _thinned(one.run, most)
        held = sum(map(_count, _cells(run)))
        if held <= MOST_SAMPLES:
            files = _files(run, f"{held:,} of {total:,} raw samples")
            if _bytes(files) <= MOST_BYTES:
                break
    yield Attachments(files)
    text = f"A page has no room for all samples, nor for more than {_DIGITS} digits of statistics"
    yield Prose(
        [plain(f"{text}: the run's folder has all, {one.folder or 'if one was kept'}", "dim")]
    )


def _files(run: Run, what: str) -> tuple[Attachment, Attachment]:
    document = escaped(msgspec.json.encode(document_of(run), enc_hook=encode_hook))
    return (
        Attachment(SAMPLES_FILE, what, samples_csv(run).encode()),
        Attachment(RUN_FILE, f"everything that is known of the run, with {what}", document),
    )


def _bytes(files: Sequence[Attachment]) -> int:
    return sum(len(file.packed) for file in files)


def _cells(run: Run) -> Iterator[CellResult]:
    for result in run.results:
        yield from result.cells


def _count(cell: CellResult) -> int:
    own = sum(len(part.samples) for part in cell.parts)
    return len(cell.samples) + own + sum(len(one.seconds) for one in cell.iterations)


def _thinned(run: Run, most: int) -> Run:
    """The run, cells with more samples without them, and statistics in fewer digits."""

    def cell(one: CellResult) -> CellResult:
        keeps = _count(one) <= most
        parts = tuple(
            replace(part, samples=part.samples if keeps else (), summary=_rounded(part.summary))
            for part in one.parts
        )
        own = one.iterations if keeps else tuple(replace(i, seconds=()) for i in one.iterations)
        samples = one.samples if keeps else ()
        summary = _rounded(one.summary)
        return replace(one, samples=samples, parts=parts, iterations=own, summary=summary)

    def result(one: Result) -> Result:
        return replace(one, cells=tuple(map(cell, one.cells)))

    return replace(run, results=tuple(map(result, run.results)))


def _rounded(summary: Summary | None) -> Summary | None:
    if summary is None:
        return None
    return Summary(*(_digits(getattr(summary, name)) for name in summary.__struct_fields__))


def _digits(value: Any) -> Any:
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    return tuple(map(_digits, value)) if isinstance(value, tuple) else value


SECTION = Section("data", "Raw data", 95, of_run=_blocks)
