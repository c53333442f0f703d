"""Pointers lead through every line of a range once; what is wrong with a cycle is seen."""

import ctypes
import os
from contextlib import closing

import pytest

from linkgauge._native import LINK, Job, Kind, Memory, Op, Team, cycle_length, link_cycle

CPU = min(os.sched_getaffinity(0))
CPUS = sorted(os.sched_getaffinity(0))
MOST = 1 << 20


@pytest.fixture(scope="module")
def memory():
    with closing(Memory(MOST, Kind.BASE, None, [CPU])) as held:
        yield held


def words(memory, size):
    return (ctypes.c_uint64 * (size // 8)).from_address(memory.address)


LINES = 1000
WORDS = LINK // 8


@pytest.mark.parametrize("offset", [-LINK, 8, LINES * LINK, 1 << 40])
def test_a_pointer_out_of_the_range_is_no_cycle_and_no_crash(memory, offset):
    link_cycle(memory.address, LINES * LINK, 7, CPU)
    words(memory, LINES * LINK)[500 * WORDS] = memory.address + offset
    assert cycle_length(memory.address, LINES * LINK, CPU) == 0


@pytest.mark.parametrize("call", [link_cycle, lambda at, size, _, cpu: cycle_length(at, size, cpu)])
def test_less_than_a_line_and_null_are_refused(memory, call):
    with pytest.raises(ValueError, match="one line"):
        call(memory.address, LINK - 1, 1, CPU)
    with pytest.raises(ValueError, match="null"):
        call(0, 4096, 1, CPU)


def run(jobs, loops=1, batches=1):
    with closing(Team(jobs)) as team:
        team.arm(loops, batches)
        team.open()
        return team.wait()


def chase(memory, hops, size=4096):
    link_cycle(memory.address, size, 1, CPU)
    return Job(Op.READ, memory.address, 0, size, 0, [CPU], chase=hops)


@pytest.mark.skipif(len(CPUS) < 2, reason="needs two CPUs")
@pytest.mark.parametrize("op", list(Op)[:3])
def test_what_is_held_back_moves_no_more_than_its_rate(memory, op):
    """It may be slower on a busy machine, and faster by a millisecond that it was behind."""
    size, rate = 256 << 10, 50e6
    half = memory.address + MOST // 2
    ends = {Op.READ: (half, 0), Op.WRITE: (0, half), Op.COPY: (half, half + size)}[op]
    beside = Job(op, *ends, size, 0, [CPUS[1]], endless=True, rate=rate)
    first, other = run([chase(memory, 1 << 16), beside], loops=200)
    seconds = other.end - other.begin
    assert 0 < other.passes * size <= rate * (seconds + 2e-3) + (64 << 10)
    assert other.end >= first.end - 1e-3


def test_odd_chases_and_rates_are_refused(memory):
    of = (Op.READ, memory.address, 0, 4096, 0)
    with pytest.raises(ValueError, match="one thread"):
        Job(*of, [CPU, CPU], chase=5)
    with pytest.raises(ValueError, match="one thread"):
        Job(Op.WRITE, 0, memory.address, 4096, 0, [CPU], chase=5)
    for rate in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="rate"):
            Job(*of, [CPU], endless=True, rate=rate)
    with pytest.raises(ValueError, match="endless"):
        Job(*of, [CPU], rate=5.0)
