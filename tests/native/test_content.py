"""The native core stores what ranks send, and counts what is wrong, as plain Python does."""

from __future__ import annotations

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collective_kit import carried_out, sent, stored
from linkgauge._native import count_wrong, fill_content
from linkgauge.model.operations.collective import NUMBERS, REDUCTIONS, Collective, reduces
from linkgauge.model.operations.contents import content_of, origin_of, tolerance
from native.arena import CPUS, cpu_lists, quick

SIZE = 2048
SHIFT = 1
"""The buffers are not aligned."""


def content(work: Collective, ranks: int, seed: int) -> tuple[int, int, int, int, int, float]:
    of = content_of(work, ranks)
    reduction = -1 if work.reduction is None else REDUCTIONS.index(work.reduction)
    return seed, ranks, of.share, of.largest, reduction, tolerance(work, ranks)


def held(data: bytes) -> ctypes.Array[ctypes.c_char]:
    return ctypes.create_string_buffer(bytes(SHIFT) + data)


@st.composite
def works(draw: st.DrawFn) -> tuple[Collective, int]:
    ranks = draw(st.integers(1, 6))
    name = draw(st.sampled_from(["all_reduce", "reduce_scatter", "alltoall", "gather", "scatter"]))
    number = draw(st.sampled_from(sorted(NUMBERS)))
    # An average of whole numbers is cut off, of others it may be off.
    known = [one for one in REDUCTIONS if one != "avg"]
    reduction = draw(st.sampled_from(known)) if reduces(name) else None
    return Collective(name, number, reduction, 0), ranks


seeds = st.integers(0, 2**64 - 1)


@quick
@given(works(), seeds, st.integers(0, 5), cpu_lists)
def test_what_a_rank_sends_follows_its_definition(
    made: tuple[Collective, int], seed: int, rank: int, cpus: list[int]
) -> None:
    work, ranks = made
    rank %= ranks
    count, number = SIZE // work.number.bytes, work.number
    room = held(bytes(SIZE))
    address = ctypes.addressof(room) + SHIFT
    fill_content(address, count, number.code, content(work, ranks, seed), rank, cpus)
    wanted = [stored(work.type, sent(work, ranks, seed, rank, at)) for at in range(count)]
    assert room.raw[SHIFT:-1] == b"".join(wanted)


@quick
@given(works(), seeds, cpu_lists, st.data())
def test_every_result_is_right_and_each_altered_element_is_counted(
    made: tuple[Collective, int], seed: int, cpus: list[int], data: st.DataObject
) -> None:
    work, ranks = made
    number, counts = work.number, work.counts(SIZE, ranks)
    results = dict(enumerate(carried_out(work, counts, ranks, seed)))
    rank = data.draw(st.sampled_from([one for one, found in results.items() if found]))
    found = results[rank]
    origin = origin_of(work, counts, rank, ranks)
    assert origin is not None
    room = held(b"".join(stored(work.type, one) for one in found))

    def counted() -> tuple[int, int]:
        where = origin.first, origin.chunk, origin.base
        given = ctypes.addressof(room) + SHIFT, len(found), number.code
        return count_wrong(*given, content(work, ranks, seed), where, cpus)

    assert counted() == (0, 0)
    altered = data.draw(st.sets(st.integers(0, len(found) - 1), min_size=1, max_size=3))
    for at in altered:
        # The highest bit below the sign's is of the exponent, or large.
        last = SHIFT + (at + 1) * number.bytes - 1
        room[last] = bytes([room.raw[last] ^ 0x40])
    assert counted() == (len(altered), min(altered))


@pytest.mark.parametrize(("address", "code"), [(0, 7), (1, -1), (1, 12)])
def test_what_cannot_be_stored_is_refused(address: int, code: int) -> None:
    of = content(Collective("all_gather"), 2, 7)
    room = ctypes.create_string_buffer(64)
    where = ctypes.addressof(room) if address else 0
    with pytest.raises(ValueError, match=r"null|unknown"):
        fill_content(where, 4, code, of, 0, CPUS)
    with pytest.raises(ValueError, match=r"null|unknown"):
        count_wrong(where, 4, code, of, (0, 4, 0), CPUS)
