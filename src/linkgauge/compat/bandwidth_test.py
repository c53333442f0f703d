"""bandwidth_test of the NVLink and RISC-V test suite: one-way copies between host and devices.

Source: its end-to-end script, `bandwidth_test --size 256M --iter 10 --out FILE.csv`. The script
does not show the file; one of our rows is one iteration on one path, in the tool's order of
comparison: host to device, device to host, device to device.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path as File
from typing import TextIO

from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.machine import Device
from linkgauge.model.result import CellResult, Settings
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import format_size

from .base import Parser, UsageError, Where, hinting, opened_devices, size_of, whole
from .copy_cells import CopyPath, Meter

TOOL = "bandwidth_test"
HELP = """\
Usage: bandwidth_test [--size SIZE] [--iter COUNT] [--out FILE.csv]

  --size SIZE     Bytes of a copy, such as 256M (the default)
  --iter COUNT    Copies on each path (default: 10)
  --out FILE.csv  Where the table goes; without it, or as -, to stdout"""
MOST = 1_000_000
"""Iterations."""
COLUMNS = ("direction", "source", "destination", "bytes", "iteration", "seconds", "gb_per_s")


@hinting(HELP.splitlines()[0])
def run(arguments: Sequence[str], where: Where) -> int:
    """Measures as this command line asks and writes the table."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    size, iterations, out = parse(arguments)
    settings = Settings(sizes=(size,), samples=iterations, loops=1)
    with ExitStack() as stack:
        # Opened before measuring: it may not be writable.
        table = sys.stdout if out is None else stack.enter_context(_opened(File(out)))
        context = stack.enter_context(opened_devices(where, settings))
        paths = tuple(_paths(context.devices))
        gauge = Meter(context, TOOL)
        cells = gauge.measure([[path.transfer()] for path in paths])
        if out is not None and File(out).is_file():
            table.truncate(0)
        _write(table, paths, cells, size)
        if out is not None:
            print("\n".join(_summary(cells, size, iterations)))
            print(f"wrote {out}", flush=True)
    return gauge.exit_code


def parse(arguments: Sequence[str]) -> tuple[int, int, str | None]:
    """Bytes, iterations and the file. Raises UsageError."""
    parser = Parser()
    parser.add_argument("--size", default="256M")
    parser.add_argument("--iter", default=10, type=whole)
    parser.add_argument("--out", default="-")
    given = parser.parse_args(list(arguments))
    if not 1 <= given.iter <= MOST:
        raise UsageError(f"--iter: give 1 to {MOST}")
    if not given.out:
        raise UsageError("--out: give the name of a file")
    return size_of("--size", given.size), given.iter, None if given.out == "-" else given.out


@contextmanager
def _opened(file: File) -> Iterator[TextIO]:
    """A file to write to. Its content stays until there is something to write; a new file is
    removed if nothing is written. Raises InputError."""
    is_new = not file.exists()
    try:
        table = file.open("a", newline="")
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
    try:
        with table:
            yield table
    finally:
        if is_new and file.is_file() and not file.stat().st_size:
            file.unlink()


def _paths(devices: Sequence[Device]) -> Iterator[CopyPath]:
    yield from (CopyPath(None, device) for device in devices)
    yield from (CopyPath(device, None) for device in devices)
    yield from (CopyPath(one, other) for one in devices for other in devices if one != other)


def _write(
    table: TextIO, paths: Sequence[CopyPath], cells: Sequence[CellResult], size: int
) -> None:
    """Raises ResultsError if the disk is full."""
    try:
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(COLUMNS)
        for path, cell in zip(paths, cells, strict=True):
            copy: Transfer = path.transfer()
            ends = (path.tag, str(copy.source), str(copy.destination), size)
            for number, rate in enumerate(cell.samples):
                writer.writerow((*ends, number, f"{size / rate:.9f}", f"{rate / 1e9:.3f}"))
        table.flush()
    except OSError as error:
        raise ResultsError(f"cannot write the table: {error.strerror}") from error


def _summary(cells: Sequence[CellResult], size: int, iterations: int) -> Iterator[str]:
    yield f"{format_size(size)}, {iterations} iterations, median in GB/s"
    for cell in cells:
        figure = "N/A" if cell.summary is None else f"{cell.summary.median / 1e9:.2f}"
        yield f"{figure:>10}  {cell.transfers[0]}"
