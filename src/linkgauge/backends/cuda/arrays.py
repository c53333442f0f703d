"""How STREAM's operations run on arrays in device memory, each by the fastest kernel found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial

from linkgauge.backends.protocol import Copy, first_word
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.operation import ArrayKind, ArrayWork, Operation, OperationName
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import approximate_size, format_size

from .device import CudaDevice, KernelLaunch
from .launches import UNIT, Span, copy_launch, plain_shape
from .memory import CudaBuffer
from .settings import (
    ARRAY_DEFAULT,
    LEAST_SEARCHED,
    CopySettings,
    chosen,
    is_shaped,
    key,
    store_tuned,
)
from .work import StreamWork, kernel_work, reading_work

_KINDS: dict[ArrayKind, int] = {
    "read": 0, "write": 1, "copy": 2, "scale": 3, "add": 4, "triad": 5,
}  # fmt: skip
"""The numbers of the operations in kernels/arrays.cu."""
Search = Callable[[Copy, OperationName], CopySettings | None]
_BEYOND = 4
"""Arrays should be at least this many times as large as the L2 cache (STREAM's rule)."""


def array_work(
    device: CudaDevice, copy: Copy, array: ArrayWork, settings: CopySettings
) -> StreamWork:
    """Returns an operation on arrays as work for a stream. Raises Unsupported if a kernel reads two
    arrays whose size is no multiple of 16 bytes."""
    source, destination = _address(copy.source), _address(copy.destination)
    if settings.kernel == "bulk":
        kernel = copy_launch(device, Span(destination, source, copy.size), settings)
        return kernel_work(device, kernel, in_kernel=False)
    if array.read > 1 and copy.size % UNIT:
        size = format_size(copy.size)
        raise Unsupported(
            f"{array.mode}-{array.kind} by a kernel takes a multiple of {UNIT} bytes, not {size}"
        )
    ends = destination, source, source + copy.size
    launch_with = partial(_launch, device, array.kind, ends, copy, settings)
    if array.kind == "read":
        return reading_work(device, launch_with, in_kernel=False)
    return kernel_work(device, launch_with(0), in_kernel=False)


def _launch(
    device: CudaDevice,
    kind: ArrayKind,
    ends: tuple[int, int, int],
    copy: Copy,
    settings: CopySettings,
    word: int,
) -> KernelLaunch:
    grid, defines = plain_shape(device, copy.size, settings)
    arguments = (*ends, copy.size, first_word(copy.seed), word)
    return KernelLaunch(device, "arrays.arrays", grid, arguments, {"KIND": _KINDS[kind], **defines})


class ArrayKernels:
    """Finds the fastest kernel of each operation for each device model. `search` returns a copy's
    fastest settings (None: the default settings), and overwrites the copy's buffers."""

    def __init__(
        self, devices: Sequence[CudaDevice], engines: EngineSettings, search: Search
    ) -> None:
        self._devices = devices
        self._engines = engines
        self._search = search
        self._remarks: dict[Transfer, tuple[str, ...]] = {}

    def forget(self) -> None:
        self._remarks = {}

    def prepare(self, copies: Sequence[Copy], does: Operation) -> None:
        operation = does.name
        for copy in copies:
            device = self._devices[copy.transfer.engine.owner.index or 0]
            path = key(copy.transfer, operation)
            asked = self._engines.tunes and self._engines.tuned
            tunes = asked and not is_shaped(self._engines)
            if tunes and path not in device.tuned and copy.size >= LEAST_SEARCHED:
                self._remember(device, path, self._search(copy, operation) or ARRAY_DEFAULT)
            settings = chosen(device.tuned, self._engines, copy.transfer, operation)
            how = f"{copy.transfer.engine}: {settings.describe('sm')}"
            self._remarks[copy.transfer] = (how, *_near_cache(device, copy, does))

    def _remember(self, device: CudaDevice, path: str, found: CopySettings) -> None:
        for equivalent in self._devices:
            if equivalent.model == device.model:
                equivalent.tuned[path] = found
        with suppress(OSError):  # the next run searches again
            store_tuned(device.model, {path: found})

    def remarks(self, transfer: Transfer) -> tuple[str, ...]:
        return self._remarks.get(transfer, ())


def _near_cache(device: CudaDevice, copy: Copy, does: Operation) -> Iterator[str]:
    cache = device.attribute("L2_CACHE_SIZE")
    touched = copy.size * does.counted_arrays
    if touched < _BEYOND * cache:
        fits = f"less than {_BEYOND} times the L2 cache ({approximate_size(cache)})"
        yield f"arrays of {format_size(touched)} in all are {fits}: the figure may be the cache's"


def _address(buffer: object) -> int:
    return buffer.address if isinstance(buffer, CudaBuffer) else 0
