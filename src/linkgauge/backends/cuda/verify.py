"""Runs kernels aside, and reads the words in which they leave their results."""

from __future__ import annotations

from contextlib import ExitStack

from .device import WORD, CudaDevice, KernelLaunch, device_memory


def run(device: CudaDevice, launch: KernelLaunch) -> None:
    """Runs a launch to its end. No gate blocks it. Raises BackendError for any failure."""
    device.enter()
    launch.enqueue(device.aside)
    device.driver.call("cuStreamSynchronize", device.aside)


def new_word(device: CudaDevice, made: ExitStack, byte: int | None = None) -> int:
    """The address of 8 bytes, all set to `byte` if given. `made` frees them."""
    word = device_memory(device, WORD, made)
    if byte is not None:
        set_word(device, word, byte)
    return word


def set_word(device: CudaDevice, word: int, byte: int) -> None:
    """On the stream of the kernels that run aside, which keeps the order."""
    device.call("cuMemsetD8Async", word, byte, WORD, device.aside)


def read_word(device: CudaDevice, address: int) -> int:
    value = bytearray(WORD)
    device.call("cuMemcpyDtoH", value, address, WORD)
    return int.from_bytes(value, "little")
