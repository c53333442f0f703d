"""Cells of a simulated machine that differ only in names share repetitions; all others do not."""

from __future__ import annotations

from contextlib import closing
from zlib import crc32

import pytest
from msgspec.structs import replace

from linkgauge.engine.measuring.equivalent import DRAWS
from linkgauge.engine.workers.outcomes import FIRST, Repetition
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.transfer import Report
from sim_kit import MACHINE, SIZE, planned, settings

MANY = 24
LARGE = MACHINE.replace("count: 4", f"count: {MANY}").replace("sim:0..3", f"sim:0..{MANY - 1}")
SAME_DRAW = next(n for n in range(1, 99) if crc32(b"%d" % n) % DRAWS == crc32(b"0") % DRAWS)
"""The number of a cell that gets the same repetition as cell 0, if they are equivalent."""
NOISY = LARGE.replace("noise: 0%", "noise: 1%")


def pair(number, first, second, **more):
    return planned(f"sim:{first} -> sim:{second} by ce", number=number, **more)


def neighbours():
    """One cell for each device and the next."""
    return [pair(number, number, (number + 1) % MANY) for number in range(MANY)]


def measured(cells, *faults, machine=NOISY, repetition=FIRST, calls=None):
    with closing(LocalWorker(settings(*faults, machine=machine))) as worker:
        if calls is not None:
            worker._on_phase = lambda phase: calls.append(phase) if phase == "verify" else None
        return [one for cell in cells for one in worker.measure([cell], SIZE, repetition)]


def test_alike_cells_share_a_few_repetitions():
    cells, repetitions = neighbours(), []
    found = measured(cells, calls=repetitions)
    assert len({one.samples for one in found}) == len(repetitions) <= DRAWS < MANY
    assert len(repetitions) > DRAWS // 2


def test_each_cell_keeps_its_own_names():
    cells = neighbours()
    for cell, one in zip(cells, measured(cells), strict=True):
        (transfer,) = cell.transfers
        ends = [str(memory) for memory in transfer.memories]
        assert (one.row, one.column, one.transfers) == (cell.row, cell.column, cell.transfers)
        assert [placed.memory for placed in one.placement] == ends
        assert {reading.memory for reading in one.readings} == set(ends)


def test_shared_repetitions_are_those_that_each_cell_would_have_alone():
    cells = neighbours()
    together = measured(cells)
    assert [measured([cell])[0].samples for cell in cells[::5]] == [
        one.samples for one in together[::5]
    ]


@pytest.mark.parametrize(
    "fault",
    ["slow sim:3 rate=50%", "jitter sim:3 sigma=5%", "stall sim:3 every=2 for=0.01",
     "flip sim:3", "slow sim:3-sim:4 rate=50%", "drift sim:3 per_cell=-1%"],
)  # fmt: skip
def test_a_fault_shows_in_its_cells_and_in_no_others(fault):
    cells = neighbours()
    faulty = {2, 3} if "sim:3-sim:4" not in fault else {3}
    healthy = measured(cells)
    for number, (one, before) in enumerate(zip(measured(cells, fault), healthy, strict=True)):
        same = (one.samples, one.status) == (before.samples, before.status)
        assert same == (number not in faulty), number


@pytest.mark.parametrize(
    "other",
    [pair(90, 0, 1, report=Report.BEST),
     planned("sim:0 -> sim:1 by sm", number=90),
     planned("sim:0 -> sim:1 by ce x2", number=90),
     planned("sim:0 -> sim:0 by ce", number=90),
     planned("sim:0 -> host:0 by ce", number=90),
     planned("sim:0 -> sim:1 by ce", "sim:1 -> sim:0 by ce", number=90),
     planned("sim:0 -> sim:1 by ce", "sim:0 -> sim:2 by ce", number=90)],
    ids=str,
)  # fmt: skip
def test_cells_of_other_kinds_are_not_alike(other):
    with closing(LocalWorker(settings(machine=LARGE))) as worker:
        worker.survey(["sim"])
        keys = [worker._simulated.likeness(one, SIZE) for one in (pair(0, 0, 1), other)]
        assert keys[0].key != keys[1].key
        assert worker._simulated.likeness(pair(1, 5, 9), SIZE) == keys[0]
        assert worker._simulated.likeness(pair(1, 5, 9), 2 * SIZE).key != keys[0].key


GROUP = f"  - {{count: {MANY}, model: Test Card, memory: 1G, memory_rate: 1 TB/s}}\n"
HALF = MANY // 2
NODES = "{count: 2, cpus: 8, memory: 4G, rate: 100 GB/s}"


def halves(before, after):
    """A machine whose second half of devices has another property."""
    half = GROUP.replace(f"count: {MANY}", f"count: {HALF}")
    assert GROUP in LARGE
    assert before in half
    return LARGE.replace(GROUP, half + half.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [("memory: 1G", "memory: 2G"), ("TB/s}", "TB/s, memory_latency: 900 ns}"),
     ("TB/s}", "TB/s, peer_access: none}")],
)  # fmt: skip
def test_devices_that_differ_in_any_property_are_not_alike(before, after):
    with closing(LocalWorker(settings(machine=halves(before, after)))) as worker:
        worker.survey(["sim"])
        first, equal, unlike = (
            worker._simulated.likeness(pair(number, number, number + 1), SIZE)
            for number in (0, 2, HALF)
        )
    assert first == equal != unlike


def test_a_buffer_that_fits_one_device_may_not_fit_another():
    cells = [pair(0, 0, 1), pair(SAME_DRAW, HALF, HALF + 1)]
    small = halves("memory: 1G", "memory: 1M")
    with closing(LocalWorker(settings(machine=small))) as worker:
        found = [worker.measure([cell], 2 * SIZE, FIRST)[0].status for cell in cells]
    assert found == ["pass", "error"]


def test_pairs_of_cpus_in_unlike_nodes_are_not_alike():
    node = NODES.replace("count: 2", "count: 1")
    unlike = LARGE.replace(NODES, f"{node}, {node.replace('}', ', latency: 200 ns}')}")
    assert unlike != LARGE
    there, back = (
        replace(planned(f"cpu:{a} -> cpu:{b} by cpu:{a}.cpu"), operation="ping-pong", number=0)
        for a, b in ((0, 8), (8, 0))
    )
    with closing(LocalWorker(settings(machine=unlike))) as worker:
        worker.survey(["sim"])
        assert worker._simulated.likeness(there, SIZE) != worker._simulated.likeness(back, SIZE)


def test_transfers_that_share_parts_with_the_first_may_be_listed_anywhere():
    cells = [
        planned("sim:0 -> sim:1 by ce", "sim:2 -> sim:3 by sm x3", "sim:0 -> sim:4 by ce x2",
                number=0, report=Report.SUM),
        planned("sim:5 -> sim:6 by ce", "sim:5 -> sim:9 by ce x2", "sim:7 -> sim:8 by sm x3",
                number=SAME_DRAW, report=Report.SUM),
    ]  # fmt: skip
    repetitions = []
    one, other = measured(cells, calls=repetitions)
    assert len(repetitions) == 1
    assert one.samples == other.samples
    assert [part.transfer for part in other.parts] == [0, 1, 2]
    assert [part.bytes for part in other.parts] == [SIZE, 2 * SIZE, 3 * SIZE]
    listed = [one.parts[at] for at in (0, 2, 1)]
    assert [part.samples for part in other.parts] == [part.samples for part in listed]
    (alone,) = measured(cells[1:])
    assert alone == other
    assert {placed.memory for placed in other.placement} == {f"sim:{n}" for n in (5, 6, 7, 8, 9)}


def test_a_later_repetition_is_a_new_one():
    cells = neighbours()
    first, second = measured(cells), measured(cells, repetition=Repetition(number=1, taken=6))
    assert all(a.samples != b.samples for a, b in zip(first, second, strict=True))


def test_a_resumed_run_repetitions_cells_as_it_would_have():
    varied, later = NOISY + "noise_moments: 15%\n", Repetition(number=1, taken=6)
    cells = [pair(0, 0, 1), planned("sim:0 -> host:0 by ce", "sim:1 -> host:0 by ce", number=1)]
    with closing(LocalWorker(settings(machine=varied, samples=None))) as worker:
        for cell in cells:
            worker.measure([cell], SIZE, FIRST)
        fresh = [worker.measure([cell], SIZE, later)[0] for cell in cells]
    with closing(LocalWorker(settings(machine=varied, samples=None))) as worker:
        assert [worker.measure([cell], SIZE, later)[0] for cell in cells] == fresh


@pytest.mark.parametrize("passed", [(0, 24), (24, 0)], ids=["in this run", "in earlier runs"])
def test_repeated_rounds_have_other_noise(passed):
    cells = neighbours()
    again, before = passed
    simulation = replace(settings(machine=NOISY).simulation, passed=before)
    with closing(LocalWorker(replace(settings(machine=NOISY), simulation=simulation))) as worker:
        later = [worker.measure([one], SIZE, Repetition(passed=again))[0] for one in cells]
    assert all(a.samples != b.samples for a, b in zip(measured(cells), later, strict=True))
