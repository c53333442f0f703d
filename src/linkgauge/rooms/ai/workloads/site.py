"""Wraps a torch device for workloads: number types, streams, clocks, memory and rates."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from linkgauge.machine.host import read_host
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.operations.workload import NumberKind, Rates
from linkgauge.model.units import approximate_size

_TYPES: dict[NumberKind, str] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


class Site:
    def __init__(self, torch: Any, device: Any, memory: Memory) -> None:
        self.torch = torch
        self.device = torch.device(device)
        self.memory = memory

    @property
    def is_cpu(self) -> bool:
        return bool(self.device.type == "cpu")

    @property
    def is_cuda(self) -> bool:
        """Whether torch calls the device `cuda`. It does so for ROCm's devices, too."""
        return bool(self.device.type == "cuda")

    def choose(self) -> None:
        """Makes this device torch's current device. Only CUDA devices need this."""
        if self.is_cuda:
            self.torch.cuda.set_device(self.device)

    def number_type(self, numbers: NumberKind) -> Any:
        return getattr(self.torch, _TYPES[numbers])

    def synchronize(self) -> None:
        if self.is_cuda:
            self.torch.cuda.synchronize(self.device)
        elif not self.is_cpu:
            self.torch.accelerator.synchronize()

    def seconds(self, work: Callable[[], object]) -> float:
        self.synchronize()
        begin = time.perf_counter()
        work()
        self.synchronize()
        return time.perf_counter() - begin

    def host_tensor(self, count: int, kind: Any) -> Any:
        """Returns a tensor in host memory, pinned if the device has a CUDA interface."""
        return self.torch.empty(count, dtype=kind, pin_memory=self.is_cuda)

    def stream(self) -> Any:
        return self.torch.cuda.Stream(self.device) if self.is_cuda else None

    def queued(self, stream: Any) -> AbstractContextManager[Any]:
        return nullcontext() if stream is None else self.torch.cuda.stream(stream)

    def mark(self, stream: Any) -> Any:
        return None if stream is None else stream.record_event()

    def follow(self, stream: Any, event: Any) -> None:
        if stream is not None and event is not None:
            stream.wait_event(event)

    @property
    def current(self) -> Any:
        return self.torch.cuda.current_stream(self.device) if self.is_cuda else None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Marks a range in torch's profiler, and in Nsight Systems on NVIDIA's devices."""
        of_nvidia = self.is_cuda and self.torch.version.cuda is not None
        ranged = self.torch.cuda.nvtx.range(name) if of_nvidia else nullcontext()
        with self.torch.profiler.record_function(name), ranged:
            yield

    @contextmanager
    def room(self, batch: int, needed: int, *, held: int | None = 0) -> Iterator[None]:
        """Raises Unsupported, which names `batch`, if `needed` bytes exceed the free memory and the
        `held` bytes already allocated (None: not checked), or if an allocation fails."""
        free = self.free_bytes() if held is not None else None
        has = None if free is None else free + (held or 0)
        short = f"out of memory at batch {batch} (needs {approximate_size(needed)}, {{}})"
        if has is not None and needed > has:
            raise Unsupported(short.format(f"{self.memory} has {approximate_size(has)} free"))
        try:
            yield
        except self.torch.OutOfMemoryError as error:
            self.release()
            raise Unsupported(short.format(f"{self.memory} has less")) from error
        except RuntimeError as error:
            if "allocate memory" in str(error):  # as torch's allocator of host memory says it
                raise Unsupported(short.format(f"{self.memory} has less")) from error
            raise BackendError("torch", first_line(error)) from error

    def free_bytes(self) -> int | None:
        if self.is_cpu:
            return read_host().memory_available
        if not self.is_cuda:
            return None
        cuda = self.torch.cuda
        free, _ = cuda.mem_get_info(self.device)
        kept = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return int(free + kept)

    def release(self) -> None:
        if self.is_cuda:
            self.torch.cuda.empty_cache()


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


# What a device reaches in each part of a workload by itself: products of matrices, reads of its
# memory, copies from and to pinned host memory. The same process measures it beforehand, by
# torch, so that a workload is held against the same clock, library and placement.


_TRIES = 4
_SIZES, _CPU_SIZES = (8192, 4 << 30, 1 << 30), (768, 64 << 20, 32 << 20)
"""The order of a matrix, the bytes that are read, and those that are copied: on a device, and on
the CPU."""
_MOST_OF_MEMORY = 8
"""A buffer takes at most this fraction (one in 8) of the free memory."""


def measure_rates(site: Site, numbers: NumberKind) -> Rates:
    order, *sizes = _CPU_SIZES if site.is_cpu else _SIZES
    free = site.free_bytes() or sizes[0] * _MOST_OF_MEMORY
    read, copied = (min(size, free // _MOST_OF_MEMORY) for size in sizes)
    product = _product_rate(site, numbers, order)
    rates = Rates(product, _read_rate(site, read), *_copy_rates(site, copied))
    site.release()
    return rates


def _best(site: Site, work: Callable[[], object], times: int = 1) -> float:
    """Returns the seconds of a call in the fastest of several tries. A first try loads kernels."""

    def several() -> None:
        for _ in range(times):
            work()

    several()
    return min(site.seconds(several) for _ in range(_TRIES)) / times


def _product_rate(site: Site, numbers: NumberKind, order: int) -> float:
    torch, kind = site.torch, site.number_type(numbers)
    a, b = (torch.randn(order, order, device=site.device, dtype=kind) for _ in range(2))
    product = torch.empty_like(a)
    times = 1 if site.is_cpu else 10
    return 2 * order**3 / _best(site, lambda: torch.matmul(a, b, out=product), times)


def _read_rate(site: Site, size: int) -> float:
    """Measures the bytes/s of reading device memory, by a sum or a copy, whichever is faster."""
    torch = site.torch
    numbers = torch.zeros(size // 4, device=site.device, dtype=torch.float32)
    summed = size / _best(site, lambda: torch.sum(numbers))
    half = numbers.numel() // 2
    source, destination = numbers[:half], numbers[half : 2 * half]
    copied: float = 2 * half * 4 / _best(site, lambda: destination.copy_(source))
    return max(summed, copied)


def _copy_rates(site: Site, size: int) -> tuple[float, float]:
    """Measures the bytes/s of copies to the device, and of copies to the host."""
    there: Any = site.torch.empty(size, dtype=site.torch.uint8, device=site.device)
    here: Any = site.host_tensor(size, site.torch.uint8).zero_()
    to_device = _best(site, lambda: there.copy_(here, non_blocking=True))
    to_host = _best(site, lambda: here.copy_(there, non_blocking=True))
    return size / to_device, size / to_host
