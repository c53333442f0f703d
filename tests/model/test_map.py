"""Routes take the shortest ways; flows share what they cross as max-min fairness says."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.model.hardware.map import Flow, Link, Map, share

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


@given(flows(), CAPACITIES, st.floats(0.01, 1e9))
def test_rates_grow_with_capacities_and_caps(some, capacity, factor):
    grown = [Flow(flow.usage, flow.cap * factor) for flow in some]
    rates = share(grown, [most * factor for most in capacity])
    assert rates == pytest.approx([rate * factor for rate in share(some, capacity)], rel=1e-6)


def test_what_one_cannot_use_the_others_get():
    # The textbook's example: the long flow shares both links, the short one the wider.
    long, narrow, wide = Flow(((0, 1.0), (1, 1.0))), Flow(((0, 1.0),)), Flow(((1, 1.0),))
    assert share([long, narrow, wide], [10.0, 100.0]) == (5.0, 5.0, 95.0)


def test_a_cap_holds_back_only_its_own_flow():
    assert share([Flow(((0, 1.0),), 3.0), Flow(((0, 1.0),))], [10.0]) == (3.0, 7.0)


def wired(passing="fabric", *more):
    """Two devices joined by a fabric, the first below one node, the second below another."""
    links = [
        Link("bridge", "a", "b", "fabric"),
        Link("slot a", "a", "near", "pcie"),
        Link("slot b", "b", "far", "pcie"),
        Link("socket", "near", "far", "socket"),
        *more,
    ]
    places = dict.fromkeys(("near", "far", "c"), "all") | dict.fromkeys(("a", "b"), passing)
    return Map(places, links)


def crossed(route):
    return [crossing.link.name for crossing in route]


def test_what_a_device_passes_on_stays_in_its_fabric():
    assert crossed(wired().route("a", "b")) == ["bridge"]
    assert crossed(wired().route("near", "b")) == ["socket", "slot b"]
    # Where it passes on everything, the fabric is the shorter way.
    assert crossed(wired("all").route("near", "b")) == ["slot a", "bridge"]


def test_a_chain_of_devices_is_a_way_only_where_they_pass_traffic_on():
    longer = Link("next", "b", "c", "fabric")
    assert crossed(wired("fabric", longer).route("a", "c")) == ["bridge", "next"]
    assert wired("none", longer).route("a", "c") is None


def test_links_side_by_side_carry_equal_parts():
    route = wired("fabric", Link("second", "b", "a", "fabric")).route("a", "b")
    assert [(each.link.name, each.forward, each.share) for each in route] == [
        ("bridge", True, 0.5),
        ("second", False, 0.5),
    ]


def test_there_is_no_way_to_an_unknown_place_and_none_is_needed_to_the_same():
    assert wired().route("a", "nowhere") is None
    assert wired().route("a", "c") is None
    assert wired().route("a", "a") == ()


def test_costs_prefer_few_links_that_belong_to_no_fabric():
    costs = {place: wired().cost("near", place) for place in ("near", "a", "far", "b")}
    assert costs == {"near": 0, "a": 1000, "far": 1000, "b": 2000}


def fat_tree(routing):
    """Four devices below each of two leaf switches, two spine switches."""
    links = [Link(f"{n}", f"d{n}", f"leaf{n // 4}", "fabric") for n in range(8)]
    links += [Link(f"up{a}{b}", f"leaf{a}", f"spine{b}", "fabric") for a in (0, 1) for b in (0, 1)]
    places = dict.fromkeys(("leaf0", "leaf1", "spine0", "spine1"), "all")
    return Map(places | {f"d{n}": "none" for n in range(8)}, links, routing)


def test_of_several_shortest_paths_traffic_takes_all_evenly():
    shares = {c.link.name: c.share for c in fat_tree("spread").route("d0", "d5")}
    assert shares == {"0": 1.0, "up00": 0.5, "up01": 0.5, "up10": 0.5, "up11": 0.5, "5": 1.0}


def test_or_the_one_that_its_destination_says():
    tree = fat_tree("destination")
    assert crossed(tree.route("d0", "d5")) == ["0", "up01", "up11", "5"]
    assert crossed(tree.route("d1", "d5")) == ["1", "up01", "up11", "5"]
    assert crossed(tree.route("d0", "d6")) == ["0", "up00", "up10", "6"]
    assert {c.share for c in tree.route("d0", "d6")} == {1.0}
    assert crossed(tree.route("d0", "d3")) == ["0", "3"]


def test_routes_by_destination_are_so_even_that_a_shift_of_all_shares_no_link():
    tree = fat_tree("destination")
    for shift in range(1, 8):
        used = [
            (crossing.link.name, crossing.forward)
            for number in range(8)
            for crossing in tree.route(f"d{number}", f"d{(number + shift) % 8}")
        ]
        assert max(used.count(one) for one in used) <= 2
