"""ping_pong of the NVLink and RISC-V test suite: how long single small copies take.

Source: its end-to-end script, `ping_pong --iter 10000 --size 64 --out FILE.csv`, and the outline of
its loop: a copy to the peer, waited for, each recorded. The page does not show the file; one of our
rows is one iteration of latency_copy_pingpong, a copy there and one back, of which half counts.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence

from linkgauge.cli.tool import UsageError, Where, opened_devices
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Device
from linkgauge.model.result import CellResult
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import known_percentile
from linkgauge.model.units import format_size
from linkgauge.report.files import SIMULATED

from .copy_cells import CopyPath, Meter
from .nvlink_suite import opened_table, parse

TOOL = "ping_pong"
HELP = """\
Usage: ping_pong [--size SIZE] [--iter COUNT] [--out FILE.csv]

  --size SIZE     Bytes of a copy, such as 8, 64 (the default) or 4K
  --iter COUNT    Copies there and back (default: 10000)
  --out FILE.csv  Where the table goes; without it, or as -, to stdout

Between the first two devices, or the host and the only one."""
COLUMNS = ("source", "destination", "bytes", "iteration", "seconds", "latency_us", "simulated")
PERCENTILES = (0.50, 0.95, 0.99)


def run(arguments: Sequence[str], where: Where) -> int:
    """Measures as this command line asks, writes the table and prints percentiles."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    try:
        asked = parse(arguments, size="64", iterations=10_000)
    except UsageError as error:
        # The page shows no exit codes of the tool's own: they are linkgauge's.
        raise InputError(f"{error}\n{HELP.splitlines()[0]}") from error
    settings = Settings(sizes=(asked.size,), samples=asked.iterations)
    # The table first: it may not be writable.
    with opened_table(asked.out) as table, opened_devices(where, settings) as context:
        path = between(context.devices)
        gauge = Meter(context, TOOL)
        (cell,) = gauge.measure([[path.transfer()]], "copy-ping-pong")
        mark = SIMULATED if where.simulation else ""
        written = table.write(COLUMNS, _rows(cell, asked.size, mark))
        said = sys.stderr if asked.out is None else sys.stdout
        print("\n".join(_summary(path, cell, asked.size, mark)), file=said)
        if written is not None:
            print(f"wrote {written}", flush=True)
    return gauge.exit_code


def between(devices: Sequence[Device]) -> CopyPath:
    """From the first device to the second, or from the host to the only one."""
    return CopyPath(devices[0], devices[1]) if len(devices) > 1 else CopyPath(None, devices[0])


def _rows(cell: CellResult, size: int, mark: str) -> Iterator[tuple[object, ...]]:
    copy = cell.transfers[0]
    for number, seconds in enumerate(cell.samples):
        figures = f"{seconds:.10f}", f"{seconds * 1e6:.4f}"
        yield str(copy.source), str(copy.destination), size, number, *figures, mark


def _summary(path: CopyPath, cell: CellResult, size: int, mark: str) -> Iterator[str]:
    """Between what, how much, and the percentiles that the samples tell."""
    copy = cell.transfers[0]
    ends = f"{copy.source} and {copy.destination}{'' if path.source else ' (the only device)'}"
    how = f"{format_size(size)}, {len(cell.samples)} copies there and back, one way in us"
    yield f"{mark} {ends}, {how}".lstrip()
    ordered = sorted(cell.samples)
    for fraction in PERCENTILES:
        found = known_percentile(ordered, fraction)
        yield f"p{100 * fraction:g} {'N/A' if found is None else format(found * 1e6, '.3f')}"
