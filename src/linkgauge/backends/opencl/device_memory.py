"""Buffers in the memory of OpenCL devices. Kernels fill and compare them."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pyopencl as cl

from linkgauge.backends.protocol import Pattern
from linkgauge.model.memory import Memory
from linkgauge.model.transfer import CHUNK

from .buffer import OpenCLBuffer, create, partial_sums
from .host_memory import PageableBuffer
from .runtime import OpenCLDevice, calling

_WORD = 8
_MASK = (1 << 64) - 1
_PIECE = 1 << 31
"""The largest number of words in one comparison. An index must fit into a 32-bit atomic."""


class OpenCLDeviceBuffer(OpenCLBuffer):
    """A buffer in the memory of an OpenCL device."""

    def __init__(self, unit: OpenCLDevice, memory: Memory, size: int) -> None:
        super().__init__(unit, memory, size)
        self._buffer = create(unit, size, cl.mem_flags.READ_WRITE)
        # Creating a buffer only reserves memory; migrating it allocates, or fails here.
        with calling("clEnqueueMigrateMemObjects", allocating=size):
            undefined = cl.mem_migration_flags.CONTENT_UNDEFINED
            cl.enqueue_migrate_mem_objects(unit.queue, [self._buffer], undefined)
            unit.queue.finish()

    def for_copy(self, size: int) -> Any:
        return self._buffer

    def for_kernel(self) -> Any:
        return self._buffer

    def fill(self, size: int, pattern: Pattern, seed: int, inverted: bool) -> None:
        if self.unit.no_kernels:
            mirror = self._mirror(size)
            mirror.fill(size, pattern, seed, inverted)
            self._copy(self._buffer, mirror.for_copy(size))
            return
        flip = np.uint64(_MASK if inverted else 0)
        what = (np.uint64(size), np.uint64(seed), np.int32(pattern))
        self.unit.run("fill", self._buffer, *what, flip)

    def first_mismatch(self, size: int, pattern: Pattern, seed: int) -> int | None:
        if self.unit.no_kernels:
            return self._fetched(size).first_mismatch(size, pattern, seed)
        words = -(-size // _WORD)
        for base in range(0, words, _PIECE):
            bad = self._first_bad_word(base, min(_PIECE, words - base), size, pattern, seed)
            if bad is not None:
                return self._first_bad_byte(base + bad, size, pattern, seed)
        return None

    def checksum(self, size: int) -> int:
        if self.unit.no_kernels:
            return self._fetched(size).checksum(size)
        sums = partial_sums(self.unit)
        self.unit.run("pure_read", self._buffer, sums.buffer, np.uint64(size))
        return sums.total()

    def _first_bad_word(
        self, base: int, count: int, size: int, pattern: Pattern, seed: int
    ) -> int | None:
        """Returns the index of the first wrong word, counted from the word `base`."""
        none = np.iinfo(np.uint32).max
        found = np.full(1, none, dtype=np.uint32)
        bad = create(self.unit, found.nbytes, cl.mem_flags.READ_WRITE)
        self._copy(bad, found)
        what = (np.uint64(size), np.uint64(seed), np.int32(pattern))
        self.unit.run("compare", self._buffer, *what, np.uint64(base), np.uint64(count), bad)
        self._copy(found, bad)
        return None if found[0] == none else int(found[0])

    def _first_bad_byte(self, word: int, size: int, pattern: Pattern, seed: int) -> int:
        """Returns the offset of the first wrong byte in this word."""
        offset = word * _WORD
        found = np.zeros(min(_WORD, size - offset), dtype=np.uint8)
        self._copy(found, self._buffer, src_offset=offset)
        expected = word_of(seed, word, pattern, size // _WORD).to_bytes(_WORD, "little")
        # If all bytes read back correctly this time, the result is the start of the word.
        return offset + next((i for i, byte in enumerate(found) if byte != expected[i]), 0)

    def _copy(self, destination: Any, source: Any, **options: Any) -> None:
        with calling("clEnqueueCopyBuffer"):
            cl.enqueue_copy(self.unit.queue, destination, source, is_blocking=True, **options)

    def _fetched(self, size: int) -> PageableBuffer:
        mirror = self._mirror(size)
        self._copy(mirror.for_copy(size), self._buffer)
        return mirror

    def _mirror(self, size: int) -> PageableBuffer:
        """Returns host memory that replaces the buffer if no kernel can read it. All buffers of a
        device share this memory."""
        spare = self.unit.spare
        if not isinstance(spare, PageableBuffer) or spare.size < size:
            self.unit.free_spare()
            spare = self.unit.spare = PageableBuffer(self.unit, self.memory, size, None)
        return spare


def word_of(seed: int, index: int, pattern: Pattern, count: int = 0) -> int:
    """Returns a word of a pattern by its index (see protocol.Pattern). `count` is the number of
    words in the pattern."""
    place = 0 if pattern is Pattern.CONSTANT else index
    x = (place + seed * 0xD1B54A32D192ED03) * 0x9E3779B97F4A7C15 & _MASK
    x ^= x >> 29
    if pattern.is_of_numbers:
        b = 1 + (x >> 16) / (1 << 48)
        value = b if pattern is Pattern.NUMBERS else 3 * b
        if pattern in (Pattern.ADDED, Pattern.TRIAD):
            times = 1 if pattern is Pattern.ADDED else 3
            c = 1 + (word_of(seed, index + count, Pattern.WORDS) >> 16) / (1 << 48)
            value = b + times * c
        return int.from_bytes(struct.pack("<d", value), "little")
    even_chunk = index // (CHUNK // _WORD) % 2 == 0
    return x ^ _MASK if pattern is Pattern.SPLIT and even_chunk else x
