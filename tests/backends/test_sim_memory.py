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


@given(st.integers(0, (1 << 40) - 1), st.integers(0, 7), st.sampled_from(PATTERNS))
def test_a_flipped_bit_is_found_at_any_offset_and_gone_when_flipped_back(offset, bit, pattern):
    large = buffer(1 << 40)
    large.fill(large.size, pattern, 5, inverted=False)
    large.flip(offset, bit)
    assert large.first_mismatch(large.size, pattern, 5) == offset
    large.flip(offset, bit)
    assert large.first_mismatch(large.size, pattern, 5) is None


@pytest.mark.parametrize("size", [1, 7, 8, 100, WINDOW])
def test_the_checksum_of_a_small_buffer_is_the_xor_of_its_words(size):
    small = buffer(size)
    small.fill(size, Pattern.WORDS, 3, inverted=False)
    data = content(size, Pattern.WORDS, 3, False)
    total = 0
    for at in range(0, size, 8):
        total ^= int.from_bytes(data[at : at + 8], "little")
    assert small.checksum(size) == total


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


def test_placement_is_what_was_asked_for():
    room = MemoryBudget({host(1): 1000, PLACE: 1000})
    pinned = SimBuffer(host(1), 8, room).placement()
    assert (pinned.memory, pinned.node, pinned.locked) == ("host:1", 1, True)
    assert SimBuffer(host(1, "pageable"), 8, room).placement().locked is False
    assert SimBuffer(host(1, "huge"), 8, room).placement().huge_bytes == 8
    assert SimBuffer(PLACE, 8, room).placement().node is None
