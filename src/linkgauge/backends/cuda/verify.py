"""Writes patterns into buffers and checks them. A kernel does this if a device can reach the
memory, else threads of the host.

A kernel needs less than a millisecond for device memory; pinned host memory takes as long as the
link needs."""

from __future__ import annotations

from contextlib import ExitStack, suppress

from linkgauge.backends import native
from linkgauge.backends.host_memory import usable_cpus
from linkgauge.backends.protocol import Pattern
from linkgauge.model.errors import BackendError

from .device import CudaDevice, KernelLaunch, device_memory
from .launches import compare_launch, fill_launch, read_launch
from .memory import CudaBuffer

_NOTHING = (1 << 64) - 1
_WORD = 8


class Verifier:
    """Writes patterns into buffers, and checks them."""

    def __init__(self) -> None:
        self._words: dict[int, int] = {}
        self._made = ExitStack()

    def fill(
        self, buffer: CudaBuffer, size: int, pattern: Pattern, seed: int, inverted: bool
    ) -> None:
        if buffer.host_only:
            native.fill(buffer.address, size, pattern, seed, inverted, usable_cpus())
        else:
            run(buffer.home, fill_launch(buffer, size, pattern, seed, inverted))

    def first_mismatch(
        self, buffer: CudaBuffer, size: int, pattern: Pattern, seed: int
    ) -> int | None:
        if buffer.host_only:
            return native.first_mismatch(buffer.address, size, pattern, seed, usable_cpus())
        word = self._word(buffer.home, 0xFF)
        run(buffer.home, compare_launch(buffer, size, pattern, seed, word))
        found = read_word(buffer.home, word)
        return None if found == _NOTHING else found

    def checksum(self, buffer: CudaBuffer, size: int) -> int:
        if buffer.host_only:
            return native.checksum(buffer.address, size, usable_cpus())
        word = self._word(buffer.home, 0)
        run(buffer.home, read_launch(buffer.home, buffer.address, size, word))
        return read_word(buffer.home, word)

    def close(self) -> None:
        with suppress(BackendError):  # fails on a lost device
            self._made.close()
        self._words.clear()

    def _word(self, device: CudaDevice, byte: int) -> int:
        """Sets all bytes of the device's result word to `byte`, and returns its address."""
        if device.index not in self._words:
            self._words[device.index] = new_word(device, self._made)
        word = self._words[device.index]
        set_word(device, word, byte)
        return word


def run(device: CudaDevice, launch: KernelLaunch) -> None:
    """Runs a launch to its end. No gate blocks it. Raises BackendError for any failure."""
    device.enter()
    launch.enqueue(device.aside)
    device.driver.call("cuStreamSynchronize", device.aside)


def new_word(device: CudaDevice, made: ExitStack, byte: int | None = None) -> int:
    """Allocates 8 bytes on the device and returns their address. `made` frees them. All bytes are
    set to `byte`, if it is given."""
    word = device_memory(device, _WORD, made)
    if byte is not None:
        set_word(device, word, byte)
    return word


def set_word(device: CudaDevice, word: int, byte: int) -> None:
    """Sets all bytes of a word to `byte`. The stream is that of the kernels that run aside, which
    keeps the order."""
    device.call("cuMemsetD8Async", word, byte, _WORD, device.aside)


def read_word(device: CudaDevice, address: int) -> int:
    """Returns the 64-bit word at a device address."""
    value = bytearray(_WORD)
    device.call("cuMemcpyDtoH", value, address, _WORD)
    return int.from_bytes(value, "little")
