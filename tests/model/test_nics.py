"""Which interfaces a transfer goes over, and why it cannot."""

import pytest

from linkgauge.model.inventory import Interface
from linkgauge.model.nics import End, able_nics, nic_ends, nic_problem, rdma_nics, usual_nic
from linkgauge.model.notation import parse_transfer
from linkgauge.model.ranks import Rank

LO = Interface(name="lo", up=True, kind="loopback", addresses=("127.0.0.1",))


def eth(name, address=None, **more):
    addresses = (address,) if address else ()
    return Interface(**{"name": name, "up": True, "addresses": addresses, **more})


def rank(number, *nics, host=None):
    return Rank(number, host or f"node{number}", 100 + number, nics=(LO, *nics))


def problem(text, *ranks):
    return nic_problem(parse_transfer(text), {one.number: one for one in ranks})


PAIR = (rank(0, eth("eth0", "10.0.0.1")), rank(1, eth("eth0", "10.0.0.2")))
COPY = "host:0@0 -> host:0@1 by "


@pytest.mark.parametrize(
    ("engine", "ends"),
    [
        ("nic:1.tcp", (End(0, 1), End(1, 1))),
        ("nic:1.tcp to nic:4", (End(0, 1), End(1, 4))),
        ("nic:1@1.tcp to nic:4", (End(0, 4), End(1, 1))),
    ],
)
def test_the_ends_are_the_sources_and_the_destinations(engine, ends):
    assert nic_ends(parse_transfer(COPY + engine)) == ends


def test_interfaces_that_reach_each_other_have_no_problem():
    assert problem(COPY + "nic:1.tcp", *PAIR) is None


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("nic:2.tcp", "rank 0 (node0) has no nic:2: there are nic:0 (lo), nic:1 (eth0)"),
        ("nic:1.tcp to nic:7", "rank 1 (node1) has no nic:7"),
        ("nic:1.rdma", "nic:1 (eth0) of rank 0 (node0) has no device with RDMA"),
        ("nic:0.tcp", "nic:0 (lo) of rank 0 (node0) is a loopback"),
        ("nic:1.tcp to nic:0", "nic:0 (lo) of rank 1 (node1) is a loopback"),
    ],
)
def test_what_is_missing_is_named(engine, words):
    assert words in problem(COPY + engine, *PAIR)


def test_what_is_down_or_has_no_address_is_named():
    down, bare = rank(0, eth("eth0", up=False)), rank(0, eth("eth0"))
    assert "is down: ip link set eth0 up" in problem(COPY + "nic:1.tcp", down, PAIR[1])
    assert "has no IP address" in problem(COPY + "nic:1.tcp", bare, PAIR[1])
    assert "there is no rank 1" in problem(COPY + "nic:1.tcp", PAIR[0])


def test_ranks_of_one_machine_use_its_loopback():
    here = [rank(number, eth("eth0", "10.0.0.1"), host="node") for number in (0, 1)]
    assert able_nics(here[0], here) == (0,)
    assert problem(COPY + "nic:0.tcp", *here) is None


def test_a_bridge_that_every_machine_has_reaches_none():
    bridge = eth("docker0", "172.17.0.1")
    ranks = [rank(n, bridge, eth("eth0", f"10.0.0.{n}")) for n in (1, 2)]
    assert able_nics(ranks[0], ranks) == (2,)


def test_the_fastest_is_the_usual_one_and_of_equals_that_near_the_memory():
    fast = {"speed": 50e9}
    own = rank(0, eth("a", "10.0.0.1", speed=1e9), eth("b", "10.0.1.1", node=0, **fast),
               eth("c", "10.0.2.1", node=1, **fast))  # fmt: skip
    able = able_nics(own, [own, PAIR[1]])
    assert [usual_nic(own, able, node) for node in (0, 1, 9)] == [2, 3, 2]
    assert usual_nic(rank(0), able_nics(rank(0), [rank(0), PAIR[1]]), node=0) is None


def test_those_with_rdma_need_no_address():
    assert rdma_nics(rank(0, eth("a", "10.0.0.1"), eth("b", rdma="mlx5_0"))) == (2,)
    assert rdma_nics(rank(0, eth("a", up=False, rdma="mlx5_0"))) == ()
