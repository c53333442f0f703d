"""What a device's own memory should reach by STREAM's count: each counted byte crosses it once."""

import pytest
from msgspec.structs import replace

from fakes import device, machine
from judge_kit import expect
from linkgauge.judge.expect import Expectations
from linkgauge.judge.verdict import verdict
from linkgauge.model.inventory import Accelerator, Inventory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, PlannedCell
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import FLOPS, STREAM

SIZE = 1 << 30
RATE = 4.917e12  # an H200: 3201 MHz x 2 x 6144 bit
WORKS = {
    "peak-read": "cuda:0 -> null by sm",
    "peak-write": "null -> cuda:0 by sm",
    "peak-copy": "cuda:0 -> cuda:0 by sm",
    "peak-triad": "cuda:0 -> cuda:0 by sm",
}


def here(rate=RATE, **more):
    accelerator = Accelerator(memory="cuda:0", model="NVIDIA H200", memory_rate=rate)
    found = machine([device(0, "cuda", **more)])
    return replace(found, inventory=Inventory(accelerators=(accelerator,)))


def planned(operation, report=Report.FIRST):
    return PlannedCell("0", "0", parse_transfers(WORKS[operation]), report, operation=operation)


@pytest.mark.parametrize("operation", WORKS)
def test_is_the_memory_s_own_rate_whatever_is_done(operation):
    found = expect(planned(operation), SIZE, here(), unit=STREAM.symbol)
    assert found.theoretical == pytest.approx(RATE)
    assert found.achievable == pytest.approx(0.9 * RATE)
    assert found.because.startswith("memory = 4917 GB/s; 90% of memory bandwidth is reachable")


def test_is_unknown_where_the_rate_or_its_owner_is():
    for of, why in (
        (here(rate=None), "the rate of the memory of cuda:0 is unknown"),
        (here(shares_host_memory=True), "cuda:0 uses the host's memory"),
    ):
        found = expect(planned("peak-copy"), SIZE, of, unit=STREAM.symbol)
        assert (found.theoretical, found.because) == (None, f"unknown: {why}")


def test_host_threads_have_none():
    cell = PlannedCell(
        "0", "0", parse_transfers("host:0 -> null by cpu"), Report.FIRST, operation="peak-read"
    )
    assert expect(cell, SIZE, here(), unit=STREAM.symbol).theoretical is None


@pytest.mark.parametrize(
    ("share", "expected"), [(0.93, "ok"), (0.7, "ok"), (0.4, "low"), (1.1, "high")]
)
def test_is_judged(share, expected):
    plan = planned("peak-copy")
    samples = (share * RATE,) * 5
    cell = CellResult(
        "0", "0", plan.transfers, plan.report, "pass", bytes=2 * SIZE, samples=samples,
        visits=((5,),), summary=summarize(samples), operation=plan.operation,
    )  # fmt: skip
    estimate = Expectations(here()).of(cell, SIZE, STREAM.symbol)
    assert verdict(cell, estimate) == expected


def test_nothing_is_expected_of_a_product():
    transfers = parse_transfers("null -> null by cuda:0.sm")
    cell = PlannedCell("FP32", "0", transfers, Report.RATE, operation="matmul-fp32")
    found = expect(cell, SIZE, here(), unit=FLOPS.symbol)
    assert (found.theoretical, found.achievable) == (None, None)
