"""Counters of networks are read before and after cells that may use one, and for no others."""

from typing import ClassVar

import pytest

from linkgauge.engine.measuring import adapter_counters
from linkgauge.engine.measuring.adapter_counters import AdapterCounters
from linkgauge.machine.interfaces import read_interfaces
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import CounterRise, NetworkCounters
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Cell, Report

NICS = tuple(
    Interface(name=name, up=up, kind=kind)
    for name, up, kind in (
        ("lo", True, "loopback"), ("eth0", True, "Ethernet"), ("eth1", False, "Ethernet"),
        ("ib0", True, "InfiniBand"),
    )
)  # fmt: skip


class Reader:
    """A reader whose counters rise by 1 with each reading."""

    made: ClassVar = []

    def __init__(self, nics):
        self.names, self.count = [nic.name for nic in nics], 0
        self.made.append(self)

    def read(self):
        self.count += 1
        return (NetworkCounters("host", "", {"TcpRetransSegs": self.count}),)


@pytest.fixture(autouse=True)
def reader(monkeypatch):
    monkeypatch.setattr(adapter_counters, "CounterReader", Reader)
    monkeypatch.setattr(Reader, "made", [])


def cell(text):
    return Cell("0", "1", parse_transfers(text), Report.FIRST)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("host:0@0 -> host:0@1 by nic:1.tcp to nic:3", ["eth0"]),
        ("host:0@1 -> host:0@0 by nic:1@1.tcp to nic:3", ["ib0"]),
        ("host:0@0 -> host:0@1 by msg", ["eth0", "ib0"]),
        ("host:0@0 -> host:0@2 by msg", None),
        ("host:0@1 -> host:0@2 by nic:1@1.tcp", None),
    ],
)  # fmt: skip
def test_of_the_interfaces_that_cells_name_else_of_all_that_are_up_between_hosts(text, names):
    counters = AdapterCounters(0, ("a", "b", "a"), NICS)
    counters.begin([cell(text)])
    rose = counters.end({"busy_us": 7, "connections": 1})
    assert [one.names for one in Reader.made] == ([names] if names else [])
    if names:
        assert rose[0].rose == {"TcpRetransSegs": 1}
        assert rose[1] == CounterRise(0, "connection", "", rose[1].seconds, {
            "busy_us": 7, "connections": 1,
        })  # fmt: skip
    else:
        assert rose == ()


def test_the_reading_after_a_cell_is_that_before_the_next_for_a_moment(monkeypatch):
    counters = AdapterCounters(0, ("a", "b"), NICS)
    for _ in range(2):
        counters.begin([cell("host:0@0 -> host:0@1 by nic:1.tcp")])
        assert counters.end({})[0].rose == {"TcpRetransSegs": 1}
    assert Reader.made[0].count <= 4
    monkeypatch.setattr(adapter_counters, "HOLDS", 1e6)
    before = Reader.made[0].count
    counters.begin([cell("host:0@0 -> host:0@1 by nic:1.tcp")])
    assert Reader.made[0].count == before
    monkeypatch.setattr(adapter_counters, "HOLDS", -1.0)
    counters.begin([cell("host:0@0 -> host:0@1 by nic:1.tcp")])
    assert Reader.made[0].count == before + 1


def test_without_interfaces_of_a_backend_those_of_this_machine_count():
    counters = AdapterCounters(0, ("a", "b"), ())
    counters.begin([cell("host:0@0 -> host:0@1 by msg")])
    up = [nic.name for nic in read_interfaces() if nic.up and not nic.is_loopback]
    assert [one.names for one in Reader.made] == ([up] if up else [])
