"""A simulated buffer behaves as if all of its bytes were real."""

from hypothesis import given
from hypothesis import strategies as st

from fakes import content
from linkgauge.backends.protocol import Copy, Pattern, run
from linkgauge.backends.sim.backend import simulate
from linkgauge.backends.sim.machine import described
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import EngineSettings

WINDOW = 4096
"""Bytes of a simulated buffer that are real."""
SIZES = st.sampled_from([1, 511, 1024, WINDOW - 1, WINDOW, WINDOW + 1, WINDOW + 513, 5 * WINDOW])


MACHINE = simulate(described("ppu-8"), EngineSettings())
PLAIN = parse_transfer("sim:0 -> sim:1 by ce")
BOTH = parse_transfer("sim:0 <-> sim:1 by sim:0.sm")


def carry_out(transfer, source, destination, size):
    group = MACHINE.prepare([Copy(transfer, source, destination, size, 1)])
    run(group, 1)


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
    simulated = [MACHINE.allocate(memory, size, PLAIN.engine) for memory in PLAIN.memories]
    bytes_ = [real(size, *one), real(size, *other)]
    for place, fill in enumerate((one, other)):
        MACHINE.fill(simulated[place], size, *fill)
    for step in steps:
        if step.startswith("flip"):
            place = step.endswith("destination")
            offset, bit = data.draw(st.integers(0, size - 1)), data.draw(st.integers(0, 7))
            simulated[place].flip(offset, bit)
            bytes_[place][offset] ^= 1 << bit
        elif step == "exchange":
            carry_out(BOTH, *simulated, size)
            real_exchange(*bytes_, size)
        else:
            source, destination = (0, 1) if step == "there" else (1, 0)
            carry_out(PLAIN, simulated[source], simulated[destination], size)
            bytes_[destination][:] = bytes_[source]
    for place in (0, 1):
        for pattern in PATTERNS:
            for seed in (1, 2, 3):
                expected = content(size, pattern, seed, False)
                agree = bytes_[place] == expected
                found = MACHINE.first_mismatch(simulated[place], size, pattern, seed)
                assert (found is None) == agree
                if one[:2] == other[:2] == (pattern, seed) and found is not None:
                    differing = (at for at in range(size) if bytes_[place][at] != expected[at])
                    assert found == next(differing)
    for each in (*simulated, *simulated):
        each.free()  # again, which changes nothing
