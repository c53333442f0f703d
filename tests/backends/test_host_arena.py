"""Memory on which kernels take turns."""

from __future__ import annotations

import ctypes
import sys

import pytest

from linkgauge import _native
from linkgauge.backends.host_arena import NativeArena
from linkgauge.backends.host_kernels import OPS
from linkgauge.machine.host import read_host

CPU = read_host().nodes[0].cpus[0]


@pytest.fixture
def arena():
    made = NativeArena(None, [CPU], 1 << 30, beyond=False)
    yield made
    made.close()


def numbers(arena):
    count = arena._size // ctypes.sizeof(ctypes.c_double)
    return (ctypes.c_double * count).from_address(arena._memory.address)


def test_kernels_compute_on_normal_numbers_whatever_ran_before(arena):
    """Denormal ones, as small integers are when they are read so, take 30 times as long."""
    for op in (*OPS, *reversed(OPS)):
        arena.take_turns(op, [_native.default_kernel(op, False)], 3, 0.001)
        found = set(numbers(arena)[:: 512 // 8])
        assert all(number == 0 or abs(number) >= sys.float_info.min for number in found)
    assert 1.0 in found


def test_each_kernel_has_as_many_turns_as_the_others(arena):
    names = _native.kernels(_native.Op.COPY)
    paces = arena.take_turns(_native.Op.COPY, names, 3, 0.001)
    assert {name: len(turns) for name, turns in paces.items()} == dict.fromkeys(names, 3)
    assert all(pace > 0 for turns in paces.values() for pace in turns)
