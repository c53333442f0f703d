"""Collectives of a simulated machine: what they take, and that their numbers are computed."""

from itertools import product

import pytest

from linkgauge.backends.protocol import CollectingGroup, Copy, run
from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.faults import parse_fault
from linkgauge.engine.measuring.measure import measure_together
from linkgauge.engine.measuring.measurement import Measurement
from linkgauge.engine.measuring.pool import BufferPool
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.errors import Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.collective import (
    COLLECTIVE_NAMES,
    NUMBERS,
    REDUCTIONS,
    Collective,
    bus_factor,
)
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Engine, Report, Transfer
from sim_machine import backend

SIZE = 1 << 20
RATE = 40e9
"""Of a link of the small machine."""
STARTUP = {"devices.0.sm": {"startup": "3 us"}}


def faulty(fault):
    machine = backend()
    return SimBackend(machine._resources, [parse_fault(fault)])


def about(times):
    return pytest.approx(times * 4)


def work(name, **more):
    shape = Collective(name)
    given = {"reduction": "sum"} if shape.reduces else {}
    given |= {"root": 0} if shape.has_root else {}
    return Collective(name, **{**given, **more})


def parts(ranks, size):
    places = [Memory("sim", rank) for rank in range(ranks)]
    return tuple(Transfer(place, place, Engine(place, "ccl"), size) for place in places)


def prepared(machine, collective, size=SIZE, ranks=4):
    copies = []
    sizes = collective.buffer_bytes(size, ranks)
    for transfer, (sent, received) in zip(parts(ranks, size), sizes, strict=True):
        source, destination = (
            machine.allocate(memory, need, transfer.engine) if need else None
            for memory, need in ((transfer.source, sent), (transfer.destination, received))
        )
        copies.append(Copy(transfer, source, destination, size, 1))
    return machine.prepare(copies, collective)


def seconds(group, loops=1):
    return [one / loops for one in run(group, loops).seconds]


def measured(machine, collective, size=SIZE, ranks=4, **settings):
    transfers = parts(ranks, size)
    cell = PlannedCell("0", "0", transfers, Report.TIME, operation=collective)
    asked = Settings((1,), samples=4, **settings)
    one = Measurement(cell, 1, asked, [machine] * ranks)
    (result,) = measure_together([one], asked, BufferPool()).cells
    return result


@pytest.mark.parametrize("name", ["all_reduce", "all_gather", "reduce_scatter", "sendrecv"])
def test_a_ring_carries_its_bus_bytes_over_each_link(name):
    collective = work(name)
    one = backend({"collectives": {"rings": 1}})
    assert seconds(prepared(one, collective)) == pytest.approx(
        [SIZE * bus_factor(name, 4) / RATE] * 4
    )


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("all_reduce", 6), ("all_gather", 3), ("reduce_scatter", 3), ("broadcast", 3),
        ("reduce", 3), ("sendrecv", 1), ("alltoall", 1), ("gather", 1), ("scatter", 1),
        ("hypercube", 2),
    ],
)  # fmt: skip
def test_each_step_takes_the_time_to_start(name, steps):
    (took, *_) = seconds(prepared(backend(STARTUP), work(name), 64))
    assert took == pytest.approx(steps * 3e-6, rel=1e-2)


def test_each_batch_has_its_end():
    group = prepared(backend(), work("all_gather"))
    timing = run(group, 2, 3)
    for seconds, times in zip(timing.seconds, timing.progress, strict=True):
        assert times == pytest.approx([seconds * batch / 3 for batch in range(4)])


def test_a_root_is_a_star_and_pairs_go_all_at_once():
    for name in ("gather", "scatter", "alltoall"):  # each pair has a link of its own
        took = seconds(prepared(backend(), work(name)))
        assert took == pytest.approx([SIZE / 4 / RATE] * 4)
    both = {"devices.0.sm": {"startup": "0 ns", "write": "60 GB/s"}}
    took = seconds(prepared(backend(both), work("alltoall")))
    assert took == pytest.approx([SIZE / 4 / 20e9] * 4)  # three at once out of each


def test_where_no_link_is_the_route_over_the_host_is_taken():
    apart = {"links.0": {"kind": "mesh", "pairs": [["sim:0", "sim:1"], ["sim:2", "sim:3"]]}}
    machine = backend(apart)
    pcie = machine._resources.demand(parse_transfer("sim:1 -> sim:2 by sm"), 0)
    slowest = min(machine._resources.capacity[name] / weight for name, weight in pcie.flow.usage)
    took = seconds(prepared(machine, work("sendrecv")))
    assert took == pytest.approx([SIZE / slowest] * 4)
    alone = {"links": [{"kind": "pcie", "each": "sim:0..1", "to": "root0..1"}]}
    with pytest.raises(Unsupported, match="no link leads from sim:0 to sim:1"):
        prepared(backend(alone), work("sendrecv"), ranks=2)


def test_rings_trees_and_switches_carry_what_they_should():
    """Of four, two rings take half of the bytes each; in two trees none sends more than 3 halves;
    a switch is given all bytes and a share. Unless the description says how many rings there are,
    the fastest way is taken."""

    def takes(machine, name):
        return [one * RATE / SIZE for one in seconds(prepared(machine, work(name)))]

    ring = takes(backend({"collectives": {"rings": 1}}), "all_reduce")[0]
    for how in ({"rings": 2}, {"rings": 9}, {}):
        assert takes(backend({"collectives": how}), "all_reduce") == about([ring / 2])
    for name in ("broadcast", "reduce"):
        assert takes(backend(), name) == about([1 / 2])
    switched = {"switches": [{"name": "root0..1"}, {"name": "nvswitch", "kind": "fabric"}],
                "links.0": {"kind": "mesh", "each": "sim:0..3", "to": "nvswitch"}}  # fmt: skip
    tree, nvls = (switched | {"collectives": {"algorithm": how}} for how in ("tree", "nvls"))
    assert takes(backend(tree), "all_reduce") == about([3 / 2])
    assert takes(backend(nvls), "all_reduce") == about([5 / 4])
    for name in ("all_gather", "reduce_scatter"):  # in a ring: reductions in a switch send more
        assert takes(backend(nvls), name) == about([3 / 4])
    two = seconds(prepared(backend(nvls), work("all_reduce"), ranks=2))
    assert two == pytest.approx([SIZE / RATE] * 2)  # the ring, as NCCL takes it
    half = nvls | {"collectives": {"algorithm": "nvls", "efficiency": "50%"}}
    assert takes(backend(half), "all_reduce") == about([5 / 2])
    reduced = nvls | {"collectives": {"algorithm": "nvls", "reductions": "90%"}}
    assert takes(backend(reduced), "all_reduce") == about([5 / 4 / 0.9])
    reduced["collectives"]["reductions"] = "50%"  # the ring is faster
    assert takes(backend(reduced), "all_reduce") == about([ring])
    assert takes(backend({"collectives": {"algorithm": "nvls"}}), "all_reduce") == about([ring / 2])


@pytest.mark.parametrize(
    ("ranks", "rings"), [(2, 1), (3, 2), (4, 2), (5, 4), (6, 4), (8, 7), (12, 7), (24, 7)]
)
def test_rings_have_links_of_their_own(ranks, rings):
    mesh = {"devices.0.count": ranks, "links.0.mesh": f"sim:0..{ranks - 1}"}
    mesh |= {"links.1": {"kind": "pcie", "pairs": []}}
    took = (seconds(prepared(backend(mesh | {"collectives": {"rings": many}}), work("all_reduce"),
                             SIZE * ranks, ranks)) for many in (1, 7))  # fmt: skip
    alone, together = took
    assert [one / rings for one in alone] == pytest.approx(together)


def test_one_rank_only_copies():
    (took,) = seconds(prepared(backend(), work("all_reduce"), ranks=1))
    assert took == pytest.approx(2 * SIZE / 1e12)
    in_place = work("all_reduce", in_place=True)
    assert seconds(prepared(backend(STARTUP), in_place, ranks=1)) == pytest.approx([3e-6])


EVERY = [
    work(name, type=number, in_place=in_place, **({"reduction": how} if how else {}))
    for name, number, in_place in product(COLLECTIVE_NAMES, NUMBERS, (False, True))
    for how in (REDUCTIONS if Collective(name).reduces else (None,))
]


@pytest.mark.parametrize("size", [8, 2048])
@pytest.mark.parametrize("name", COLLECTIVE_NAMES)
def test_every_number_is_right(name, size):
    machine = backend()
    for one in EVERY:
        if one.collective == name and one.is_checked:
            group = prepared(machine, one, size)
            assert isinstance(group, CollectingGroup)
            assert group.check().count == 0, one


@pytest.mark.parametrize("split", ["MOD 2", "DIV 3", "AND 0x1"])
def test_each_group_has_numbers_of_its_own(split):
    group = prepared(backend(), work("all_gather", split=split), 8192)
    assert group.check().count == 0


@pytest.mark.parametrize("offset", [0, 2000, 4095, 4096, 900_000])
def test_an_element_altered_in_one_rank_is_found(offset):
    machine = faulty(f"flip sim:2 offset={offset} bit=6")
    result = measured(machine, work("all_reduce"))
    assert (result.status, result.kind, result.wrong) == ("fail", "wrong-bytes", 1)
    assert result.reason == f"1 element is wrong, first element {offset // 4} of rank 2"
