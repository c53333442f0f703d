"""Every kernel of every operation is exact at any size and alignment, and touches nothing else."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge._native import (
    Job,
    Op,
    Pattern,
    first_mismatch,
    kernels,
)
from native.arena import CPUS, Arena, expected, offsets, quick, sample, seeds, team_of, xor_of

BLOCK = 8 * 4096
"""What the widest kernels go over at once."""
few = settings(max_examples=10)
around_blocks = st.integers(1, 600) | st.integers(BLOCK - 70, 3 * BLOCK + 70)

COMPUTING = {Op.SCALE: Pattern.SCALED, Op.ADD: Pattern.ADDED, Op.TRIAD: Pattern.TRIAD}


def named(ops: Iterable[Op]) -> list[ParameterSet]:
    return [pytest.param(op, name, id=f"{op.name}-{name}") for op in ops for name in kernels(op)]


@pytest.mark.parametrize(("op", "kernel"), named(op for op in Op if op not in COMPUTING))
@quick
@given(size=around_blocks, source_at=offsets, target_at=offsets, seed=seeds)
def test_a_kernel_is_exact(
    op: Op, kernel: str, size: int, source_at: int, target_at: int, seed: int
) -> None:
    source, target = Arena(size, source_at), Arena(size, target_at)
    source.bytes[:] = expected(size, seed, Pattern.WORDS)
    job = Job(op, source.address, target.address, size, seed, CPUS, kernel=kernel)
    with team_of(job) as team:
        (checksum,) = sample(team)
    wanted = {
        Op.READ: np.full(size, 0xA5, np.uint8),
        Op.WRITE: expected(size, seed, Pattern.CONSTANT),
        Op.COPY: expected(size, seed, Pattern.WORDS),
    }
    assert np.array_equal(target.bytes, wanted[op])
    assert checksum == (xor_of(source.bytes) if op == Op.READ else 0)
    assert np.array_equal(source.bytes, expected(size, seed, Pattern.WORDS))
    assert source.guarded()
    assert target.guarded()


@pytest.mark.parametrize(("op", "kernel"), named(COMPUTING))
@few
@given(count=st.integers(1, 80) | st.integers(BLOCK // 8 - 9, 3 * BLOCK // 8 + 9),
       source_at=offsets, target_at=st.integers(0, 16), seed=seeds)  # fmt: skip
def test_a_kernel_computes_exactly(
    op: Op, kernel: str, count: int, source_at: int, target_at: int, seed: int
) -> None:
    size = 8 * count
    source, target = Arena(2 * size, source_at), Arena(size, 8 * target_at, 64)
    source.bytes[:] = given_ = expected(2 * size, seed, Pattern.NUMBERS)
    with team_of(Job(op, source.address, target.address, size, seed, CPUS, kernel=kernel)) as team:
        assert sample(team) == [0]
    assert np.array_equal(target.bytes, expected(size, seed, COMPUTING[op]))
    assert first_mismatch(target.address, size, seed, COMPUTING[op], CPUS) is None
    assert np.array_equal(source.bytes, given_)
    assert source.guarded()
    assert target.guarded()
