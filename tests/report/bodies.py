"""Runs whose bodies are shown: of one device, of eight and of 72, of several sizes, with failures,
and simulated."""

from msgspec.structs import replace

from fakes import device, machine
from linkgauge.model.notation import parse_transfer
from linkgauge.model.result import CellResult, Expected, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import unit_of
from report.samples import RUN

MI = 1 << 20
STEPS = (-40, -12, -9, -3, -2, 0, 0, 0, 1, 2, 3, 9, 14)


def cell(row, column, value, unit="B/s", transfer="host:0 -> x:0 by ce", **more):
    """A cell whose samples scatter around a figure, as it is shown, by up to 4 %."""
    figure = value * unit_of(unit).scale
    samples = tuple(figure * (1 + step / 1000) for step in STEPS)
    better = unit_of(unit).better
    report = Report.LATENCY if better == "lower" else Report.FIRST
    return CellResult(
        row, column, (parse_transfer(transfer),), more.pop("report", report),
        more.pop("status", "pass"), samples=samples, summary=summarize(samples, better), **more,
    )  # fmt: skip


def failed(row, column, status, reason):
    transfers = (parse_transfer("x:0 -> x:1 by ce"),)
    return CellResult(row, column, transfers, Report.FIRST, status, reason)


def judged(cell, expected, verdict, because="PCIe 32 GT/s x16 = 63.02 GB/s, packets: 91.4%"):
    return replace(cell, expected=Expected(achievable=expected * 1e9, because=because),
                   verdict=verdict)  # fmt: skip


def result(name, cells, unit="B/s", size=64 * MI, title="memcpy CE host(row) -> device(column)",
           **more):  # fmt: skip
    return Result(
        benchmark=name, title=title, backend=more.pop("backend", "cuda"), size=size, unit=unit,
        better=unit_of(unit).better, status=more.pop("status", "pass"), cells=tuple(cells), **more,
    )  # fmt: skip


def run(*results, devices=2, **more):
    found = machine([device(number, "cuda") for number in range(devices)])
    return replace(RUN, machine=found, results=results, **more)


def matrix(devices, rate=lambda row, column: 390 + (7 * row + 3 * column) % 10, **more):
    """A matrix of pairs, each as fast as `rate` says in GB/s."""
    cells = [
        cell(str(row), str(column), rate(row, column))
        for row in range(devices)
        for column in range(devices)
        if row != column
    ]
    name = "device_to_device_memcpy_read_ce"
    return result(name, cells, title="memcpy CE device(row) <- device(column)", **more)


ONE_DEVICE = run(
    result("host_to_device_memcpy_ce", [judged(cell("0", "0", 55.3), 57.61, "ok")]),
    result("device_to_host_memcpy_ce", [judged(cell("0", "0", 24.1), 57.61, "low")]),
    result("host_to_device_bidirectional_memcpy_ce", [cell("0", "0", 48.8)]),
    result("device_to_device_memcpy_read_ce", [], status="skip", reason="needs two devices"),
    result("host_device_latency_sm", [cell("0", "0", 812, "s")], "s", 2 * MI),
    result("host_to_host_memcpy_read_cpu", [judged(cell("0", "0", 24.2), 20.1, "high", "measured")],
           backend="host"),
    result("memory_stream_copy",
           [cell(row, column, 20 + 9 * len(row) * int(column))
            for row in ("0 stream", "0 peak") for column in ("1", "2")],
           sweep=True, backend="host", title="copy threads(row) by their number(column)"),
    result("core_to_core_latency", [cell("0", "1", 26.04, "s"), cell("1", "0", 26.2, "s")], "s", 64,
           sweep=True, backend="host"),
    result("cpu_primes_single", [cell("0", "1", 4142.8, "1/s")], "1/s", 0, backend="host"),
    devices=1,
)  # fmt: skip


def _worse(row, column):
    return 98.2 if 3 in (row, column) else 350 if (row, column) == (5, 6) else 391 + column / 10


def _judge(cell):
    share = cell.summary.median / 400e9
    return judged(cell, 400, "low" if share < 0.9 else "ok", "18 nvlink × 25 GB/s = 450 GB/s")


_EIGHT = matrix(8, _worse)
EIGHT = run(
    result("host_to_device_memcpy_ce", [cell("0", str(n), 55.1 + n / 10) for n in range(8)]),
    result("device_to_host_bidirectional_memcpy_ce", [cell("0", str(n), 51.0) for n in range(8)]),
    replace(_EIGHT, cells=tuple(map(_judge, _EIGHT.cells))),
    devices=8,
)
WIDE = run(
    result("host_to_device_memcpy_ce", [cell("0", str(n), 199 + n / 100) for n in range(72)]),
    matrix(72, lambda row, column: 387 if row == 3 else 760 + (row + column) % 5),
    devices=72,
)
_SIZES = tuple(size << 10 for size in (64, 1024, 65536, 524288))
SIZES = run(
    *(
        result(name, [cell("0", "0", share * size / (size / 55 + 200e3))], size=size)
        for size in _SIZES
        for name, share in (("host_to_device_memcpy_ce", 1.0), ("device_to_host_memcpy_ce", 0.9))
    ),
    *(
        result("device_to_device_memcpy_read_ce",
               [cell("0", "1", 380), failed("1", "0", "error", "call: lost")],
               size=size, status="error")
        for size in _SIZES
    ),
)  # fmt: skip
_PARTLY = (
    failed("0", "1", "error", "while measuring: the device is lost"),
    failed("0", "2", "timeout", "gave up after 20 s"),
    failed("1", "2", "skip", "[red]not shared[/red]"),
    cell("1", "0", 12.3, status="fail", reason="x:0 is wrong at byte 77 of 67108864"),
    cell("2", "0", 390.5),
    cell("2", "1", 391.5),
)
FAILURES = run(
    result("device_to_device_memcpy_write_ce", _PARTLY, status="error",
           title="memcpy CE device(row) -> device(column)"),
    devices=3,
)  # fmt: skip


def simulated(body):
    results = tuple(replace(one, simulated=True) for one in body.results)
    return replace(body, results=results, simulated=True)


BODIES = {
    "one-device": ONE_DEVICE,
    "eight": EIGHT,
    "wide": WIDE,
    "sizes": SIZES,
    "failures": FAILURES,
    "simulated": simulated(EIGHT),
}
