"""The numbers that collectives move, written and checked on a device (kernels/content.cu)."""

from __future__ import annotations

import ctypes
from contextlib import suppress
from typing import Any

from linkgauge.model.collective import Collective, Origin, content_fields
from linkgauge.model.errors import BackendError

from . import verify
from .device import CudaDevice, Launch

_THREADS, _BLOCKS = 512, 8
"""Threads of a block, blocks of a multiprocessor."""
_WORD = 8


class _Content(ctypes.Structure):
    """content.cuh's struct of the same name."""

    _fields_ = (
        ("seed", ctypes.c_uint64),
        ("ranks", ctypes.c_uint64),
        ("share", ctypes.c_uint64),
        ("largest", ctypes.c_uint64),
        ("reduction", ctypes.c_int),
        ("tolerance", ctypes.c_double),
    )


class _Origin(ctypes.Structure):
    """content.cuh's struct of the same name."""

    _fields_ = (
        ("first", ctypes.c_uint64),
        ("chunk", ctypes.c_uint64),
        ("base", ctypes.c_uint64),
    )


class Content:
    """What the ranks of a group send in a collective, by a seed."""

    def __init__(self, work: Collective, ranks: int, seed: int) -> None:
        self._type = work.number.code
        self._of = _Content(*content_fields(work, ranks, seed))

    def fill(self, device: CudaDevice, address: int, count: int, rank: int) -> None:
        """Writes the `count` elements that a rank sends."""
        verify.run(device, self._launch(device, "fill", count, (address, count, self._of, rank)))

    def wrong(
        self, device: CudaDevice, address: int, count: int, origin: Origin
    ) -> tuple[int, int]:
        """How many of `count` elements are not what has to arrive, and the index of the first (0 if
        there are none)."""
        place = _Origin(origin.first, origin.chunk, origin.base)
        words = [verify.new_word(device) for _ in range(2)]
        try:
            for word, byte in zip(words, (0, 0xFF), strict=True):
                device.driver.call("cuMemsetD8Async", word, byte, _WORD, device.aside)
            arguments = (address, count, self._of, place, *words)
            verify.run(device, self._launch(device, "count_wrong", count, arguments))
            number, first = (verify.read_word(device, word) for word in words)
        finally:
            with suppress(BackendError):  # a lost device has already been reported
                for word in words:
                    device.call("cuMemFree", word)
        return number, first if number else 0

    def _launch(
        self, device: CudaDevice, kernel: str, count: int, arguments: tuple[Any, ...]
    ) -> Launch:
        loaded = device.kernel("content", kernel, (f"TYPE={self._type}",))
        blocks = max(1, min(-(-count // _THREADS), device.multiprocessors * _BLOCKS))
        return Launch(device, loaded, (blocks, _THREADS), arguments)
