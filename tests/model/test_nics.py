"""Which interfaces a transfer can go over, and why not."""

import pytest
from msgspec.structs import replace

from fakes import machine
from linkgauge.engine.plan import check_exists
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.machine import Device
from linkgauge.model.notation import parse_transfer
from linkgauge.model.ranks import Rank

LO = Interface(name="lo", up=True, kind="loopback", addresses=("127.0.0.1",))


def eth(name, address=None, **more):
    addresses = (address,) if address else ()
    return Interface(**{"name": name, "up": True, "addresses": addresses, **more})


def rank(number, *nics, host=None):
    return Rank(number, host or f"node{number}", 100 + number, nics=(LO, *nics))


def check(engine, *ranks):
    """What is said of a copy by this engine between hosts 0 and 1."""
    memories = tuple(
        Device(f"host:0@{one.number}", "host memory", 1 << 30, 1 << 30) for one in ranks
    )
    here = replace(machine([]), ranks=ranks, devices={"net": memories})
    check_exists([parse_transfer(f"host:0@0 -> host:0@1 by {engine}")], here)


PAIR = (rank(0, eth("eth0", "10.0.0.1")), rank(1, eth("eth0", "10.0.0.2")))
TWO = (PAIR[0], rank(1, LO, LO, eth("eth1"), eth("eth2", "10.0.0.2")))


def test_interfaces_that_reach_each_other_have_no_problem():
    check("nic:1.tcp", *PAIR)
    check("nic:1.tcp to nic:4", *TWO)
    here = [rank(number, eth("eth0", "10.0.0.1"), host="node") for number in (0, 1)]
    check("nic:0.tcp", *here)


@pytest.mark.parametrize(
    ("engine", "ranks", "words"),
    [
        ("nic:2.tcp", PAIR, "rank 0 (node0) has no nic:2: there are nic:0 (lo), nic:1 (eth0)"),
        ("nic:1.tcp to nic:7", PAIR, "rank 1 (node1) has no nic:7"),
        ("nic:1.rdma", PAIR, "nic:1 (eth0) of rank 0 (node0) has no device with RDMA"),
        ("nic:0.tcp", PAIR, "nic:0 (lo) of rank 0 (node0) is a loopback"),
        ("nic:1.tcp to nic:0", PAIR, "nic:0 (lo) of rank 1 (node1) is a loopback"),
        # The engine is that of one end, of whichever rank it says.
        ("nic:1@1.tcp to nic:1", TWO, "nic:1 (lo) of rank 1 (node1) is a loopback"),
        ("nic:1.tcp", (rank(0, eth("eth0", up=False)), PAIR[1]), "is down: ip link set eth0 up"),
        ("nic:1.tcp", (rank(0, eth("eth0")), PAIR[1]), "has no IP address"),
        ("nic:1.tcp", PAIR[:1], "there is no rank 1"),
    ],
)
def test_what_is_missing_is_named(engine, ranks, words):
    with pytest.raises(InputError) as refused:
        check(engine, *ranks)
    assert words in str(refused.value)
