"""Fabricated documents and runs of both tools, for the tests of their comparison."""

import nvbandwidth_figures as figures
from fakes import device, machine
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Part, Result, Run
from linkgauge.model.settings import Settings
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from nvbandwidth_figures import PARTS, TESTS, UNITS

SIZE = 512 << 20
BIDIRECTIONAL = "device_to_device_bidirectional_memcpy_read_sm"


def places(test):
    """Rows and columns of a test on two devices."""
    return (("0", "1"), ("1", "0") if test.startswith("device_to_device") else ("0", "0"))


def figure(test):
    """What the fabricated machine reaches, GB/s or ns."""
    return 700.0 if UNITS[test].symbol == "s" else 50.0


def theirs(tests=TESTS, factor=1.0, **more):
    def matrix(test, value):
        held = dict.fromkeys(places(test), f"{value * factor:g}")
        rows = ("0", "1") if test.startswith("device_to_device") else ("0",)
        return [[held.get((row, column), "N/A") for column in ("0", "1")] for row in rows]

    def case(test):
        values = (*(figure(test) for _ in PARTS[test]), figure(test) * max(1, len(PARTS[test])))
        matrices = [row for value in values for row in matrix(test, value)]
        return {"name": test, "status": "Passed", "bandwidth_matrix": matrices, "sum": 1.0}

    cases = [case(test) for test in tests]
    head = {"Driver Version": "580.1", "GPU Device list": ["0: Fake"], "version": "v0.8"}
    return {"nvbandwidth": {**head, "testcases": cases, **more}}


def cell(test, row, column, factor=1.0, width=0.001, **more):
    value = figure(test) * UNITS[test].scale * factor
    one = (value,) * 6
    parts = tuple(Part(n, SIZE, one, summarize(one)) for n in range(len(PARTS[test])))
    total = value * max(1, len(parts))
    samples = [total * (1 + width * step) for step in (-1, -0.5, 0, 0, 0.5, 1)]
    return CellResult(
        row, column, parse_transfers("cuda:0 -> cuda:1 by ce"), Report.FIRST,
        more.pop("status", "pass"),
        verified=more.pop("verified", None if UNITS[test].symbol == "s" else True),
        samples=tuple(samples), summary=more.pop("summary", summarize(samples)), parts=parts,
        **more,
    )  # fmt: skip


def result(test, cells):
    unit = UNITS[test]
    return Result(
        benchmark=test, title=test, backend="cuda", size=SIZE, unit=unit.symbol,
        better=unit.better, parts=PARTS[test], status="pass", cells=tuple(cells),
    )  # fmt: skip


def ours(tests=TESTS, factor=1.0, **more):
    return run_of(
        [result(t, [cell(t, *place, factor, **more) for place in places(t)]) for t in tests]
    )


def run_of(results):
    return Run(
        id="r", label="l", command=("linkgauge",), started="s", finished="f",
        machine=machine([device(0, "cuda")]), settings=Settings((SIZE,)), results=tuple(results),
    )  # fmt: skip


def both():
    return figures.read_linkgauge(ours()).figures, figures.read_nvbandwidth(theirs()).figures
