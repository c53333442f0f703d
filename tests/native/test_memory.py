"""Memory is what it says: bound, touched, locked, huge; refusals are said."""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Callable

import pytest

from linkgauge._native import (
    Job,
    Kind,
    Memory,
    Op,
    Pattern,
    Team,
    checksum,
    fill,
    first_mismatch,
    nodes_of,
)
from native.arena import CPUS, settles_at, threads_alive


def test_pages_that_others_mapped_have_nodes_once_they_were_touched() -> None:
    page = mmap.PAGESIZE
    pages = mmap.mmap(-1, 8 * page)
    pages.madvise(mmap.MADV_NOHUGEPAGE)
    for number in (1, 2, 7):
        pages[number * page] = 1
    window = ctypes.c_char.from_buffer(pages)
    assert sum(nodes_of(ctypes.addressof(window), 8 * page).values()) in {0, 3}
    del window
    with pytest.raises(ValueError, match="null"):
        nodes_of(0, page)


def test_memory_that_cannot_be_had_is_an_os_error() -> None:
    for size in (1 << 60, 2**64 - 1):
        with pytest.raises(
            OSError, match=f"mmap of {size} bytes: Cannot allocate memory"
        ) as caught:
            Memory(size, Kind.PINNED, None, CPUS)
        assert caught.value.errno == 12


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: Memory(0, Kind.PINNED, None, CPUS), ValueError),
        (lambda: Memory(1, Kind.PINNED, -1, CPUS), ValueError),
        (lambda: Memory(1, Kind.PINNED, None, []), ValueError),
        (lambda: Memory(1, Kind.PINNED, None, [-1]), ValueError),
        (lambda: Memory(1, Kind.PINNED, None, [60_000]), OSError),
        (lambda: fill(0, 8, 1, Pattern.WORDS, False, CPUS), ValueError),
        (lambda: fill(1, 0, 1, Pattern.WORDS, False, []), ValueError),
        (lambda: first_mismatch(0, 8, 1, Pattern.WORDS, CPUS), ValueError),
        (lambda: checksum(0, 8, CPUS), ValueError),
        (lambda: Job(Op.COPY, 0, 64, 8, 1, CPUS), ValueError),
        (lambda: Job(Op.COPY, 64, 0, 8, 1, CPUS), ValueError),
        (lambda: Job(Op.READ, 0, 64, 8, 1, CPUS), ValueError),
        (lambda: Job(Op.WRITE, 64, 0, 8, 1, CPUS), ValueError),
        (lambda: Job(Op.READ, 64, 0, 0, 1, CPUS), ValueError),
        (lambda: Job(Op.READ, 64, 0, 8, 1, []), ValueError), (lambda: Team([]), ValueError),
        (lambda: Team([Job(Op.READ, 64, 0, 8, 1, [CPUS[0], 60_000])]), OSError),
    ],
)  # fmt: skip
def test_bad_arguments_are_refused(call: Callable[[], object], error: type[Exception]) -> None:
    before = threads_alive()
    with pytest.raises(error):
        call()
    assert settles_at(before)
