"""How full links are while several cells are measured at the same time."""

from msgspec.structs import replace

from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.judge.crowds import Crowds
from linkgauge.judge.findings import Evidence
from linkgauge.judge.wiring import Wiring

NODES = [f"sim:{number}" for number in range(32)]


def crowds_of(name, count=None):
    text = load("fat-tree-64")[1]
    if count is not None:
        text = text.replace("count: 2, efficiency", f"count: {count}, efficiency")
    run = run_of("fat-tree-64", text, name, size=1 << 28, devices=NODES)
    (result,) = run.results
    return Crowds(Wiring(Evidence(run.machine)), result), result


def test_each_link_of_a_bisection_carries_what_its_transfers_take():
    crowds, result = crowds_of("nodes_bisection")
    (cell,) = [cell for cell in result.cells if cell.row == "0->16"]
    assert crowds.of(cell) == (1.0, 1.0, 1.0, 1.0)


def test_a_link_that_would_have_to_carry_more_tells_nothing_of_a_cell():
    crowds, result = crowds_of("nodes_bisection", count=1)
    assert crowds.of(result.cells[0]) is None


def test_a_cell_alone_has_no_crowd_and_of_unknown_company_none_is_known():
    crowds, result = crowds_of("nodes_bisection")
    assert crowds.of(replace(result.cells[0], notes=())) == ()
    assert crowds.of(replace(result.cells[0], round=None)) is None
