"""Totals of simulated machines: the sum of what each transfer has while all run."""

import pytest

from linkgauge.backends.sim import simulate
from linkgauge.backends.sim.description import load
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.pool import BufferPool
from linkgauge.judge.expect import Expectations
from linkgauge.model.machine import Machine
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import EngineSettings, Settings, Simulation
from linkgauge.model.transfer import Report

SIZE = 256 << 20
from visit_kit import whole


def machine(*faults):
    return simulate(Simulation(*load("dgx-h200-8"), faults), EngineSettings())


def measure(sim, text, report=Report.TOTAL, beside=(), **how):
    """The result of a cell, measured at the same time as others."""
    settings = Settings((SIZE,), **({"samples": 6} | how))
    cells = []
    for number, one in enumerate((text, *beside)):
        transfers = parse_transfers(one)
        planned = PlannedCell("0", str(number), transfers, report, number=number)
        backends = [sim] * len(transfers)
        cells.append(Measurement(planned, SIZE, settings, backends))
    visited = measure_together(cells, settings, BufferPool()).cells[0]
    result = whole(visited)
    assert result.status == "pass", result.reason
    return result


def cells(name, sim):
    nodes = sim.host().nodes
    return [
        str(cell) for cell in CATALOG[name].lay_out(DeviceSet("sim", nodes, sim.devices())).cells
    ]


SLOW = ("slow sim:1-nvswitch rate=50%",)
HOST_AND_PEER = "host:0 -> sim:0 by ce & sim:0 -> host:0 by ce & sim:0 -> sim:1 by sm"


class TestLoops:
    @pytest.mark.parametrize("engine", ["ce", "sm"])
    @pytest.mark.parametrize(
        "name", ["all_to_one_read", "all_to_one_write", "one_to_all_read", "one_to_all_write"]
    )
    @pytest.mark.parametrize("slow", [False, True], ids=["equal", "unequal"])
    def test_sixteen_and_sixty_four_agree(self, name, engine, slow):
        sim = machine(*(SLOW if slow else ()))
        for text in cells(f"{name}_{engine}", sim)[:2]:
            few, many = (measure(sim, text, loops=loops) for loops in (16, 64))
            assert few.summary.median == pytest.approx(many.summary.median, rel=0.01)
            assert few.definition == many.definition

    def test_nor_does_our_own_choice_of_loops_matter(self):
        sim = machine(*SLOW)
        own, many = (measure(sim, HOST_AND_PEER, loops=loops) for loops in (None, 64))
        assert own.summary.median == pytest.approx(many.summary.median, rel=0.01)

    def test_a_span_depends_on_them_where_they_differ_in_length(self):
        text = "sim:0 -> sim:1 by ce & sim:0 -> host:0 by ce"
        total, span = (measure(machine(), text, report) for report in (Report.TOTAL, Report.SPAN))
        assert (total.definition, span.definition) == ("sustained", "span")
        assert span.summary.median < 0.5 * total.summary.median


class TestDefinition:
    def test_kernels_of_one_device_run_one_after_another(self):
        sim = machine()
        text = "sim:0 -> sim:1 by sm & sim:0 -> sim:2 by sm"
        result = measure(sim, text)
        alone = measure(sim, "sim:0 -> sim:1 by sm", Report.SUM)
        assert result.definition == "serial"
        assert result.summary.median == pytest.approx(alone.summary.median, rel=0.02)

    @pytest.mark.parametrize("report", [Report.FIRST, Report.SUM])
    def test_only_totals_have_one(self, report):
        assert measure(machine(), "sim:0 -> sim:1 by ce", report).definition is None


class TestParts:
    def test_a_total_is_about_the_sum_of_its_parts(self):
        result = measure(machine(), HOST_AND_PEER)
        parts = [part.summary.median for part in result.parts]
        assert result.definition == "sustained"
        assert result.summary.median == pytest.approx(sum(parts), rel=0.1)
        assert max(parts) > 5 * min(parts)

    def test_what_is_expected_of_it_is_the_sum_of_its_shares(self):
        sim = machine()
        inventory = sim.look()
        devices = {"sim": sim.devices()}
        of = Expectations(Machine(sim.host(), devices, inventory=inventory))
        each = sum(
            of.of(measure(sim, text), SIZE, "B/s").expected.theoretical
            for text in HOST_AND_PEER.split(" & ")
        )
        together = of.of(measure(sim, HOST_AND_PEER), SIZE, "B/s").expected
        assert together.theoretical == pytest.approx(each, rel=0.01)

    def test_one_notation_has_one_meaning_alone_and_beside_others(self):
        sim = machine()
        both = "sim:0 <-> sim:1 by sm"
        alone = measure(sim, both)
        beside = measure(sim, f"{both} & sim:2 -> sim:3 by sm")
        assert beside.parts[0].summary.median == pytest.approx(alone.summary.median, rel=0.01)
        assert beside.parts[0].bytes == alone.bytes == SIZE
        other_cell = measure(sim, both, beside=("sim:4 <-> sim:5 by sm",))
        assert other_cell.summary.median == pytest.approx(alone.summary.median, rel=0.01)

    def test_where_the_first_is_reported_all_parts_count_one_direction(self):
        result = measure(machine(), "sim:0 <-> sim:1 by sm & sim:2 <-> sim:3 by sm", Report.FIRST)
        assert [part.bytes for part in result.parts] == [SIZE // 2] * 2
        assert result.summary.median == pytest.approx(result.parts[0].summary.median)
