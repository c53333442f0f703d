"""Memory is what it says: bound, touched, locked, huge; refusals are said."""

from __future__ import annotations

import ctypes
import mmap
import re
from collections.abc import Callable
from pathlib import Path

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


def _huge_bytes(address: int) -> int:
    """What smaps says of the mapping that begins there, read as a whole."""
    text = Path("/proc/self/smaps").read_text("ascii")
    _, _, own = f"\n{text}".partition(f"\n{address:x}-")
    fields = dict(re.findall(r"^(\w+):\s+(\d+) kB$", own.partition("VmFlags:")[0], re.MULTILINE))
    return 1024 * (int(fields["AnonHugePages"]) + int(fields["Private_Hugetlb"]))


def test_huge_pages_of_each_of_several_mappings_are_its_own() -> None:
    kinds = [Kind.TRANSPARENT, Kind.BASE, Kind.PAGEABLE, Kind.TRANSPARENT, Kind.BASE] * 2
    memories = [Memory(8 << 20, kind, None, CPUS[:1]) for kind in kinds]
    found = [memory.huge_bytes() for memory in memories]
    assert found == [_huge_bytes(memory.address) for memory in memories]
    assert {huge for kind, huge in zip(kinds, found, strict=True) if kind == Kind.BASE} == {0}


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
