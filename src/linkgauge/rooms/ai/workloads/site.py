"""The device that a workload runs on, as torch knows it: types, streams, clocks and room."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from linkgauge.machine.host import read_host
from linkgauge.model.ai_models import NumberKind
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.units import approximate_size

_TYPES: dict[NumberKind, str] = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}


class Site:
    """A torch device, and the memory as which it is known here."""

    def __init__(self, torch: Any, device: Any, memory: Memory) -> None:
        self.torch = torch
        self.device = torch.device(device)
        self.memory = memory

    @property
    def is_cpu(self) -> bool:
        return bool(self.device.type == "cpu")

    @property
    def is_cuda(self) -> bool:
        """CUDA, or ROCm by the same names: streams, events and graphs."""
        return bool(self.device.type == "cuda")

    def choose(self) -> None:
        """Makes it the current device, on which torch captures graphs and records events."""
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
        """How long the work takes, until the device has ended it."""
        self.synchronize()
        begin = time.perf_counter()
        work()
        self.synchronize()
        return time.perf_counter() - begin

    def host_tensor(self, count: int, kind: Any) -> Any:
        """Numbers in host memory: pinned, if the device copies."""
        return self.torch.empty(count, dtype=kind, pin_memory=self.is_cuda)

    def stream(self) -> Any:
        """A stream of its own; None where work is not queued."""
        return self.torch.cuda.Stream(self.device) if self.is_cuda else None

    @contextmanager
    def queued(self, stream: Any) -> Iterator[None]:
        """What is called inside goes to this stream."""
        if stream is None:
            yield
            return
        with self.torch.cuda.stream(stream):
            yield

    def mark(self, stream: Any) -> Any:
        """An event after all that the stream has to do so far; None where nothing is queued."""
        return None if stream is None else stream.record_event()

    def follow(self, stream: Any, event: Any) -> None:
        """Has the stream wait for the event."""
        if stream is not None and event is not None:
            stream.wait_event(event)

    @property
    def current(self) -> Any:
        """The stream that computes; None where work is not queued."""
        return self.torch.cuda.current_stream(self.device) if self.is_cuda else None

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """A range of this name in torch's profiler, and on NVIDIA's devices in Nsight Systems."""
        with self.torch.profiler.record_function(name), self._range(name):
            yield

    def _range(self, name: str) -> AbstractContextManager[None]:
        """A range of NVTX; none on other devices, or where torch was built without."""
        if not self.is_cuda or self.torch.version.cuda is None:
            return nullcontext()
        found: AbstractContextManager[None] = self.torch.cuda.nvtx.range(name)
        return found

    @contextmanager
    def room(self, batch: int, needed: int, *, held: int | None = 0) -> Iterator[None]:
        """Raises Unsupported for what does not fit: beforehand by its `needed` bytes, of which so
        many are `held` already (null: all), or where an allocation inside fails."""
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
        """Bytes that can be allocated; None where the device does not say."""
        if self.is_cpu:
            return read_host().memory_available
        if not self.is_cuda:
            return None
        cuda = self.torch.cuda
        free, _ = cuda.mem_get_info(self.device)
        kept = cuda.memory_reserved(self.device) - cuda.memory_allocated(self.device)
        return int(free + kept)

    def release(self) -> None:
        """Gives back what torch keeps of freed memory."""
        if self.is_cuda:
            self.torch.cuda.empty_cache()


def first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
