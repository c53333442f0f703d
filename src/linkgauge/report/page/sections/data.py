"""The raw data as files inside the page, as far as a page may hold them."""

from __future__ import annotations

from collections.abc import Iterator
from gzip import compress

from msgspec.structs import replace

from linkgauge.model.result import CellResult, Result, Run
from linkgauge.report.files import SAMPLES_FILE, json_document, samples_csv
from linkgauge.report.page.blocks import Attachment, Attachments, Block, Prose, plain
from linkgauge.report.rows import JudgedRun
from linkgauge.report.summary_text import summary_csv

from . import OneRun, Section

MOST_BYTES = 600_000
"""Of all files, compressed."""
MOST_SAMPLES = 120_000
"""More never fit."""
_FEWER = (256, 32, 8, 0)
"""Samples of one cell: cells with more come without, where not all fit."""


def _blocks(one: OneRun) -> Iterator[Block]:
    cells = summary_csv(JudgedRun(one.run, one.outcome)).encode()
    left = MOST_BYTES - len(compress(cells, 6))
    total = sum(map(_count, _cells(one.run)))
    for most in (total, *_FEWER):
        run = _thinned(one.run, most)
        held = sum(map(_count, _cells(run)))
        if held > MOST_SAMPLES:
            continue
        document, samples = json_document(run).encode(), samples_csv(run).encode()
        if most == 0 or len(compress(document, 6)) + len(compress(samples, 6)) <= left:
            break
    what = "every raw sample" if held == total else f"{held:,} of {total:,} raw samples"
    yield Attachments((
        Attachment("cells.csv", "a row for each cell", cells),
        Attachment(SAMPLES_FILE, what, samples),
        Attachment("run.json", f"everything else that is known of the run, and {what}", document),
    ))  # fmt: skip
    if held < total:
        where = f" of {one.folder}" if one.folder is not None else ", which the run's folder has"
        text = f"A page does not hold all samples: cells with more than {most} are in {SAMPLES_FILE}"
        yield Prose([plain(f"{text}{where}", "dim")])


def _cells(run: Run) -> Iterator[CellResult]:
    for result in run.results:
        yield from result.cells


def _count(cell: CellResult) -> int:
    own = sum(len(part.samples) for part in cell.parts)
    return len(cell.samples) + own + sum(len(one.seconds) for one in cell.iterations)


def _thinned(run: Run, most: int) -> Run:
    """The run, cells with more samples without them."""

    def cell(one: CellResult) -> CellResult:
        if _count(one) <= most:
            return one
        parts = tuple(replace(part, samples=()) for part in one.parts)
        iterations = tuple(replace(own, seconds=()) for own in one.iterations)
        return replace(one, samples=(), parts=parts, iterations=iterations)

    def result(one: Result) -> Result:
        return replace(one, cells=tuple(map(cell, one.cells)))

    return replace(run, results=tuple(map(result, run.results)))


SECTION = Section("data", "Raw data", 95, of_run=_blocks)
