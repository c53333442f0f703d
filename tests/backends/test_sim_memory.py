"""A simulated buffer behaves as if all of its bytes were real."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import content
from linkgauge.backends.protocol import Pattern
from linkgauge.backends.sim.memory import WINDOW, MemoryBudget, SimBuffer, exchange, move
from linkgauge.model.errors import AllocationError
from linkgauge.model.memory import host
from linkgauge.model.notation import parse_memory

PLACE = parse_memory("sim:0")
SIZES = st.sampled_from([1, 511, 1024, WINDOW - 1, WINDOW, WINDOW + 1, WINDOW + 513, 5 * WINDOW])


def buffer(size):
    return SimBuffer(PLACE, size, MemoryBudget({PLACE: 1 << 40}))


def real(size, pattern, seed, inverted):
    return bytearray(content(size, pattern, seed, inverted))


def real_exchange(source, destination, size):
    for start in range(0, size, 512):
        part = slice(start, min(start + 512, size))
        if start // 512 % 2:
            destination[part] = source[part]
        else:
            source[part] = destination[part]


PATTERNS = [pattern for pattern in Pattern if not pattern.is_of_numbers]
FILLS = st.tuples(st.sampled_from(PATTERNS), st.integers(1, 3), st.booleans())
STEPS = st.lists(
    st.sampled_from(["there", "back", "exchange", "flip source", "flip destination"]), max_size=5
)


@given(SIZES, FILLS, FILLS, STEPS, st.data())
def test_whatever_is_done_to_buffers_they_compare_as_real_bytes_do(size, one, other, steps, data):
    simulated = [buffer(size), buffer(size)]
    bytes_ = [real(size, *one), real(size, *other)]
    for place, fill in enumerate((one, other)):
        simulated[place].fill(size, *fill)
    for step in steps:
        if step.startswith("flip"):
            place = step.endswith("destination")
            offset, bit = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 7))
            simulated[place].flip(offset, bit)
            bytes_[place][offset] ^= 1 << bit
        elif step == "exchange":
            exchange(*simulated, size)
            real_exchange(*bytes_, size)
        else:
            source, destination = (0, 1) if step == "there" else (1, 0)
            move(simulated[source], simulated[destination], size)
            bytes_[destination][:] = bytes_[source]
    for place in (0, 1):
        for pattern in PATTERNS:
            for seed in (1, 2, 3):
                expected = content(size, pattern, seed, False)
                agree = bytes_[place] == expected
                found = simulated[place].first_mismatch(size, pattern, seed)
                assert (found is None) == agree
                if one[:2] == other[:2] == (pattern, seed) and found is not None:
                    differing = (at for at in range(size) if bytes_[place][at] != expected[at])
                    assert found == next(differing)


def test_a_place_gives_no_more_than_it_has_and_takes_back():
    room = MemoryBudget({PLACE: 1000, host(0): 10})
    first = SimBuffer(PLACE, 600, room)
    with pytest.raises(AllocationError, match=r"allocate 500 B of sim:0: .* 400 B are left"):
        SimBuffer(PLACE, 500, room)
    first.free()
    first.free()
    SimBuffer(PLACE, 1000, room)
    with pytest.raises(AllocationError):
        SimBuffer(PLACE, 1, room)
