"""Shows the machine and settings of a run, and attaches the run's raw data to a page."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from operator import attrgetter
from typing import Any
from zlib import compressobj

import msgspec
from msgspec.structs import astuple, replace

from linkgauge.engine.kept.journal import RUN_FILE
from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.notation import encode_hook
from linkgauge.model.printable import escaped
from linkgauge.model.stats.summary import Summary
from linkgauge.model.units import format_size
from linkgauge.report.blocks import Attachment, Attachments, Block, Prose, cut, plain
from linkgauge.report.csv_text import csv_text
from linkgauge.report.files import SAMPLES_FILE, document_of, sample_lines, sample_pieces
from linkgauge.report.forms import cells_of
from linkgauge.report.results import table
from linkgauge.report.tables import CELLS, result_rows

from . import OneRun, Section
from .machine import detailed_machine_blocks

MOST_BYTES = 900_000
"""The most bytes of attached data, compressed. As text, they take a third more."""
CELLS_FILE = "cells.csv"
MOST_SAMPLES = 120_000
MOST_CELLS = 12_000
"""With more cells and devices than this, a page has neither run.json nor samples."""
_FEWER = (256, 32, 0)
"""Limits of samples of a cell, tried in turn until all data fit. A cell with more gets none."""
_DIGITS = 7
_FEW_DIGITS = 5
_NAMES = ("benchmark", "backend", "size", "row", "column", "status", "verdict", "unit")
_FIGURES = ("figure", "low", "high", "expected")
_LEVEL = 4
"""The usual 6 takes 1.6 times as long, for 7 to 10 % fewer bytes."""


def attachment(name: str, says: str, content: Iterable[bytes]) -> Attachment:
    """Returns a file to attach, packed by gzip piece by piece. `says` describes it to people."""
    size, packed, packer = 0, bytearray(), compressobj(_LEVEL, wbits=31)
    for piece in content:
        size += len(piece)
        packed += packer.compress(piece)
    return Attachment(name, says, size, bytes(packed + packer.flush()))


Files = tuple[Attachment, ...]


def _blocks(one: OneRun) -> Iterator[Block]:
    if not one.is_small:  # else they get what room is left
        yield from attached(one, MOST_BYTES)


def attached(one: OneRun, most: int) -> Iterator[Block]:
    files, left_out = next(each for each in _choices(one, most) if _bytes(each[0]) <= most)
    if files:
        yield Attachments(files)
    if left_out:
        has_all = f"the run's folder has all, {one.folder or 'if one was kept'}"
        yield Prose([plain(f"A page has no room for {left_out}: {has_all}", "dim")])


def _choices(one: OneRun, most: int) -> Iterator[tuple[Files, str]]:
    each = [cell for _, cell in cells_of(one.run.results)]
    cells, total = len(each), sum(map(_count, each))
    if cells + len(one.run.machine.all_devices) <= MOST_CELLS:
        if total <= MOST_SAMPLES:
            whole = _files(one.run, f"all {total:,} raw samples", sample_pieces(one))
            table = attachment(CELLS_FILE, "a row for each cell", (CELLS.csv(one).encode(),))
            yield (table, *whole), ""
            yield whole, ""
        short = one.run.with_cells(partial(_short, rounded=cache(_rounded)))
        less = f"all samples, nor for more than {_DIGITS} digits of statistics"
        for samples in _FEWER:
            run = short.with_cells(partial(_thinned, most=samples))
            held = sum(_count(cell) for _, cell in cells_of(run.results))
            if held <= MOST_SAMPLES:
                what = f"{held:,} of {total:,} raw samples"
                yield _files(run, what, sample_lines(run)), less
    left_out = f"{RUN_FILE} and {SAMPLES_FILE} of {cells:,} cells and {total:,} samples"
    if sum(cell.headline is not None for cell in each) <= MOST_SAMPLES:
        says = f"each cell's figure, interval and expected figure, in {_FEW_DIGITS} digits"
        yield (attachment(CELLS_FILE, says, _figures(one.run)),), left_out
    yield (), f"{CELLS_FILE}, {left_out}"


def _figures(run: Run) -> Iterator[bytes]:
    names, figures = attrgetter(*_NAMES), attrgetter(*_FIGURES)
    few = partial(_digits, form=f".{_FEW_DIGITS}g")
    yield csv_text([(*_NAMES, *_FIGURES)]).encode()
    for result in run.results:
        rows = (row for row in result_rows(run, result) if row.figure is not None)
        yield csv_text((*names(row), *map(few, figures(row))) for row in rows).encode()


def _files(run: Run, what: str, samples: Iterator[bytes]) -> Files:
    document = escaped(msgspec.json.encode(document_of(run), enc_hook=encode_hook))
    return (
        attachment(SAMPLES_FILE, what, samples),
        attachment(RUN_FILE, f"everything that is known of the run, with {what}", (document,)),
    )


def _bytes(files: Sequence[Attachment]) -> int:
    return sum(len(file.packed) for file in files)


def _count(cell: CellResult) -> int:
    return len(cell.samples) + sum(len(one.samples) for one in cell.series)


def _short(cell: CellResult, rounded: Callable[[Summary | None], Summary | None]) -> CellResult:
    short = cell.with_series(lambda one: replace(one, summary=rounded(one.summary)))
    return replace(short, summary=rounded(cell.summary))


def _thinned(cell: CellResult, most: int) -> CellResult:
    if _count(cell) <= most:
        return cell
    return replace(cell.with_series(lambda one: replace(one, samples=())), samples=())


def _rounded(summary: Summary | None) -> Summary | None:
    return summary and Summary(*map(_digits, astuple(summary)))


def _digits(value: Any, form: str = f".{_DIGITS}g") -> Any:
    if isinstance(value, float):
        return float(format(value, form))
    return tuple(map(_digits, value)) if isinstance(value, tuple) else value


SECTION = Section("data", "Raw data", 95, of_run=_blocks)


MOST_VALUE = 2000


def _bill(one: OneRun) -> Iterator[Block]:
    yield from detailed_machine_blocks(one.run.machine)
    facts = ((name, cut(text, MOST_VALUE)) for name, text in _facts(one.run).items() if text)
    yield table("How it was measured", ("", ""), facts)


def _facts(run: Run) -> dict[str, str | None]:
    settings, machine = run.settings, run.machine
    return {
        "linkgauge": machine.linkgauge, "commit": machine.commit, "Python": machine.python,
        "command": shlex.join(run.command), "run": run.id, "label": run.label,
        "began": run.started, "resumed": ", ".join(run.resumed),
        "ended": run.finished or "interrupted",
        "sizes": ", ".join(map(format_size, settings.sizes)),
        "precision": f"±{settings.precision:.2%}", "verified": "yes" if settings.verify else "no",
    }  # fmt: skip


BILL = Section("bill", "Bill of materials", 90, of_run=_bill)
