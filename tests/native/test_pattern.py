"""Patterns, checksums and every operation are exact at any size and alignment."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge._native import (
    Job,
    Op,
    Pattern,
    checksum,
    fill,
    first_mismatch,
)
from native.arena import (
    CPUS,
    LARGE,
    PATTERNS,
    Arena,
    cpu_lists,
    expected,
    offsets,
    patterns,
    quick,
    sample,
    seeds,
    sizes,
    team_of,
    xor_of,
)


@quick
@given(sizes, offsets, seeds, patterns, st.booleans(), cpu_lists)
def test_fill_follows_its_definition(
    size: int, offset: int, seed: int, pattern: Pattern, inverted: bool, cpus: list[int]
) -> None:
    arena = Arena(size, offset)
    fill(arena.address, size, seed, pattern, inverted, cpus)
    wanted = expected(size, seed, pattern)
    assert np.array_equal(arena.bytes, ~wanted if inverted else wanted)
    assert arena.guarded()
    assert first_mismatch(arena.address, size, seed, pattern, cpus) == (0 if inverted else None)


@quick
@given(sizes, offsets, seeds, patterns, cpu_lists, st.data())
def test_first_mismatch_is_exact(
    size: int, offset: int, seed: int, pattern: Pattern, cpus: list[int], data: st.DataObject
) -> None:
    arena = Arena(size, offset)
    fill(arena.address, size, seed, pattern, False, cpus)
    flipped = data.draw(st.lists(st.integers(0, size - 1), min_size=1, max_size=3))
    for at in set(flipped):
        arena.bytes[at] ^= 1 << data.draw(st.integers(0, 7))
    assert first_mismatch(arena.address, size, seed, pattern, cpus) == min(flipped)


@quick
@given(sizes, offsets, st.integers(0, 2**32 - 1), cpu_lists)
def test_checksum_is_the_xor_of_words(size: int, offset: int, seed: int, cpus: list[int]) -> None:
    arena = Arena(size, offset)
    arena.bytes[:] = np.random.default_rng(seed).integers(0, 256, size, np.uint8)
    assert checksum(arena.address, size, cpus) == xor_of(arena.bytes)


@quick
@given(sizes, offsets, offsets, seeds, cpu_lists, st.integers(1, 3))
def test_every_op_is_exact(
    size: int, source_at: int, destination_at: int, seed: int, cpus: list[int], loops: int
) -> None:
    source, copied, written = Arena(size, source_at), Arena(size, destination_at), Arena(size, 3)
    fill(source.address, size, seed, Pattern.WORDS, False, cpus)
    jobs = (
        Job(Op.COPY, source.address, copied.address, size, 0, cpus),
        Job(Op.WRITE, 0, written.address, size, seed, cpus),
        Job(Op.READ, source.address, 0, size, 0, cpus),
    )
    with team_of(*jobs) as team:
        assert sample(team, loops) == [0, 0, xor_of(expected(size, seed, Pattern.WORDS))]
    assert np.array_equal(copied.bytes, expected(size, seed, Pattern.WORDS))
    assert np.array_equal(written.bytes, expected(size, seed, Pattern.CONSTANT))
    assert np.array_equal(source.bytes, expected(size, seed, Pattern.WORDS))
    assert source.guarded()
    assert copied.guarded()
    assert written.guarded()


def last_level_cache() -> int:
    """Return the size above which stores stream, generously."""
    try:
        size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text()
        return int(size.strip().removesuffix("K")) << 10
    except OSError:
        return 32 << 20


@pytest.mark.skipif(last_level_cache() > 64 << 20, reason="takes more memory than a test should")
@pytest.mark.parametrize("excess", [0, 1, 63, 4097])
@pytest.mark.parametrize("shift", [(0, 0), (1, 0), (0, 5), (13, 40)])
def test_streamed_ops_are_exact(excess: int, shift: tuple[int, int]) -> None:
    size = last_level_cache() + 64 + excess
    source, destination = Arena(size, shift[0]), Arena(size, shift[1])
    cpus = CPUS[:1] * 3
    fill(source.address, size, 5, Pattern.WORDS, False, cpus)
    assert np.array_equal(source.bytes, expected(size, 5, Pattern.WORDS))
    with team_of(Job(Op.COPY, source.address, destination.address, size, 0, cpus)) as team:
        sample(team)
    assert first_mismatch(destination.address, size, 5, Pattern.WORDS, cpus) is None
    with team_of(Job(Op.WRITE, 0, destination.address, size, 9, cpus)) as team:
        sample(team)
    assert first_mismatch(destination.address, size, 9, Pattern.CONSTANT, cpus) is None
    assert source.guarded()
    assert destination.guarded()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("at", [0, 7, 511, 512, 4096, 50_001, LARGE - 1])
def test_a_flipped_byte_is_found(pattern: Pattern, at: int) -> None:
    arena = Arena(LARGE, 0)
    fill(arena.address, LARGE, 3, pattern, False, CPUS)
    arena.bytes[at] ^= 0x10
    assert first_mismatch(arena.address, LARGE, 3, pattern, CPUS * 3) == at


def test_nothing_is_no_mismatch() -> None:
    fill(0, 0, 1, Pattern.WORDS, False, CPUS)
    assert first_mismatch(0, 0, 1, Pattern.WORDS, CPUS) is None
    assert checksum(0, 0, CPUS) == 0
