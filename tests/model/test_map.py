"""Flows share what they cross as max-min fairness says."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.map import Flow, share

WEIGHTS = st.floats(0.1, 10)
CAPACITIES = st.lists(st.floats(0.5, 1000), min_size=6, max_size=6)


@st.composite
def flows(draw):
    """Flows over up to six resources; each is bounded by at least one of them, or by a cap."""
    made = []
    for _ in range(draw(st.integers(1, 9))):
        used = draw(st.lists(st.integers(0, 5), unique=True, max_size=4))
        cap = draw(st.floats(0.01, 2000) if not used else st.just(math.inf) | st.floats(0.01, 2000))
        made.append(Flow(tuple((resource, draw(WEIGHTS)) for resource in used), cap))
    return made * draw(st.integers(1, 3))


def loads(given_flows, rates):
    total = [0.0] * 6
    for flow, rate in zip(given_flows, rates, strict=True):
        for resource, weight in flow.usage:
            total[resource] += weight * rate
    return total


@given(flows(), CAPACITIES)
def test_no_resource_carries_more_than_it_can(some, capacity):
    for load, most in zip(loads(some, share(some, capacity)), capacity, strict=True):
        assert load <= most * (1 + 1e-6)


@given(flows(), CAPACITIES)
def test_whoever_is_not_at_its_cap_crosses_something_full_where_nobody_is_faster(some, capacity):
    rates = share(some, capacity)
    load = loads(some, rates)
    for flow, rate in zip(some, rates, strict=True):
        if rate >= flow.cap * (1 - 1e-6):
            continue
        bottlenecks = [
            resource
            for resource, _ in flow.usage
            if load[resource] >= capacity[resource] * (1 - 1e-6)
            and all(
                other_rate <= rate * (1 + 1e-6)
                for other, other_rate in zip(some, rates, strict=True)
                if resource in dict(other.usage)
            )
        ]
        assert bottlenecks


@given(flows(), CAPACITIES, st.randoms())
def test_the_order_of_flows_does_not_matter(some, capacity, random):
    order = list(range(len(some)))
    random.shuffle(order)
    rates = share(some, capacity)
    shuffled = share([some[place] for place in order], capacity)
    assert shuffled == pytest.approx([rates[place] for place in order], rel=1e-6)


@given(flows(), CAPACITIES, st.floats(0.01, 1e9))
def test_rates_grow_with_capacities_and_caps(some, capacity, factor):
    grown = [Flow(flow.usage, flow.cap * factor) for flow in some]
    rates = share(grown, [most * factor for most in capacity])
    assert rates == pytest.approx([rate * factor for rate in share(some, capacity)], rel=1e-6)


def test_flows_alike_get_the_same():
    one = Flow(((0, 1.0),))
    assert share([one] * 4, [100.0]) == (25.0,) * 4


def test_what_one_cannot_use_the_others_get():
    # The textbook's example: the long flow shares both links, the short one the wider.
    long, narrow, wide = Flow(((0, 1.0), (1, 1.0))), Flow(((0, 1.0),)), Flow(((1, 1.0),))
    assert share([long, narrow, wide], [10.0, 100.0]) == (5.0, 5.0, 95.0)


def test_a_weight_is_the_capacity_taken_by_a_unit_of_rate():
    assert share([Flow(((0, 4.0),)), Flow(((0, 1.0),))], [10.0]) == (2.0, 2.0)


def test_a_cap_holds_back_only_its_own_flow():
    assert share([Flow(((0, 1.0),), 3.0), Flow(((0, 1.0),))], [10.0]) == (3.0, 7.0)


def test_a_flow_that_nothing_bounds_is_infinitely_fast_beside_those_that_are_bounded():
    assert share([Flow(()), Flow(((0, 1.0),))], {0: 5.0}) == (math.inf, 5.0)


def test_no_flows_no_rates():
    assert share([], []) == ()
