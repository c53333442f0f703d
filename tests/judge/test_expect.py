"""What is expected follows from what the readers found, and the arithmetic is shown."""

from itertools import product

import pytest
from msgspec.structs import replace

from fakes import device, machine
from judge_kit import expect
from linkgauge.judge.dram import Ceilings
from linkgauge.judge.expect import Expectations
from linkgauge.model.inventory import (
    Accelerator,
    FabricLink,
    HostDetails,
    Inventory,
    PciFunction,
    PciLink,
    Reading,
)
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, PlannedCell
from linkgauge.model.transfer import Report

GEN5 = PciLink(speed=32, width=16, max_speed=32, max_width=16)
SIZE = 1 << 30
DOWN_256 = 63.015 * 128 / 148
UP_256 = 63.015 * 256 / 280


def function(address, parent=None, link=GEN5, **more):
    defaults = {"max_payload": 256, "max_read_request": 512, "numa_node": 0}
    return PciFunction(address=address, parent=parent, link=link, **(defaults | more))


def server(count=2, pci=None, accelerators=None, nodes=1, **host):
    """Devices `fake:N` at 0000:0N:00.0, each below a root port of its own, without fabric."""
    addresses = [f"0000:{n + 1:02x}:00.0" for n in range(count)]
    if pci is None:
        pci = []
        for n, address in enumerate(addresses):
            port = f"0000:00:0{n + 1}.0"
            pci += [function(port), function(address, port)]
    if accelerators is None:
        accelerators = [
            Accelerator(memory=f"fake:{n}", model="Card", memory_rate=4e12) for n in range(count)
        ]
    devices = [device(n, pci=address) for n, address in enumerate(addresses)]
    inventory = Inventory(
        host=HostDetails(**host), pci=tuple(pci), accelerators=tuple(accelerators)
    )
    return replace(machine(devices, nodes=nodes), inventory=inventory)


def planned(text, report=Report.FIRST):
    return PlannedCell("0", "0", parse_transfers(text), report)


def expected(text, of, report=Report.FIRST, size=SIZE, ceilings=None):
    return expect(planned(text, report), size, of, ceilings)


def gigabytes(value):
    return None if value is None else value / 1e9


def close(value):
    return pytest.approx(value, rel=1e-3)


def fabric(remotes, rate=25e9, kind="nvlink", active=True, **more):
    return tuple(FabricLink(n, kind, active, rate=rate, remote=r, **more) for n, r in
                 enumerate(remotes))  # fmt: skip


def joined(links):
    """Two devices with these links each, no memory rate."""
    return server(accelerators=[
        Accelerator(memory=f"fake:{n}", model="Card", links=some) for n, some in enumerate(links)
    ])  # fmt: skip


class TestPcie:
    def test_a_write_is_the_link_less_headers_of_packets_of_max_payload(self):
        found = expected("fake:0 -> host:0 by ce", server())
        assert gigabytes(found.theoretical) == close(63.02)
        assert gigabytes(found.achievable) == close(UP_256)
        assert found.because == (
            "PCIe 32 GT/s x16 × 128b/130b = 63.02 GB/s; "
            "TLP 256 B + 24 B of a write: 91.4% -> 57.61 GB/s"
        )

    def test_a_read_is_answered_in_completions(self):
        found = expected("host:0 -> fake:0 by ce", server())
        assert gigabytes(found.achievable) == close(DOWN_256)
        assert "TLP 128 B + 20 B of a completion" in found.because

    def test_kernels_write_cache_lines(self):
        found = expected("fake:0 -> host:0 by sm", server())
        assert gigabytes(found.achievable) == close(63.015 * 128 / 152)

    def test_a_smaller_max_payload_of_any_bridge_counts(self):
        pci = [function("0000:00:01.0", max_payload=128), function("0000:01:00.0", "0000:00:01.0")]
        found = expected("fake:0 -> host:0 by ce", server(1, pci))
        assert gigabytes(found.achievable) == close(63.015 * 128 / 152)

    def test_an_unknown_max_payload_is_assumed_and_said_to_be(self):
        pci = [function("0000:01:00.0", max_payload=None)]
        found = expected("fake:0 -> host:0 by ce", server(1, pci))
        assert gigabytes(found.achievable) == close(UP_256)
        assert "256 B (assumed)" in found.because

    @pytest.mark.parametrize(
        ("speed", "width", "rate"), [(2.5, 16, 4.0), (8, 8, 7.877), (16, 16, 31.51), (64, 16, 118)]
    )
    def test_the_narrowest_link_of_the_path_counts(self, speed, width, rate):
        narrow = PciLink(speed=speed, width=width, max_speed=64, max_width=16)
        wide = PciLink(speed=64, width=16, max_speed=64, max_width=16)
        for links in ((narrow, wide), (wide, narrow)):
            pci = [function("0000:00:01.0", link=links[0]),
                   function("0000:01:00.0", "0000:00:01.0", link=links[1])]  # fmt: skip
            found = expected("host:0 -> fake:0 by ce", server(1, pci))
            assert gigabytes(found.theoretical) == close(rate)

    def test_both_ways_pay_for_the_requests_of_the_other(self):
        found = expected("fake:0 <-> host:0 by sm", server())
        # Half of the bytes are written, 24 B for 128; the other half asks, 24 B for 128.
        assert gigabytes(found.theoretical) == close(63.015)
        assert gigabytes(found.achievable) == close(63.015 / ((152 + 24) / 128))

    def test_a_link_above_that_transfers_share_is_divided(self):
        root, up = "0000:00:01.0", "0000:02:00.0"
        pci = [function(root), function(up, root)]
        for n in (1, 2):
            down = f"0000:03:0{n}.0"
            pci += [function(down, up), function(f"0000:0{n}:00.0".replace("02", "04"), down)]
        of = server(2, pci)
        of = replace(of, devices={"fake": (device(0, pci="0000:01:00.0"),
                                           device(1, pci="0000:04:00.0"))})  # fmt: skip
        found = expected("fake:0 -> host:0 by ce & fake:1 -> host:0 by ce x2", of)
        assert gigabytes(found.theoretical) == close(63.015 / 2)
        assert "2 transfers at once: 31.51 GB/s" in found.because
        # The way from one to the other turns below the switch's upstream port.
        within = expected("fake:0 -> fake:1 by ce", of)
        assert gigabytes(within.achievable) == close(UP_256)

    def test_what_the_host_carries_of_several_devices_is_unknown(self):
        found = expected("fake:0 -> host:0 by ce & fake:1 -> host:0 by ce x2", server())
        assert gigabytes(found.theoretical) == close(63.015)
        assert found.achievable is None
        assert "how much the host carries for several devices" in found.because

    def test_the_link_is_that_under_load(self):
        idle = PciLink(speed=2.5, width=16, max_speed=32, max_width=16)
        pci = [function("0000:00:01.0", link=idle),
               function("0000:01:00.0", "0000:00:01.0", link=idle)]  # fmt: skip
        of = server(1, pci)
        cell = CellResult("0", "0", parse_transfers("fake:0 -> host:0 by ce"), Report.FIRST, "pass")
        assert gigabytes(expect(cell, SIZE, of).theoretical) == close(4)
        reading = Reading(memory="fake:0", count=3, link_speed=32, link_width=16)
        loaded = replace(cell, readings=(reading,))
        assert gigabytes(expect(loaded, SIZE, of).theoretical) == close(63.015)

    def test_a_link_below_its_maximum_is_said(self):
        slow = PciLink(speed=8, width=8, max_speed=32, max_width=16)
        found = expected("fake:0 -> host:0 by ce", server(1, [function("0000:01:00.0", link=slow)]))
        assert "PCIe 8 GT/s x8 (of 32 GT/s x16)" in found.because

    def test_a_virtual_machine_shows_the_device_s_own_link_only(self):
        virtual = PciLink(speed=2.5, width=1, max_speed=2.5, max_width=1)
        pci = [function("0000:00:01.0", link=virtual), function("0000:01:00.0", "0000:00:01.0"),
               function("0000:02:00.0")]  # fmt: skip
        of = server(2, pci, hypervisor="KVM")
        assert gigabytes(expected("fake:0 -> host:0 by ce", of).theoretical) == close(63.015)
        between = expected("fake:0 -> fake:1 by ce", of)
        assert between.achievable is None
        assert "the virtual machine hides" in between.because

    def test_what_joins_nodes_is_unknown(self):
        found = expected("fake:0 -> host:1 by ce", server(nodes=2))
        assert gigabytes(found.theoretical) == close(63.015)
        assert found.achievable is None
        assert "node" in found.because

    def test_nothing_is_expected_of_a_way_to_a_node_that_is_not_there(self):
        found = expected("fake:0 -> host:7 by ce", server(nodes=2))
        assert found.theoretical is found.achievable is None
        assert found.because == "unknown: the link between fake:0 and host:7 is unknown"

    def test_the_other_node_is_reached_by_the_links_that_lead_to_the_own_one(self):
        links = fabric(["host:0"], rate=225e9, kind="c2c")
        own = Accelerator(memory="fake:0", model="Card", memory_rate=4e12, links=links)
        found = expected("fake:0 -> host:1 by ce", server(1, accelerators=[own], nodes=2))
        assert gigabytes(found.theoretical) == close(225)
        assert found.achievable is None
        assert "node" in found.because

    def test_a_node_that_nothing_tells_is_not_held_against_the_device(self):
        of = server(1, [function("0000:01:00.0", numa_node=None)], nodes=2)
        assert gigabytes(expected("fake:0 -> host:1 by ce", of).achievable) == close(UP_256)

    def test_between_root_ports_only_a_bound_is_known(self):
        found = expected("fake:0 -> fake:1 by ce", server())
        assert gigabytes(found.theoretical) == close(63.015)
        assert found.achievable is None
        assert "host bridge" in found.because

    @pytest.mark.parametrize("link", [PciLink(), PciLink(speed=32), PciLink(width=16)])
    def test_without_speed_or_width_nothing_is_expected(self, link):
        found = expected("fake:0 -> host:0 by ce", server(1, [function("0000:01:00.0", link=link)]))
        assert (found.theoretical, found.achievable) == (None, None)
        assert found.because == "unknown: speed or width of the link of fake:0 is unknown"

    def test_the_library_s_word_counts_where_sysfs_says_nothing(self):
        told = Accelerator(memory="fake:0", model="Card", link=GEN5)
        found = expected("fake:0 -> host:0 by ce", server(1, [], [told]))
        assert gigabytes(found.theoretical) == close(63.015)


class TestFabric:
    def test_direct_links_add_up(self):
        of = joined([fabric(["fake:1"] * 4), fabric(["fake:0"] * 4)])
        found = expected("fake:0 -> fake:1 by ce", of)
        assert gigabytes(found.theoretical) == close(100)
        assert gigabytes(found.achievable) == close(100 * 16 / 18)
        assert found.because == (
            "4 nvlink × 25 GB/s = 100 GB/s; packets of 16 in 18 flits: 88.9% -> 88.89 GB/s"
        )

    @pytest.mark.parametrize(("rate", "left"), [(25e9, 25), (26.562e9, 25), (25.781e9, 25),
                                                (53.125e9, 50), (50e9, 50)])  # fmt: skip
    def test_line_coding_comes_off_the_signalling_rate(self, rate, left):
        of = joined([fabric(["nvswitch"] * 18, rate)] * 2)
        assert gigabytes(expected("fake:0 -> fake:1 by ce", of).theoretical) == close(18 * left)

    def test_links_that_are_down_do_not_count(self):
        down = fabric(["nvswitch"] * 12) + fabric([None] * 6, active=False)
        of = joined([down, fabric(["nvswitch"] * 18)])
        found = expected("fake:0 -> fake:1 by ce", of)
        assert gigabytes(found.theoretical) == close(300)
        assert found.because.startswith("12 of 18 nvlink × 25 GB/s")

    def test_only_switches_that_both_have_count(self):
        of = joined([fabric(["s0", "s1", "s1"]), fabric(["s1", "s2", "s2"])])
        assert gigabytes(expected("fake:0 -> fake:1 by ce", of).theoretical) == close(25)

    def test_a_node_or_a_device_that_both_have_is_no_switch(self):
        of = joined([fabric(["host:0", "fake:2"]), fabric(["host:0", "fake:2"])])
        third = Accelerator(memory="fake:2", model="Card")
        accelerators = (*of.inventory.accelerators, third)
        of = replace(of, inventory=replace(of.inventory, accelerators=accelerators))
        found = expected("fake:0 -> fake:1 by ce", of)
        assert found.theoretical is None
        assert found.because.startswith("unknown: no link joins")

    @pytest.mark.parametrize("remote", [None, "gpu"])
    def test_where_links_lead_nobody_knows_only_a_bound_is(self, remote):
        found = expected("fake:0 -> fake:1 by ce", joined([fabric([remote] * 18)] * 2))
        assert gigabytes(found.theoretical) == close(450)
        assert found.achievable is None

    def test_a_fabric_of_unknown_protocol_says_so(self):
        found = expected("fake:0 -> fake:1 by ce", joined([fabric(["s"], kind="icn")] * 2))
        assert "the overhead of icn packets is unknown" in found.because

    def test_to_one_device_its_own_links_are_shared(self):
        accelerators = [Accelerator(memory=f"fake:{n}", model="Card", links=fabric(["s"] * 2))
                        for n in range(3)]  # fmt: skip
        of = server(3, accelerators=accelerators)
        both = "fake:1 -> fake:0 by ce & fake:2 -> fake:0 by ce"
        total = expected(both, of, Report.TOTAL)
        assert gigabytes(total.theoretical) == close(50)
        assert gigabytes(expected(both, of, Report.FIRST).theoretical) == close(25)

    def test_kernels_of_one_device_take_turns(self):
        accelerators = [
            Accelerator(memory="fake:0", model="Card", links=fabric(["fake:1", "fake:2"])),
            Accelerator(memory="fake:1", model="Card", links=fabric(["fake:0"])),
            Accelerator(memory="fake:2", model="Card", links=fabric(["fake:0"])),
        ]
        of = server(3, accelerators=accelerators)
        engines = {}
        for kind in ("ce", "sm"):
            text = f"fake:0 -> fake:1 by {kind} & fake:0 -> fake:2 by {kind}"
            engines[kind] = expected(text, of, Report.TOTAL)
        assert gigabytes(engines["ce"].achievable) == close(50 * 16 / 18)
        assert gigabytes(engines["sm"].achievable) == close(25 * 16 / 18)
        assert gigabytes(engines["sm"].theoretical) == close(50)

    def test_a_sum_adds_both_directions(self):
        of = joined([fabric(["s"] * 18)] * 2)
        text = "fake:0 -> fake:1 by ce & fake:1 -> fake:0 by ce"
        assert gigabytes(expected(text, of, Report.SUM).theoretical) == close(900)

    def test_a_link_to_the_host_is_used_to_reach_it(self):
        of = joined([fabric(["host:0"], 225e9, "c2c")] * 2)
        assert gigabytes(expected("host:0 -> fake:0 by ce", of).theoretical) == close(225)

    def test_without_a_library_s_word_the_way_between_devices_is_unknown(self):
        found = expected("fake:0 -> fake:1 by ce", server(accelerators=[]))
        assert found.theoretical is None


class TestMemories:
    def test_a_local_copy_reads_and_writes(self):
        found = expected("fake:0 -> fake:0 by ce", server())
        assert gigabytes(found.theoretical) == close(2000)
        assert gigabytes(found.achievable) == close(1800)
        assert found.because == (
            "memory = 4000 GB/s; read and written: 2000 GB/s; "
            "90% of memory bandwidth is reachable: 90.0% -> 1800 GB/s"
        )

    def test_an_unknown_rate_leaves_a_local_copy_unknown(self):
        of = joined([(), ()])
        assert expected("fake:0 -> fake:0 by ce", of).theoretical is None

    @pytest.mark.parametrize(("text", "rate"), [("host:0 -> null", 100), ("null -> host:0", 100),
                                                ("host:0 -> host:0", 50)])  # fmt: skip
    def test_host_memory_is_a_node_s_share_of_the_dimms(self, text, rate):
        found = expected(f"{text} by cpu", server(nodes=2, memory_rate=200e9))
        assert gigabytes(found.theoretical) == close(rate)
        assert "DRAM, one of 2 nodes" in found.because

    def test_else_it_is_the_best_that_was_measured(self):
        ceilings = Ceilings({(0, "read"): 90e9, (0, "copy"): 40e9})
        found = expected("host:0 -> null by cpu", server(), ceilings=ceilings)
        assert (found.theoretical, gigabytes(found.achievable)) == (None, 90)
        assert "measured here" in found.because
        assert found.measured
        assert expected("null -> host:0 by cpu", server(), ceilings=ceilings).achievable is None

    def test_devices_that_share_host_memory_divide_it(self):
        of = joined([fabric(["host:0"], 225e9, "nvlink")] * 2)
        text = "host:0 -> fake:0 by ce & host:0 -> fake:1 by ce x2"
        assert expected(text, of).achievable is None
        ceilings = Ceilings({(0, "read"): 300e9})
        assert gigabytes(expected(text, of, ceilings=ceilings).achievable) == close(150)
        alone = expected("host:0 -> fake:0 by ce", of, ceilings=Ceilings({(0, "read"): 9e9}))
        assert gigabytes(alone.achievable) == close(200)

    def test_between_nodes_few_threads_and_caches_are_unknown(self):
        of = server(nodes=2, memory_rate=200e9)
        for text in ("host:0 -> host:1 by cpu", "host:0 -> null by cpu*1"):
            assert expected(text, of).theoretical is None
        small = replace(of, host=replace(of.host, last_level_cache=64 << 20))
        assert expected("host:0 -> null by cpu", small, size=32 << 20).theoretical is None
        assert expected("host:0 -> null by cpu", small, size=33 << 20).theoretical is not None


def test_latencies_have_no_bound():
    found = expect(planned("host:0 -> null by fake:0.sm", Report.LATENCY), 2 << 20, server(),
                   unit="s")  # fmt: skip
    assert (found.theoretical, found.achievable) == (None, None)
    assert found.because.startswith("unknown")


def test_what_takes_no_longer_than_a_copy_s_start_has_no_achievable_figure():
    found = expected("fake:0 -> host:0 by ce", server(), size=1 << 20)
    assert gigabytes(found.theoretical) == close(63.015)
    assert found.achievable is None
    assert "start" in found.because


def test_a_machine_of_which_nothing_is_known_expects_nothing():
    of = machine([device(0), device(1)])
    for text in ("fake:0 -> host:0 by ce", "fake:0 -> fake:1 by ce", "fake:0 -> fake:0 by ce",
                 "host:0 -> host:0 by cpu", "host:0/pageable -> fake:0 by ce"):  # fmt: skip
        found = expected(text, of)
        assert (found.theoretical, found.achievable) == (None, None)
        assert found.because.startswith("unknown: ")


def test_no_expectation_depends_on_what_was_asked_before():
    """Cells that are alike are answered once: here are those that only look it."""
    rates, links = (4e12, 4e12, 9e10, 4e12), (2, 2, 2, 1)
    of = server(4, nodes=2, accelerators=[
        Accelerator(memory=f"fake:{n}", model="Card", memory_rate=rate, links=fabric(["s"] * count))
        for n, (rate, count) in enumerate(zip(rates, links, strict=True))
    ])  # fmt: skip
    ways = (
        "fake:0 -> fake:1 by ce", "fake:1 -> fake:0 by ce", "fake:0 -> fake:1 by fake:1.ce",
        "fake:0 -> fake:1 by ce x2", "fake:0 -> fake:2 by ce", "fake:0 -> fake:3 by ce",
        "fake:0 -> fake:1 by sm", "fake:0 -> fake:2 by sm", "fake:0 <-> fake:1 by sm",
        "fake:0 -> fake:0 by ce", "fake:2 -> fake:2 by ce", "host:0 -> fake:0 by ce",
        "fake:0 -> host:0 by ce", "fake:1 -> host:0 by ce", "host:1 -> fake:0 by ce",
    )  # fmt: skip
    texts = (*ways, *map(" & ".join, product(ways, ways)))
    together = Expectations(of)
    for text, report in product(texts, (Report.FIRST, Report.SUM, Report.TOTAL)):
        cell = planned(text, report)
        alone = Expectations(of)
        assert together.of(cell, SIZE, "B/s") == alone.of(cell, SIZE, "B/s"), (text, report)
