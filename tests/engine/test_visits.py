"""What is visited next depends on the visits before; a cell is whole when it and its like are."""

import math
import random

import pytest
from msgspec.structs import replace

from linkgauge.engine.enough import least_visits
from linkgauge.engine.visits import Visits
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from visit_kit import planned, table, visited

SETTINGS = Settings((64,), precision=0.01, max_time=1.0)


def go(visits, plan, figure, limit=40):
    """Visits what is due until nothing is; gives back the order. `figure(column, visit)` are the
    samples of a visit."""
    order, counts = [], {}
    while any(left := visits.left()):
        for number, cells in enumerate(left):
            for cell in cells:
                visit = counts[number, cell.column] = counts.get((number, cell.column), -1) + 1
                order.append((number, cell.column))
                visits.add(number, visited(cell, *figure(cell.column, visit)))
        assert len(order) < limit * 10
    return order


@pytest.mark.parametrize(("alike", "least"), [(1, 7), (2, 4), (3, 3), (4, 3), (6, 2), (1000, 2)])
def test_the_fewer_are_alike_the_more_often_each_is_visited(alike, least):
    assert least_visits(alike) == least
    if alike < 10:
        visits = Visits((table(*(planned(str(n)) for n in range(alike))),), SETTINGS)
        order = go(visits, None, lambda column, visit: (1.0, 1.0, 1.0))
        assert len(order) == alike * least


def test_of_many_alike_cells_some_tell_how_all_of_them_vary():
    cells = [planned(str(n)) for n in range(100)]
    visits = Visits((table(*cells),), SETTINGS)
    scatter = [1.0, 1.002]
    order = go(visits, None, lambda column, visit: (scatter[visit],) * 2)
    assert len(order) == 100 + 25
    whole = visits.cells(0)
    assert {len(cell.visits) for cell in whole} == {1, 2}
    assert all(cell.stopped == "precision" and cell.interval.degrees == 25 for cell in whole)


def test_one_that_scatters_too_much_is_given_up_and_says_so():
    cells = [planned(str(n)) for n in range(4)]
    visits = Visits((table(*cells),), SETTINGS)
    scatter = [1.0, 1.07, 0.95]
    order = go(visits, None, lambda column, visit: (scatter[visit] * 1.1, scatter[visit]) * 2)
    assert len(order) == 4 * least_visits(4)
    assert {cell.stopped for cell in visits.cells(0)} == {"noise"}
    (note,) = {note for cell in visits.cells(0) for note in cell.notes}
    assert (note.asked, note.samples) == (0.01, 12)
    assert note.reached > 0.01


def test_single_samples_show_that_cells_scatter_too_much_from_six_degrees_of_freedom_on():
    cells = [planned(str(n)) for n in range(4)]
    visits = Visits((table(*cells),), SETTINGS)
    order = go(visits, None, lambda column, visit: (1 + 0.1 * (-1) ** visit,))
    assert len(order) == 4 * least_visits(4)
    assert {cell.stopped for cell in visits.cells(0)} == {"noise"}
    assert {cell.interval.degrees for cell in visits.cells(0)} == {8}


def test_time_spent_ends_a_cell():
    cell = planned("0")
    visits = Visits((table(cell),), SETTINGS)
    visits.add(0, visited(cell, 1.0, seconds=2.0))
    assert not any(visits.left())
    assert visits.cells(0)[0].stopped == "max-time"


def test_short_visits_count_as_long_as_a_visit_may_last():
    """Samples of microseconds would never use up a cell's time: visits without end."""
    only, generator = planned("1"), random.Random(5)
    visits = Visits((table(only),), replace(SETTINGS, precision=0.005))
    most = math.ceil(SETTINGS.max_time / 0.03)  # the most that a visit counts
    for _ in range(most):
        level = generator.gauss(1.0, 0.02)
        visits.add(0, visited(only, *[level] * 8, seconds=1e-6))
    assert not any(visits.left())


def test_cells_of_a_round_end_together():
    cells = [planned(str(n), round=n // 2) for n in range(4)]
    visits = Visits((table(*cells),), SETTINGS)
    order = go(visits, None, lambda c, v: (1 + 0.03 * (v % 2) if c == "0" else 1.0,) * 3)
    counts = {column: sum(1 for _, one in order if one == column) for column in "0123"}
    assert counts["0"] == counts["1"]
    assert counts["2"] == counts["3"]


def test_a_cell_whose_device_was_set_aside_ends_with_what_it_has():
    """Else a run whose precision it misses would never end."""
    cells = [planned(str(n)) for n in range(3)]
    visits = Visits((table(*cells),), SETTINGS)
    visited_so_far = 0
    while any(left := visits.left()):
        for cell in left[0]:
            aside = cell.column == "0" and visits.turn > 0
            scatter = 1.0 + 0.2 * (visits.turn % 2)
            visits.add(0, visited(cell, status="skip", seconds=None) if aside
                       else visited(cell, scatter, scatter))  # fmt: skip
            visited_so_far += 1
        assert visited_so_far < 400
    first = visits.cells(0)[0]
    assert (first.status, len(first.visits)) == ("pass", 1)


def test_a_cell_whose_samples_are_counted_is_visited_once_whatever_the_others_take():
    best = replace(planned("1"), report=Report.BEST)
    visits = Visits((table(best), table(planned("2"), name="c")), SETTINGS)
    samples = (1.0, 1.5, 2.0, 1.2, 1.9)
    order = []
    while any(left := visits.left()):
        for number, cells in enumerate(left):
            for cell in cells:
                order.append(cell.column)
                visits.add(number, replace(visited(cell, *samples), report=cell.report))
    assert order.count("1") == 1 < order.count("2")
    (done,) = visits.cells(0)
    assert (done.stopped, done.headline, done.interval) == ("samples", 2.0, None)


@pytest.mark.parametrize("seconds", [0.1, 3 * SETTINGS.max_time])
def test_products_are_measured_in_three_repetitions(seconds):
    """So their range counts what varies between moments, however long one takes."""
    product = replace(planned("1"), operation="matmul-fp32", report=Report.RATE)
    visits = Visits((table(product),), SETTINGS)
    while any(left := visits.left()):
        for cell in left[0]:
            one = visited(cell, 1.0, 1.1, seconds=seconds)
            visits.add(0, replace(one, operation=cell.operation))
    (done,) = visits.cells(0)
    assert (done.stopped, len(done.visits), done.interval.degrees) == ("samples", 3, 2)
    fixed = Visits((table(product),), replace(SETTINGS, samples=5))
    (cell,) = fixed.left()[0]
    fixed.add(0, visited(cell, *[1.0] * 5, seconds=seconds))
    assert not any(fixed.left())


@pytest.mark.parametrize(("status", "visits"), [("pass", 3), ("error", 1)])
def test_where_ranks_share_cpus_each_cell_has_three_visits_however_long_they_take(status, visits):
    cells = [planned(str(n)) for n in range(30)]
    made = Visits((table(*cells),), SETTINGS, is_crowded=True)
    taken = 0
    while any(left := made.left()):
        for cell in left[0]:
            made.add(0, visited(cell, 1.0, 1.0, seconds=2 * SETTINGS.max_time, status=status))
            taken += 1
    assert taken == 30 * visits
