"""Figures of a simulated machine follow from what its transfers cross, and from nothing else."""

import msgspec
import pytest

from linkgauge.backends.protocol import run
from linkgauge.model.notation import parse_transfers
from sim_machine import backend, copies, rates, seconds

PCIE = 8e9 / 8 * 16 * 128 / 130 / 1e9


def about(rates):
    """Exact, but for the microsecond that threads take to start."""
    return pytest.approx(rates, rel=1e-3)


def with_mesh(**fields):
    """The small machine with a mesh of other links."""
    return backend({f"link_kinds.mesh.{name}": value for name, value in fields.items()})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host:0 -> sim:0 by ce", [PCIE]),
        ("sim:0 -> host:0 by sm", [PCIE]),
        ("host:0 -> sim:0 by ce & sim:0 -> host:0 by ce", [PCIE, PCIE]),  # full duplex
        ("host:0 -> sim:0 by ce & host:0 -> sim:0 by ce", [PCIE / 2, PCIE / 2]),
        ("host:0 <-> sim:0 by sm", [2 * PCIE]),  # half of the bytes each way
        ("sim:0 -> sim:1 by ce", [40]),
        ("sim:0 -> sim:1 by sim:1.ce & sim:2 -> sim:3 by sim:3.ce", [40, 40]),
        ("sim:0 -> host:0 by ce & sim:1 -> host:0 by ce", [15, 15]),  # their root's uplink
        ("sim:0 -> sim:0 by ce", [500]),  # reads and writes its memory
        ("sim:0 -> null by sm", [1000]),
        ("host:0 -> host:0 by cpu", [50]),
        ("host:0 -> null by cpu", [96]),
        ("host:0 -> null by cpu*2", [24]),
        ("host:1 -> null by host:0.cpu", [30]),
    ],
)
def test_a_transfer_is_as_fast_as_the_narrowest_thing_that_it_crosses(text, expected):
    assert rates(backend(), text) == about(expected)


def test_kernels_of_a_device_run_one_after_another_and_copy_engines_at_once():
    two = "sim:0 -> sim:1 by {0} & sim:0 -> sim:2 by {0}"
    first, second = seconds(backend(), two.format("sm"))
    assert second == pytest.approx(2 * first)
    first, second = seconds(backend(), two.format("ce"))
    assert second == pytest.approx(first)


@pytest.mark.parametrize("size", [1 << 24, 1 << 30])
def test_endless_threads_keep_their_share_until_the_others_are_done(size):
    """The narrow node is shared as long as the device copies, however fast threads are."""
    machine = backend({"host.nodes.0.rate": "20 GB/s"})
    push, threads = copies(
        machine, "sim:0 -> host:0/staging by sm & host:0/staging -> null by cpu*1", size
    )
    group = machine.prepare([push, msgspec.structs.replace(threads, endless=True)])
    taken = run(group, 1).seconds
    assert [size / time / 1e9 for time in taken] == pytest.approx([10, 10], rel=0.01)
    (alone,) = seconds(machine, "host:0/staging -> null by cpu*1", size)
    assert size / alone / 1e9 == pytest.approx(12, rel=0.01)


def test_reads_and_writes_have_their_own_efficiency_and_cost_the_other_way():
    machine = with_mesh(
        efficiency={"read": 0.5, "write": 0.8}, reverse={"read": 0.5, "write": "25%"}
    )
    assert rates(machine, "sim:0 -> sim:1 by sim:1.ce") == about([20])
    assert rates(machine, "sim:0 -> sim:1 by ce") == about([32])
    # r ÷ 0.5 + 0.5 r = 40 and r ÷ 0.8 + 0.25 r = 40
    reads = "sim:0 -> sim:1 by sim:1.ce & sim:1 -> sim:0 by sim:0.ce"
    assert rates(machine, reads) == about([16, 16])
    writes = "sim:0 -> sim:1 by ce & sim:1 -> sim:0 by ce"
    assert rates(machine, writes) == about([40 / 1.5] * 2)


def test_a_link_may_bound_both_directions_together():
    machine = with_mesh(both="60 GB/s")
    assert rates(machine, "sim:0 -> sim:1 by ce") == about([40])
    assert rates(machine, "sim:0 -> sim:1 by ce & sim:1 -> sim:0 by ce") == about([30, 30])


def test_what_is_read_and_written_over_a_link_may_have_a_bound_of_its_own_while_both_are():
    """NVIDIA/nvbandwidth#11: 12 GB/s from the host beside 24 to it, without relaxed ordering."""
    machine = backend({"link_kinds.pcie.both_each": {"read": "6 GB/s", "write": "12 GB/s"}})
    up, down = "host:0 -> sim:0 by ce", "sim:0 -> host:0 by ce"
    assert rates(machine, up) + rates(machine, down) == about([PCIE, PCIE])
    assert rates(machine, f"{down} & {up}") == about([12, 6])
    assert rates(machine, "host:0 <-> sim:0 by sm") == about([12])
    assert rates(machine, f"{down} & host:0 -> sim:1 by ce") == about([PCIE, PCIE])


BELOW = {
    "links": [
        {"kind": "pcie", "each": "sim:0..3", "to": "root0..1"},
        {"kind": "pcie", "each": "root0..1", "to": "host:0"},
    ],
    "switches": [{"name": "root0", "kind": "pcie", "acs_redirect": True},
                 {"name": "root1", "kind": "pcie"}],
    "host.peers": {"passthrough": "5 GB/s", "translating": "2 GB/s"},
}  # fmt: skip


def test_what_a_switch_redirects_goes_through_the_root_complex():
    turned, straight = "sim:0 -> sim:1 by ce", "sim:2 -> sim:3 by ce"
    assert rates(backend(BELOW), f"{turned} & {straight}") == about([5, PCIE])
    assert rates(backend(BELOW | {"host.iommu": "translating"}), turned) == about([2])
    assert rates(backend(BELOW | {"host.peers": {}}), turned) == about([PCIE])
    assert rates(backend(BELOW), "sim:0 -> sim:2 by ce") == about([5])
    # Both copies cross the same uplink, and come back over it.
    both = f"{turned} & host:0 -> sim:1 by ce"
    assert rates(backend(BELOW | {"host.peers": {}}), both) == about([PCIE / 2] * 2)


def test_without_peer_access_copies_are_refused_or_staged():
    (copy, kernel) = map(parse_transfers, ("sim:0 -> sim:1 by ce", "sim:0 -> sim:1 by sm"))
    assert backend({"devices.0.peer_access": "fabric"}).refusal(*kernel) is None
    for changes in (BELOW | {"devices.0.peer_access": "fabric"}, {"devices.0.peer_access": "none"}):
        apart, staging = (backend(changes | {"devices.0.stages": one}) for one in (False, True))
        for refused in (apart.refusal(*copy), apart.refusal(*kernel), staging.refusal(*kernel)):
            assert (refused.kind, str(refused)) == ("peer", "no peer access from sim:0 to sim:1")
        assert staging.refusal(*copy) is None
        assert staging.remarks(*copy)
        assert not staging.remarks(*parse_transfers("sim:0 -> null"))
    # Down and up again, and all of it through the memory of the node.
    narrow = {
        "devices.0.peer_access": "none",
        "devices.0.stages": True,
        "host.nodes.0.rate": "9 GB/s",
    }
    assert rates(backend(narrow), "sim:0 -> sim:1 by ce") == about([4.5])


def test_an_engine_may_be_slower_within_a_device_than_its_memory():
    machine = backend({"devices.0.ce.local": "100 GB/s"})
    assert rates(machine, "sim:0 -> sim:0 by ce") == about([100])
    assert rates(machine, "sim:0 -> sim:0 by sm") == about([500])
    assert rates(machine, "host:0 -> sim:0 by ce") == about([PCIE])


def test_a_copy_may_read_from_another_device_no_faster_than_so():
    machine = backend({"devices.0.ce.peer_read": "10 GB/s"})
    assert rates(machine, "sim:0 -> sim:1 by sim:1.ce & sim:2 -> sim:1 by sim:1.ce") == about(
        [10, 10]
    )
    assert rates(machine, "host:0 -> sim:1 by ce") == about([PCIE])
    for other in ("sim:0 -> sim:1 by ce", "sim:0 -> sim:1 by sim:1.sm"):
        assert rates(machine, other) == about([40])


def test_a_device_gives_and_takes_no_more_than_so_of_all_others_together():
    readers = "sim:0 -> sim:1 by sim:1.ce & sim:0 -> sim:2 by sim:2.ce"
    assert rates(backend({"devices.0.ce.peer_read": "10 GB/s"}), readers) == about([5, 5])
    writers = "sim:1 -> sim:0 by sim:1.sm & sim:2 -> sim:0 by sim:2.sm"
    machine = backend({"devices.0.sm.peer_write": "30 GB/s"})
    assert rates(machine, writers) == about([15, 15])
    assert rates(machine, writers.replace("sm", "ce")) == about([40, 40])


def test_kernels_may_have_a_bound_of_their_own_while_both_ways_are_used():
    both = {"read": "6 GB/s", "write": "12 GB/s"}
    of_kernels = {"link_kinds.pcie.both_each": both, "link_kinds.pcie.sm_both_each": {}}
    kernel = "host:0 <-> sim:0 by sm"
    (free,) = rates(backend(), kernel)
    assert rates(backend(of_kernels), kernel) == about([free])
    narrow = of_kernels | {"link_kinds.pcie.sm_both_each": {"read": "3 GB/s"}}
    assert rates(backend(narrow), kernel) == about([6])
    pair = "sim:0 -> host:0 by ce & host:0 -> sim:0 by ce"
    assert rates(backend(narrow), pair) == about([12, 6])


def test_turns_may_be_uneven_and_both_together_reach_more_or_less():
    turns = {"read": 0.4, "write": 0.7, "reads": 1.1, "writes": 0.9, "mixed": 1.2}
    machine = backend({"host.nodes.0.turns": turns})
    writes, reads = "sim:0 -> host:0 by ce", "host:0 -> sim:0 by ce"
    threads = "host:0 -> null by host:1.cpu", "null -> host:0 by host:1.cpu"
    # Of the 30 GB/s of the links there; the device's own PCIe carries less.
    assert rates(machine, f"{writes} & {threads[0]}") == about([PCIE, 30 * 1.2 * 0.3])
    assert rates(machine, f"{writes} & {threads[1]}") == about([PCIE, 30 * 0.9 * 0.3])
    # What the device reads is a part of what it has alone.
    mine = 30 * 0.4
    assert rates(machine, f"{reads} & {threads[0]}") == about([mine, 30 * 1.1 - mine])
    assert rates(machine, f"{reads} & {threads[1]}") == about([mine, 30 * 1.2 - mine])


def test_a_thread_stages_copies_of_pageable_memory():
    up, down = "host:0/pageable -> sim:0 by ce", "sim:0 -> host:0/pageable by ce"
    assert rates(backend(), f"{up} & {down}") == about([12, 12])
    # Also where faults were looked for before, by what a copy touches.
    machine = backend()
    assert machine.touched(parse_transfers(up)[0]) >= {"host:0", "sim:0"}
    assert rates(machine, up) == about([12])
    # It reads and writes there, too.
    narrow = backend({"host.nodes.0.rate": "30 GB/s"})
    assert rates(narrow, up) == about([10])
    assert "kernels do not reach" in narrow.refusal(parse_transfers(up.replace("ce", "sm"))[0])


def test_a_node_may_take_turns():
    """Threads and devices have it for as long as the link that leads there takes, of 30 GB/s."""
    device, threads = "sim:0 -> host:0 by ce", "host:0 -> null by host:1.cpu"
    machine = backend({"host.nodes.0.turns": True})
    assert rates(machine, device) == about([PCIE])
    assert rates(machine, threads) == about([30])
    assert rates(machine, f"{device} & {threads}") == about([15, 15])
    assert rates(machine, f"{device} & host:0 -> sim:0 by ce") == about([PCIE, PCIE])
    assert rates(backend(), f"{device} & {threads}") == about([PCIE, 30])


def test_traffic_is_split_over_all_shortest_paths():
    ring = [["sim:0", "sim:1"], ["sim:1", "sim:2"], ["sim:2", "sim:3"], ["sim:3", "sim:0"]]
    square = {"links.0": {"kind": "mesh", "pairs": ring}}
    forwarding = square | {"devices.0.forwards": True}
    assert rates(backend(forwarding), "sim:0 -> sim:2 by ce") == about([80])
    # Devices that do not forward leave only the way by the host's sockets.
    assert rates(backend(square), "sim:0 -> sim:2 by ce") == about([PCIE])


def latency(machine, text):
    chase = machine.prepare(copies(machine, text, 2 << 20), "chase")
    return run(chase, 3).seconds[0] / 3 / chase.policy.steps


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("sim:1 -> null by sim:0.sm", 700), ("sim:0 -> null by sim:0.sm", 300),
        ("host:0 -> null by sim:0.sm", 650), ("host:1 -> null by sim:0.sm", 700),
        ("host:1 -> null by host:0.cpu*1", 150),
    ],
)  # fmt: skip
def test_an_access_takes_the_memorys_time_and_that_of_the_links(text, nanoseconds):
    assert latency(backend(), text) * 1e9 == pytest.approx(nanoseconds)
