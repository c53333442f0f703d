"""What is measured next depends on the repetitions before; a cell is whole when it and its like
are."""

import math
import random

import pytest
from msgspec.structs import replace

from linkgauge.engine.enough import least_repetitions
from linkgauge.engine.repetitions import Repetitions
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import planned, repeated, table

SETTINGS = Settings((64,), precision=0.01, max_time=1.0)


def go(repetitions, plan, figure, limit=40):
    """Repeats what is due until nothing is; gives back the order. `figure(column, repetition)`
    are the samples of a repetition."""
    order, counts = [], {}
    while any(left := repetitions.left()):
        for number, cells in enumerate(left):
            for cell in cells:
                repetition = counts[number, cell.column] = counts.get((number, cell.column), -1) + 1
                order.append((number, cell.column))
                repetitions.add(number, repeated(cell, *figure(cell.column, repetition)))
        assert len(order) < limit * 10
    return order


@pytest.mark.parametrize(
    ("equivalent", "least"), [(1, 7), (2, 4), (3, 3), (4, 3), (6, 2), (1000, 2)]
)
def test_the_fewer_are_alike_the_more_often_each_is_repeated(equivalent, least):
    assert least_repetitions(equivalent) == least
    if equivalent < 10:  # each cell of a machine has three at least
        repetitions = Repetitions((table(*(planned(str(n)) for n in range(equivalent))),), SETTINGS)
        order = go(repetitions, None, lambda column, repetition: (1.0, 1.0, 1.0))
        assert len(order) == equivalent * max(3, least)


def test_of_many_alike_cells_some_tell_how_all_of_them_vary():
    cells = [planned(str(n)) for n in range(100)]
    repetitions = Repetitions((table(*cells),), SETTINGS)
    scatter = [1.0, 1.002, 1.001]
    order = go(repetitions, None, lambda column, repetition: (scatter[repetition],) * 2)
    assert len(order) == 100 + 2 * 25
    whole = repetitions.cells(0)
    assert {len(cell.repetitions) for cell in whole} == {1, 3}
    assert all(cell.stopped == "precision" and cell.interval.degrees == 50 for cell in whole)


def test_one_that_scatters_too_much_is_given_up_and_says_so():
    cells = [planned(str(n)) for n in range(4)]
    repetitions = Repetitions((table(*cells),), SETTINGS)
    scatter = [1.0, 1.07, 0.95]
    order = go(
        repetitions,
        None,
        lambda column, repetition: (scatter[repetition] * 1.1, scatter[repetition]) * 2,
    )
    assert len(order) == 4 * least_repetitions(4)
    assert {cell.stopped for cell in repetitions.cells(0)} == {"noise"}
    (note,) = {note for cell in repetitions.cells(0) for note in cell.notes}
    assert (note.asked, note.samples) == (0.01, 12)
    assert note.reached > 0.01


def test_single_samples_show_that_cells_scatter_too_much_from_six_degrees_of_freedom_on():
    cells = [planned(str(n)) for n in range(4)]
    repetitions = Repetitions((table(*cells),), SETTINGS)
    order = go(repetitions, None, lambda column, repetition: (1 + 0.1 * (-1) ** repetition,))
    assert len(order) == 4 * least_repetitions(4)
    assert {cell.stopped for cell in repetitions.cells(0)} == {"noise"}
    assert {cell.interval.degrees for cell in repetitions.cells(0)} == {8}


def test_time_spent_ends_a_cell():
    cell = planned("0")
    repetitions = Repetitions((table(cell),), SETTINGS)
    repetitions.add(0, repeated(cell, 1.0, seconds=2.0))
    assert not any(repetitions.left())
    assert repetitions.cells(0)[0].stopped == "max-time"


def test_short_repetitions_count_as_long_as_a_repetition_may_last():
    """Samples of microseconds would never use up a cell's time: repetitions without end."""
    only, generator = planned("1"), random.Random(5)
    repetitions = Repetitions((table(only),), replace(SETTINGS, precision=0.005))
    most = math.ceil(SETTINGS.max_time / 0.03)  # the most that a repetition counts
    for _ in range(most):
        level = generator.gauss(1.0, 0.02)
        repetitions.add(0, repeated(only, *[level] * 8, seconds=1e-6))
    assert not any(repetitions.left())


def test_cells_of_a_round_end_together():
    cells = [planned(str(n), round=n // 2) for n in range(4)]
    repetitions = Repetitions((table(*cells),), SETTINGS)
    order = go(repetitions, None, lambda c, v: (1 + 0.03 * (v % 2) if c == "0" else 1.0,) * 3)
    counts = {column: sum(1 for _, one in order if one == column) for column in "0123"}
    assert counts["0"] == counts["1"]
    assert counts["2"] == counts["3"]


def test_a_cell_whose_device_was_set_aside_ends_with_what_it_has():
    """Else a run whose precision it misses would never end."""
    cells = [planned(str(n)) for n in range(3)]
    repetitions = Repetitions((table(*cells),), SETTINGS)
    repeated_so_far = 0
    while any(left := repetitions.left()):
        for cell in left[0]:
            aside = cell.column == "0" and repetitions.turn > 0
            scatter = 1.0 + 0.2 * (repetitions.turn % 2)
            repetitions.add(0, repeated(cell, status="skip", seconds=None) if aside
                       else repeated(cell, scatter, scatter))  # fmt: skip
            repeated_so_far += 1
        assert repeated_so_far < 400
    first = repetitions.cells(0)[0]
    assert (first.status, len(first.repetitions)) == ("pass", 1)


def test_a_cell_whose_samples_are_counted_is_repeated_once_whatever_the_others_take():
    best = replace(planned("1"), report=Report.BEST)
    repetitions = Repetitions((table(best), table(planned("2"), name="c")), SETTINGS)
    samples = (1.0, 1.5, 2.0, 1.2, 1.9)
    order = []
    while any(left := repetitions.left()):
        for number, cells in enumerate(left):
            for cell in cells:
                order.append(cell.column)
                repetitions.add(number, replace(repeated(cell, *samples), report=cell.report))
    assert order.count("1") == 1 < order.count("2")
    (done,) = repetitions.cells(0)
    assert (done.stopped, done.headline, done.interval) == ("samples", 2.0, None)


@pytest.mark.parametrize("seconds", [0.1, 3 * SETTINGS.max_time])
@pytest.mark.parametrize(("text", "count"), [("host:0.cpu", 3), ("cuda:0.sm", 6)])
def test_products_are_measured_in_several_repetitions(seconds, text, count):
    """So their range counts what varies between moments, however long one takes."""
    transfers = parse_transfers(f"null -> null by {text}")
    product = replace(
        planned("1"), transfers=transfers, operation="matmul-fp32", report=Report.RATE
    )
    repetitions = Repetitions((table(product),), SETTINGS)
    while any(left := repetitions.left()):
        for cell in left[0]:
            one = repeated(cell, 1.0, 1.1, seconds=seconds)
            repetitions.add(0, replace(one, operation=cell.operation))
    (done,) = repetitions.cells(0)
    assert (done.stopped, len(done.repetitions), done.interval.degrees) == (
        "samples",
        count,
        count - 1,
    )
    fixed = Repetitions((table(product),), replace(SETTINGS, samples=5))
    (cell,) = fixed.left()[0]
    fixed.add(0, repeated(cell, *[1.0] * 5, seconds=seconds))
    assert not any(fixed.left())


@pytest.mark.parametrize(("status", "repetitions"), [("pass", 3), ("error", 1)])
def test_where_ranks_share_cpus_each_cell_has_three_repetitions_however_long_they_take(
    status, repetitions
):
    cells = [planned(str(n)) for n in range(30)]
    made = Repetitions((table(*cells),), SETTINGS, is_oversubscribed=True)
    taken = 0
    while any(left := made.left()):
        for cell in left[0]:
            made.add(0, repeated(cell, 1.0, 1.0, seconds=2 * SETTINGS.max_time, status=status))
            taken += 1
    assert taken == 30 * repetitions
