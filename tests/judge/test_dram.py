"""What host memory should do by threads, and what nothing tells."""

from msgspec.structs import replace

from fakes import machine
from judge_kit import expect
from linkgauge.judge.dram import Ceilings
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.transfer import Report

SIZE = 1 << 30
CEILINGS = Ceilings({(0, "write"): 2e10})


def achievable(memory, operation="copy"):
    transfers = parse_transfers(f"null -> {memory} by cpu")
    cell = replace(PlannedCell("0", "0", transfers, Report.FIRST), operation=operation)
    return expect(cell, SIZE, machine(), CEILINGS).achievable


def test_threads_write_as_fast_as_this_run_measured():
    assert achievable("host:0") == achievable("host:0/thp") == 2e10


def test_nothing_is_expected_of_first_touch_nor_of_interleaved_memory():
    assert achievable("host:0/base", "touch") is None
    assert achievable("host:0/interleave") is None
    assert achievable("host:0/weighted") is None
