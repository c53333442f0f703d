"""Flows end when their bytes are over, and leave their share to those that go on."""

import pytest

from linkgauge.model.map import Flow
from linkgauge.model.motion import Work, movements

LINK = Flow(((0, 1.0),))


def ends(works, capacity):
    return tuple(movement.end for movement in movements(works, capacity))


def test_one_takes_its_bytes_over_its_narrowest_segment():
    assert ends([Work(Flow(((0, 1.0), (1, 2.0))), 100)], [50.0, 50.0]) == (4.0,)


def test_who_ends_leaves_the_rest_to_the_others():
    assert ends([Work(LINK, 10), Work(LINK, 30)], [10.0]) == pytest.approx((2.0, 4.0))


def test_those_of_a_queue_go_one_after_the_other():
    loads = [
        Work(LINK, 10, queue="a"),
        Work(Flow(((1, 1.0),)), 10, queue="a"),
        Work(Flow(((1, 1.0),)), 5),
    ]
    assert ends(loads, [10.0, 10.0]) == pytest.approx((1.0, 2.0, 0.5))


def test_what_nothing_bounds_takes_no_time():
    assert ends([Work(Flow(()), 10)], []) == (0.0,)
    assert ends([Work(Flow(()), 10), Work(LINK, 10)], [10.0]) == (0.0, 1.0)
