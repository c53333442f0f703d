"""bandwidth_test of the NVLink and RISC-V test suite: one-way copies between host and devices.

Source: its end-to-end script, `bandwidth_test --size 256M --iter 10 --out FILE.csv`. The script
does not show the file; one of our rows is one iteration on one path, in the tool's order of
comparison: host to device, device to host, device to device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.cli.tool import Where, hinting, opened_devices
from linkgauge.model.machine import Device
from linkgauge.model.result import CellResult
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import format_size

from .copy_cells import CopyPath, Meter
from .nvlink_suite import opened_table, parse

TOOL = "bandwidth_test"
HELP = """\
Usage: bandwidth_test [--size SIZE] [--iter COUNT] [--out FILE.csv]

  --size SIZE     Bytes of a copy, such as 256M (the default)
  --iter COUNT    Copies on each path (default: 10)
  --out FILE.csv  Where the table goes; without it, or as -, to stdout"""
COLUMNS = ("direction", "source", "destination", "bytes", "iteration", "seconds", "gb_per_s")


@hinting(HELP.splitlines()[0])
def run(arguments: Sequence[str], where: Where) -> int:
    """Measures as this command line asks and writes the table."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    asked = parse(arguments, size="256M", iterations=10)
    settings = Settings(sizes=(asked.size,), samples=asked.iterations, loops=1)
    # The table first: it may not be writable.
    with opened_table(asked.out) as table, opened_devices(where, settings) as context:
        paths = tuple(_paths(context.devices))
        gauge = Meter(context, TOOL)
        cells = gauge.measure([[path.transfer()] for path in paths])
        written = table.write(COLUMNS, _rows(paths, cells, asked.size))
        if asked.out is not None:
            print("\n".join(_summary(cells, asked.size, asked.iterations)))
        if written is not None:
            print(f"wrote {written}", flush=True)
    return gauge.exit_code


def _paths(devices: Sequence[Device]) -> Iterator[CopyPath]:
    yield from (CopyPath(None, device) for device in devices)
    yield from (CopyPath(device, None) for device in devices)
    yield from (CopyPath(one, other) for one in devices for other in devices if one != other)


def _rows(
    paths: Sequence[CopyPath], cells: Sequence[CellResult], size: int
) -> Iterator[tuple[object, ...]]:
    for path, cell in zip(paths, cells, strict=True):
        copy: Transfer = path.transfer()
        ends = (path.tag, str(copy.source), str(copy.destination), size)
        for number, rate in enumerate(cell.samples):
            yield (*ends, number, f"{size / rate:.9f}", f"{rate / 1e9:.3f}")


def _summary(cells: Sequence[CellResult], size: int, iterations: int) -> Iterator[str]:
    yield f"{format_size(size)}, {iterations} iterations, median in GB/s"
    for cell in cells:
        figure = "N/A" if cell.summary is None else f"{cell.summary.median / 1e9:.2f}"
        yield f"{figure:>10}  {cell.transfers[0]}"
