"""All devices of a machine at once: healthy ones are never low, and one slow link is found although
a total hardly shows it."""

import random

import pytest
from msgspec.structs import replace

from judge.test_verdict import _varied
from judge_kit import run_of
from linkgauge.backends.sim.description import load, shipped
from linkgauge.benchmarks.within_node import WITHIN_NODE
from linkgauge.judge.expect import Expectation
from linkgauge.judge.verdict import judge, verdict
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Expected, Part
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.report.expectations import expectation_lines

NAMES = [row.name for row in WITHIN_NODE]
SIZE = 128 << 20
APART = ("disjoint_pairs_write_ce", "bisect_write_ce", "disjoint_pairs_write_sm", "bisect_write_sm")


def judged(machine, text, *names, faults=(), devices=8):
    there = [f"sim:{n}" for n in range(devices)]
    run = run_of(machine, text, *names, size=SIZE, devices=there, faults=faults)
    return {result.benchmark: result for result in judge(run).results}


def verdicts(results):
    return {name: cell.verdict for name, result in results.items() for cell in result.cells}


DEVICES = {"ppu-2x2": 4, "ipu-m2000": 4, "riscv-2gpu": 2, "vm-degraded": 1}


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("name", shipped())
def test_a_healthy_machine_is_never_low(name, seed):
    text = load(name)[1]
    if seed is not None:
        text = _varied(text, random.Random(f"{name} {seed}"))
    found = verdicts(judged(name, text, *NAMES, devices=DEVICES.get(name, 8)))
    assert set(found.values()) <= {"ok", "unknown"}
    if name in ("dgx-h200-8", "gb200-nvl72") and seed is None:
        assert found == dict.fromkeys(NAMES, "ok")


def test_one_slow_device_is_low_although_the_total_would_do():
    text = load("dgx-h200-8")[1]
    results = judged("dgx-h200-8", text, *APART, faults=["slow sim:3 rate=50%"])
    for name in APART:
        (cell,) = results[name].cells
        assert cell.summary.median > 0.75 * cell.expected.achievable
    assert verdicts(results) == dict.fromkeys(APART, "low")
    (line, *_) = (str(line) for line in expectation_lines(results["bisect_write_ce"]))
    assert line.startswith("low (0, 0): sim:")
    assert "sim:3" in line
    assert line.endswith(" by ce 49% of what is expected")


def test_what_each_should_reach_is_known_where_the_others_take_nothing_of_it():
    results = judged("dgx-h200-8", load("dgx-h200-8")[1], *NAMES)
    for name, result in results.items():
        (cell,) = result.cells
        known = [part.expected is not None for part in cell.parts]
        assert set(known) == {name in APART}


class TestATransferOfATotal:
    """Two transfers that should reach 40 GB/s each."""

    ESTIMATE = Expectation(Expected(100e9, 80e9, ""), most=100e9, each=(40e9, 40e9))

    def cell(self, *rates, samples=None, expected=40e9):
        bytes_ = 1 << 30
        parts = tuple(
            Part(n, bytes_, samples or (rate,) * 6, summarize([rate] * 6), expected)
            for n, rate in enumerate(rates)
        )
        transfers = parse_transfers("x:0 -> x:1 by ce & x:2 -> x:3 by ce")
        return CellResult(
            "0", "0", transfers, Report.TOTAL, "pass", bytes=2 * bytes_, parts=parts,
            summary=summarize([sum(rates)] * 6), samples=(sum(rates),) * 6, visits=((3,), (3,)),
            definition="sustained",
        )  # fmt: skip

    def test_that_is_low_makes_the_total_low(self):
        assert verdict(self.cell(45e9, 20e9), self.ESTIMATE) == "low"
        assert verdict(self.cell(45e9, 31e9), self.ESTIMATE) == "ok"

    def test_whose_last_visit_was_well_leaves_it_unknown(self):
        again = self.cell(45e9, 20e9, samples=(20e9,) * 3 + (39e9,) * 3)
        assert verdict(again, self.ESTIMATE) == "unknown"

    def test_of_which_nothing_is_expected_leaves_it_to_the_sum(self):
        assert verdict(self.cell(45e9, 20e9, expected=None), self.ESTIMATE) == "ok"
        assert verdict(self.cell(25e9, 20e9, expected=None), self.ESTIMATE) == "low"

    def test_that_was_not_measured_leaves_it_unknown(self):
        made = self.cell(45e9, 40e9)
        lost = (made.parts[0], replace(made.parts[1], summary=None))
        assert verdict(replace(made, parts=lost), self.ESTIMATE) == "unknown"
