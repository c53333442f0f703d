"""What the tools of the NVLink and RISC-V test suite share: their options, and the table that they
write."""

from __future__ import annotations

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path as File
from typing import TextIO

import msgspec

from linkgauge.cli.tool import Parser, UsageError, Where, hinting, opened_devices, size_of, whole
from linkgauge.model.documents.result import CellResult
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import known_percentile
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import format_size
from linkgauge.report.files import SIMULATED

from .copy_cells import CopyPath, Meter

MOST = 1_000_000
"""Iterations."""


class NvlinkSuiteOptions(msgspec.Struct, frozen=True):
    """Bytes of a copy, how many copies, and the table's file; null is stdout."""

    size: int
    iterations: int
    out: str | None


def parse(arguments: Sequence[str], *, size: str, iterations: int) -> NvlinkSuiteOptions:
    """Reads options; `size` and `iterations` are the defaults. Raises UsageError."""
    parser = Parser()
    parser.add_argument("--size", default=size)
    parser.add_argument("--iter", default=iterations, type=whole)
    parser.add_argument("--out", default="-")
    given = parser.parse_args(list(arguments))
    if not 1 <= given.iter <= MOST:
        raise UsageError(f"--iter: give 1 to {MOST}")
    if not given.out:
        raise UsageError("--out: give the name of a file")
    out = None if given.out == "-" else given.out
    return NvlinkSuiteOptions(size_of("--size", given.size), given.iter, out)


class TableOutput:
    """Where a table goes; to a `file` in place of what it held before."""

    def __init__(self, stream: TextIO, file: File | None) -> None:
        self._stream = stream
        self._file = file

    def write(self, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str | None:
        """The name of the file that was written; a file is left as it is if there are no rows.
        Raises ResultsError if it cannot be written."""
        rows = list(rows)
        if self._file is not None and not rows:
            return None
        with _writing():
            if self._file is not None and self._file.is_file():
                self._stream.truncate(0)
            writer = csv.writer(self._stream, lineterminator="\n")
            writer.writerow(columns)
            writer.writerows(rows)
            self._stream.flush()
        return None if self._file is None else str(self._file)


@contextmanager
def opened_table(out: str | None) -> Iterator[TableOutput]:
    """A table in the file `out`, else on stdout. Opened before measuring, since it may not be
    writable: what the file holds stays until there is something to write, and a new one is removed
    if nothing is. Raises InputError."""
    if out is None:
        yield TableOutput(sys.stdout, None)
        return
    file = File(out)
    is_new = not file.exists()
    try:
        stream = file.open("a", newline="")
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
    try:
        yield TableOutput(stream, file)
        with _writing():
            stream.close()
    finally:
        with suppress(OSError):  # that of write() says more
            stream.close()
        if is_new and file.is_file() and not file.stat().st_size:
            file.unlink()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ResultsError(f"cannot write the table: {error.strerror}") from error


# bandwidth_test of the NVLink and RISC-V test suite: one-way copies between host and devices.


BANDWIDTH_TEST = "bandwidth_test"
BANDWIDTH_HELP = """\
Usage: bandwidth_test [--size SIZE] [--iter COUNT] [--out FILE.csv]

  --size SIZE     Bytes of a copy, such as 256M (the default)
  --iter COUNT    Copies on each path (default: 10)
  --out FILE.csv  Where the table goes; without it, or as -, to stdout"""
BANDWIDTH_COLUMNS = (
    "direction",
    "source",
    "destination",
    "bytes",
    "iteration",
    "seconds",
    "gb_per_s",
)


@hinting(BANDWIDTH_HELP.splitlines()[0])
def run_bandwidth_test(arguments: Sequence[str], where: Where) -> int:
    """Measures as this command line asks and writes the table."""
    if {"-h", "--help"} & set(arguments):
        print(BANDWIDTH_HELP)
        return 0
    asked = parse(arguments, size="256M", iterations=10)
    settings = Settings(sizes=(asked.size,), samples=asked.iterations, loops=1)
    # The table first: it may not be writable.
    with opened_table(asked.out) as table, opened_devices(where, settings) as context:
        paths = tuple(_paths(context.devices))
        gauge = Meter(context, BANDWIDTH_TEST)
        cells = gauge.measure([[path.transfer()] for path in paths])
        written = table.write(BANDWIDTH_COLUMNS, _bandwidth_rows(paths, cells, asked.size))
        if asked.out is not None:
            print("\n".join(_bandwidth_summary(cells, asked.size, asked.iterations)))
        if written is not None:
            print(f"wrote {written}", flush=True)
    return gauge.exit_code


def _paths(devices: Sequence[Device]) -> Iterator[CopyPath]:
    yield from (CopyPath(None, device) for device in devices)
    yield from (CopyPath(device, None) for device in devices)
    yield from (CopyPath(one, other) for one in devices for other in devices if one != other)


def _bandwidth_rows(
    paths: Sequence[CopyPath], cells: Sequence[CellResult], size: int
) -> Iterator[tuple[object, ...]]:
    for path, cell in zip(paths, cells, strict=True):
        copy: Transfer = path.transfer()
        ends = (path.tag, str(copy.source), str(copy.destination), size)
        for number, rate in enumerate(cell.samples):
            yield (*ends, number, f"{size / rate:.9f}", f"{rate / 1e9:.3f}")


def _bandwidth_summary(cells: Sequence[CellResult], size: int, iterations: int) -> Iterator[str]:
    yield f"{format_size(size)}, {iterations} iterations, median in GB/s"
    for cell in cells:
        figure = "N/A" if cell.summary is None else f"{cell.summary.median / 1e9:.2f}"
        yield f"{figure:>10}  {cell.transfers[0]}"


# ping_pong of the NVLink and RISC-V test suite: how long single small copies take.


PING_PONG = "ping_pong"
LATENCY_HELP = """\
Usage: ping_pong [--size SIZE] [--iter COUNT] [--out FILE.csv]

  --size SIZE     Bytes of a copy, such as 8, 64 (the default) or 4K
  --iter COUNT    Copies there and back (default: 10000)
  --out FILE.csv  Where the table goes; without it, or as -, to stdout

Between the first two devices, or the host and the only one."""
LATENCY_COLUMNS = (
    "source",
    "destination",
    "bytes",
    "iteration",
    "seconds",
    "latency_us",
    "simulated",
)
PERCENTILES = (0.50, 0.95, 0.99)


def run_ping_pong(arguments: Sequence[str], where: Where) -> int:
    """Measures as this command line asks, writes the table and prints percentiles."""
    if {"-h", "--help"} & set(arguments):
        print(LATENCY_HELP)
        return 0
    try:
        asked = parse(arguments, size="64", iterations=10_000)
    except UsageError as error:
        # The page shows no exit codes of the tool's own: they are linkgauge's.
        raise InputError(f"{error}\n{LATENCY_HELP.splitlines()[0]}") from error
    settings = Settings(sizes=(asked.size,), samples=asked.iterations)
    # The table first: it may not be writable.
    with opened_table(asked.out) as table, opened_devices(where, settings) as context:
        path = between(context.devices)
        gauge = Meter(context, PING_PONG)
        (cell,) = gauge.measure([[path.transfer()]], "copy-ping-pong")
        mark = SIMULATED if where.simulation else ""
        written = table.write(LATENCY_COLUMNS, _latency_rows(cell, asked.size, mark))
        said = sys.stderr if asked.out is None else sys.stdout
        print("\n".join(_latency_summary(path, cell, asked.size, mark)), file=said)
        if written is not None:
            print(f"wrote {written}", flush=True)
    return gauge.exit_code


def between(devices: Sequence[Device]) -> CopyPath:
    """From the first device to the second, or from the host to the only one."""
    return CopyPath(devices[0], devices[1]) if len(devices) > 1 else CopyPath(None, devices[0])


def _latency_rows(cell: CellResult, size: int, mark: str) -> Iterator[tuple[object, ...]]:
    copy = cell.transfers[0]
    for number, seconds in enumerate(cell.samples):
        figures = f"{seconds:.10f}", f"{seconds * 1e6:.4f}"
        yield str(copy.source), str(copy.destination), size, number, *figures, mark


def _latency_summary(path: CopyPath, cell: CellResult, size: int, mark: str) -> Iterator[str]:
    """Between what, how much, and the percentiles that the samples tell."""
    copy = cell.transfers[0]
    ends = f"{copy.source} and {copy.destination}{'' if path.source else ' (the only device)'}"
    how = f"{format_size(size)}, {len(cell.samples)} copies there and back, one way in us"
    yield f"{mark} {ends}, {how}".lstrip()
    ordered = sorted(cell.samples)
    for fraction in PERCENTILES:
        found = known_percentile(ordered, fraction)
        yield f"p{100 * fraction:g} {'N/A' if found is None else format(found * 1e6, '.3f')}"
