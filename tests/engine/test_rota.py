"""Cells take turns, as many in a probe as the budget allows."""

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.engine.rota import Rota
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell, PlannedSheet
from linkgauge.model.transfer import Report

COPY = parse_transfers("host:0 -> sim:0 by ce")


def plan(cells):
    planned = tuple(PlannedCell(str(n), "0", COPY, Report.FIRST, number=n) for n in range(cells))
    return (
        PlannedSheet(
            benchmark="b", title="B", backend="sim", size=1000, unit="B/s", better="higher",
            cells=planned,
        ),
    )  # fmt: skip


def probe(rota, took, is_free=lambda cell: True):
    """The numbers of the cells of a probe, each of which takes so long."""
    rota.begin()
    numbers = [cell.number for cell in rota.choose(is_free)]
    for number in numbers:
        rota.took(number, took)
    rota.spend(took * len(numbers))
    rota.measured(numbers)
    return numbers


def test_in_turn_where_they_do_not():
    rota = Rota(plan(5), 0.1, 10.0)  # 1 s
    found = [probe(rota, 0.4) for _ in range(10)]
    assert {len(numbers) for numbers in found} <= {1, 2}
    order = [number for numbers in found for number in numbers]
    assert order == [n % 5 for n in range(len(order))]


def test_busy_cells_keep_their_turn():
    rota = Rota(plan(3), 0.5, 10.0)
    assert probe(rota, 0.1, lambda cell: cell.number != 0) == [1]
    assert probe(rota, 0.1, lambda cell: cell.number != 0) == [2, 1]
    assert probe(rota, 0.1) == [0, 2, 1]


@given(st.integers(1, 30), st.floats(0.001, 0.5), st.lists(st.floats(0.001, 2.0), min_size=30))
def test_the_budget_holds_but_for_one_probe_that_takes_longer_than_before(cells, budget, took):
    """Whatever cells take: what is too much is paid back."""
    every, rota, busy = 10.0, Rota(plan(cells), budget, 10.0), 0.0
    for number, each in enumerate(took):
        spent = len(probe(rota, each)) * each
        assert spent == 0 or busy <= budget * every * (number + 1) + 1e-9
        busy += spent
