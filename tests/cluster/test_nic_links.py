"""Where another tool's server is reached."""

from contextlib import closing

import pytest

from linkgauge.backends.protocol import Copy
from linkgauge.backends.rank import SpannedBuffer
from linkgauge.model.errors import BackendError
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.notation import parse_transfer
from linkgauge.rooms.network import links as nic_links

LOOPBACK = Interface(name="lo", addresses=("127.0.0.1", "::1"))
FABRIC = Interface(name="ib0", rdma="mlx5_0", addresses=("fd00::2",))
OFFICE = Interface(name="eth0", addresses=("fd01::2", "10.0.0.2"))


def reached(nics, kind):
    """The address of rank 1's server, whose interface 1 is named."""
    transfer = parse_transfer(f"host:0@0 -> host:0@1 by nic:1.{kind}")
    with closing(nic_links.Door(nics)) as door:
        there = SpannedBuffer(transfer.destination, 8, transfer.engine)
        there.handle = door.handle()
        address, port = door.outside_of(Copy(transfer, None, there, 8, seed=0))
        assert port == door.outside
    return address


def test_iperf3_is_reached_at_the_interface_that_it_measures():
    assert reached((LOOPBACK, FABRIC, OFFICE), "tcp") == "fd00::2"


def test_perftest_is_reached_by_ipv4_wherever_the_host_has_it():
    assert reached((LOOPBACK, FABRIC, OFFICE), "rdma") == "10.0.0.2"
    assert reached((LOOPBACK, FABRIC), "rdma") == "fd00::2"
    own = Interface(name="ib0", rdma="mlx5_0", addresses=("fd00::2", "10.1.0.2"))
    assert reached((LOOPBACK, own, OFFICE), "rdma") == "10.1.0.2"


def test_a_host_without_any_address_is_named():
    with pytest.raises(BackendError, match="rank 1 has no IP address"):
        reached((LOOPBACK, Interface(name="ib0", rdma="mlx5_0")), "rdma")
