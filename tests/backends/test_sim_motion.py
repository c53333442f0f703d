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


def test_a_copy_may_read_from_another_device_no_faster_than_so():
    machine = backend({"devices.0.ce.peer_read": "10 GB/s"})
    assert rates(machine, "sim:0 -> sim:1 by sim:1.ce & sim:2 -> sim:1 by sim:1.ce") == about(
        [10, 10]
    )
    assert rates(machine, "host:0 -> sim:1 by ce") == about([PCIE])
    for other in ("sim:0 -> sim:1 by ce", "sim:0 -> sim:1 by sim:1.sm"):
        assert rates(machine, other) == about([40])


def test_a_thread_stages_copies_of_pageable_memory():
    up, down = "host:0/pageable -> sim:0 by ce", "sim:0 -> host:0/pageable by ce"
    assert rates(backend(), f"{up} & {down}") == about([12, 12])
    # Also where faults were looked for before, by what a copy touches.
    machine = backend()
    assert machine._resources.touched(parse_transfers(up)[0]) >= {"host:0", "sim:0"}
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
    return run(chase, 3).seconds[0] / 3 / chase.pace.steps


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("sim:1 -> null by sim:0.sm", 700),
        ("sim:0 -> null by sim:0.sm", 300),
        ("host:0 -> null by sim:0.sm", 650),
        ("host:1 -> null by sim:0.sm", 700),
        ("host:1 -> null by host:0.cpu*1", 150),
    ],
)
def test_an_access_takes_the_memorys_time_and_that_of_the_links(text, nanoseconds):
    assert latency(backend(), text) * 1e9 == pytest.approx(nanoseconds)
