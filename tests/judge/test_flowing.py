"""Transfers that share segments end when their bytes are over, and leave their share to others."""

import pytest

from linkgauge.judge.flowing import Load, finish_times
from linkgauge.model.map import Flow

LINK = Flow(((0, 1.0),))


def test_one_takes_its_bytes_over_its_narrowest_segment():
    assert finish_times([Load(Flow(((0, 1.0), (1, 2.0))), 100)], [50.0, 50.0]) == (4.0,)


def test_who_ends_leaves_the_rest_to_the_others():
    assert finish_times([Load(LINK, 10), Load(LINK, 30)], [10.0]) == pytest.approx((2.0, 4.0))


def test_those_of_a_queue_go_one_after_the_other():
    loads = [Load(LINK, 10, "a"), Load(Flow(((1, 1.0),)), 10, "a"), Load(Flow(((1, 1.0),)), 5)]
    assert finish_times(loads, [10.0, 10.0]) == pytest.approx((1.0, 2.0, 0.5))


def test_what_nothing_bounds_takes_no_time():
    assert finish_times([Load(Flow(()), 10)], []) == (0.0,)
    assert finish_times([Load(Flow(()), 10), Load(LINK, 10)], [10.0]) == (0.0, 1.0)
