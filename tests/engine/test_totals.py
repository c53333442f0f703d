"""Totals of simulated machines: the sum of what each transfer has while all run."""

import pytest

from linkgauge.backends.sim.description import load
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.engine.plan import fabrics, lay_out
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import Report
from repetition_kit import whole

SIZE = 256 << 20
SLOW = ("slow sim:1-nvswitch rate=50%",)
HOST_AND_PEER = "host:0 -> sim:0 by ce & sim:0 -> host:0 by ce & sim:0 -> sim:1 by sm"


def measure(text, report=Report.TOTAL, beside=(), faults=(), **how):
    """The result of a cell, measured at the same time as others."""
    simulation = Simulation(*load("dgx-h200-8"), faults)
    settings = Settings((SIZE,), **({"samples": 6, "simulation": simulation} | how))
    cells = [
        PlannedCell("0", str(number), parse_transfers(one), report, number=number)
        for number, one in enumerate((text, *beside))
    ]
    result = whole(LocalWorker(settings).measure(cells, SIZE)[0])
    assert result.status == "pass", result.reason
    return result


@pytest.mark.parametrize("engine", ["ce", "sm"])
@pytest.mark.parametrize("name", ["all_to_one_read", "one_to_all_write"])
@pytest.mark.parametrize("faults", [(), SLOW], ids=["equal", "unequal"])
def test_sixteen_loops_and_sixty_four_agree(name, engine, faults):
    settings = Settings((SIZE,), simulation=Simulation(*load("dgx-h200-8")))
    here = LocalWorker(settings).survey(["sim"])
    (laid_out,) = lay_out([CATALOG[f"{name}_{engine}"]], fabrics(here, ()), ())
    for cell in laid_out.cells[:2]:
        few, many = (measure(str(cell), faults=faults, loops=loops) for loops in (16, 64))
        assert few.summary.median == pytest.approx(many.summary.median, rel=0.01)
        assert few.definition == many.definition


def test_a_span_depends_on_them_where_they_differ_in_length():
    text = "sim:0 -> sim:1 by ce & sim:0 -> host:0 by ce"
    total, span = (measure(text, report) for report in (Report.TOTAL, Report.SPAN))
    assert (total.definition, span.definition) == ("sustained", "span")
    assert span.summary.median < 0.5 * total.summary.median


def test_kernels_of_one_device_run_one_after_another():
    result = measure("sim:0 -> sim:1 by sm & sim:0 -> sim:2 by sm")
    alone = measure("sim:0 -> sim:1 by sm", Report.SUM)
    assert (result.definition, alone.definition) == ("serial", None)
    assert result.summary.median == pytest.approx(alone.summary.median, rel=0.02)


def test_a_total_is_about_the_sum_of_its_parts():
    result = measure(HOST_AND_PEER)
    parts = [part.summary.median for part in result.parts]
    assert result.definition == "sustained"
    assert result.summary.median == pytest.approx(sum(parts), rel=0.1)
    assert max(parts) > 5 * min(parts)


def test_one_notation_has_one_meaning_alone_and_beside_others():
    both = "sim:0 <-> sim:1 by sm"
    alone = measure(both)
    beside = measure(f"{both} & sim:2 -> sim:3 by sm")
    assert beside.parts[0].summary.median == pytest.approx(alone.summary.median, rel=0.01)
    assert beside.parts[0].bytes == alone.bytes == SIZE
    other_cell = measure(both, beside=("sim:4 <-> sim:5 by sm",))
    assert other_cell.summary.median == pytest.approx(alone.summary.median, rel=0.01)
    first = measure(f"{both} & sim:2 <-> sim:3 by sm", Report.FIRST)
    assert [part.bytes for part in first.parts] == [SIZE // 2] * 2, "of one direction"
