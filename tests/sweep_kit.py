"""Results at several sizes whose times lie on a line."""

from fakes import machine
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Result, Run
from linkgauge.model.settings import Settings
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report

KI, MI = 1 << 10, 1 << 20
SIZES = (64 * KI, 1 * MI, 16 * MI, 64 * MI)
LATENCY, RATE = 2e-6, 5e10


def seconds(size, share=1.0):
    """The time of a copy, at this share of the rate."""
    return (LATENCY + size / RATE) / share


def sweep(paths, sizes=SIZES, counted=1, time=seconds, transfer="host:0 -> sim:0 by sim:0.ce"):
    """A result for each size, with a cell for each path, which has a share of the rate."""
    return [
        _result(
            "h2d", "memcpy CE host(row) -> device(column)", size, "B/s",
            [
                _cell(place, transfer, Report.FIRST, counted * size / time(size, share),
                      bytes=counted * size)
                for place, share in paths.items()
            ],
        )
        for size in sizes
    ]  # fmt: skip


def _cell(place, transfer, report, figure, **more):
    better = "lower" if report.is_latency else "higher"
    return CellResult(
        *place, parse_transfers(transfer), report, "pass", samples=(figure,),
        summary=summarize([figure], better), **more,
    )  # fmt: skip


def _result(benchmark, title, size, unit, cells):
    better = "lower" if unit == "s" else "higher"
    return Result(
        benchmark=benchmark, title=title, backend="sim", size=size, unit=unit, better=better,
        status="pass", cells=tuple(cells),
    )  # fmt: skip


def run(*results):
    return Run(
        id="20261123T120000Z", label="default", command=("linkgauge",), started="x", finished="y",
        machine=machine(), settings=Settings(SIZES), results=results,
    )  # fmt: skip
