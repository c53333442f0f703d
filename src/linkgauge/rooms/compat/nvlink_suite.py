"""Emulates the tools of the NVLink and RISC-V test suite, with their options and table format."""

from __future__ import annotations

import csv
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path as File

from linkgauge.cli.tool import Where, helpful, show
from linkgauge.cli.tool_options import Parser, ToolOption, help_lines, whole
from linkgauge.model.documents.result import CellResult
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.hardware.machine import Device
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import known_percentile
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import format_size, parse_size
from linkgauge.report.csv_text import SIMULATED

from .copy_cells import CopyPath, metered, shown


def options_of(size: str, copies: str) -> tuple[ToolOption, ...]:
    return (
        ToolOption("--size SIZE", f"Bytes of a copy, such as {size}", parse_size),
        ToolOption("--iter COUNT", copies, whole, least=1, most=1_000_000),
        ToolOption("--out FILE.csv", "Where the table goes; without it, or as -, to stdout", _file),
    )


def _given(
    parser: Parser, arguments: Sequence[str], size: int, iterations: int
) -> tuple[int, int, str | None]:
    given = {"size": size, "iter": iterations, "out": None} | parser.given(arguments)
    return given["size"], given["iter"], given["out"]


def _file(written: str) -> str | None:
    if not written:
        raise ValueError("give the name of a file")
    return None if written == "-" else written


def _help(tool: str, options: Sequence[ToolOption]) -> str:
    written = " ".join(f"[{option.written}]" for option in options)
    return f"Usage: {tool} {written}\n\n{help_lines(options, 16)}"


def _check_writable(out: str | None) -> None:
    """Raises InputError if the file cannot be written. Does not change its content."""
    file = File(out or os.devnull)
    is_new = not file.exists()
    if file.is_fifo():  # whose reader would take this for all
        return
    try:
        file.open("a").close()
    except OSError as error:
        raise InputError(f"cannot write {file}: {error.strerror}") from error
    if is_new:
        file.unlink()


def _write_table(
    out: str | None, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> Sequence[str]:
    """Writes CSV to the file `out` (None: stdout). Without rows, does not change the file."""
    rows = list(rows)
    if out is not None and not rows:
        return ()
    try:
        with File(out).open("w", newline="") if out else nullcontext(sys.stdout) as stream:
            csv.writer(stream, lineterminator="\n").writerows((columns, *rows))
            stream.flush()
    except OSError as error:
        raise ResultsError(f"cannot write the table: {error.strerror}") from error
    return () if out is None else (f"wrote {out}",)


# bandwidth_test of the NVLink and RISC-V test suite: one-way copies between host and devices.


BANDWIDTH_OPTIONS = options_of("256M (the default)", "Copies on each path (default: 10)")
BANDWIDTH_COLUMNS = (
    "direction", "source", "destination", "bytes", "iteration", "seconds", "gb_per_s",
)  # fmt: skip


@helpful(_help("bandwidth_test", BANDWIDTH_OPTIONS))
def run_bandwidth_test(arguments: Sequence[str], where: Where) -> int:
    size, iterations, out = _given(Parser(BANDWIDTH_OPTIONS), arguments, 256 << 20, 10)
    settings = Settings(sizes=(size,), samples=iterations, loops=1)
    _check_writable(out)
    with metered(where, settings) as meter:
        paths = tuple(_paths(meter.context.devices))
        cells = meter.measure([[path.transfer()] for path in paths])
        rows = _bandwidth_rows(paths, cells, size)
        written = _write_table(out, BANDWIDTH_COLUMNS, rows)
        if out is not None:
            show(_bandwidth_summary(cells, size, iterations), written)
    return meter.exit_code


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
        median = None if cell.summary is None else cell.summary.median / 1e9
        yield f"{shown(median, '.2f'):>10}  {cell.transfers[0]}"


# ping_pong of the NVLink and RISC-V test suite: how long single small copies take.


LATENCY_OPTIONS = options_of("8, 64 (the default) or 4K", "Copies there and back (default: 10000)")
LATENCY_COLUMNS = (
    "source", "destination", "bytes", "iteration", "seconds", "latency_us", "simulated",
)  # fmt: skip
LATENCY_HELP = (
    f"{_help('ping_pong', LATENCY_OPTIONS)}\n\n"
    "Between the first two devices, or the host and the only one."
)
PERCENTILES = (0.50, 0.95, 0.99)


@helpful(LATENCY_HELP)
def run_ping_pong(arguments: Sequence[str], where: Where) -> int:
    # The page shows no exit codes of the tool's own: they are linkgauge's.
    parser = Parser(LATENCY_OPTIONS, InputError.exit_code)
    size, iterations, out = _given(parser, arguments, 64, 10_000)
    settings = Settings(sizes=(size,), samples=iterations)
    _check_writable(out)
    with metered(where, settings) as meter:
        path = between(meter.context.devices)
        (cell,) = meter.measure([[path.transfer()]], "copy-ping-pong")
        mark = SIMULATED if where.simulation else ""
        written = _write_table(out, LATENCY_COLUMNS, _latency_rows(cell, size, mark))
        said = sys.stderr if out is None else sys.stdout
        print(*_latency_summary(path, cell, size, mark), *written, sep="\n", file=said)
    return meter.exit_code


def between(devices: Sequence[Device]) -> CopyPath:
    return CopyPath(devices[0], devices[1]) if len(devices) > 1 else CopyPath(None, devices[0])


def _latency_rows(cell: CellResult, size: int, mark: str) -> Iterator[tuple[object, ...]]:
    copy = cell.transfers[0]
    for number, seconds in enumerate(cell.samples):
        figures = f"{seconds:.10f}", f"{seconds * 1e6:.4f}"
        yield str(copy.source), str(copy.destination), size, number, *figures, mark


def _latency_summary(path: CopyPath, cell: CellResult, size: int, mark: str) -> Iterator[str]:
    copy = cell.transfers[0]
    ends = f"{copy.source} and {copy.destination}{'' if path.source else ' (the only device)'}"
    how = f"{format_size(size)}, {len(cell.samples)} copies there and back, one way in us"
    yield f"{mark} {ends}, {how}".lstrip()
    ordered = sorted(cell.samples)
    for fraction in PERCENTILES:
        found = known_percentile(ordered, fraction)
        yield f"p{100 * fraction:g} {shown(None if found is None else found * 1e6, '.3f')}"
