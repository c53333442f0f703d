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


def last_level_cache() -> int:
    """Return the size above which stores stream, generously."""
    try:
        size = Path("/sys/devices/system/cpu/cpu0/cache/index3/size").read_text()
        return int(size.strip().removesuffix("K")) << 10
    except OSError:
        return 32 << 20


@pytest.mark.skipif(last_level_cache() > 64 << 20, reason="takes more memory than a test should")
@pytest.mark.parametrize(("excess", "shift"), [(0, (1, 0)), (63, (0, 5)), (4097, (13, 40))])
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


def test_nothing_is_no_mismatch() -> None:
    fill(0, 0, 1, Pattern.WORDS, False, CPUS)
    assert first_mismatch(0, 0, 1, Pattern.WORDS, CPUS) is None
    assert checksum(0, 0, CPUS) == 0
