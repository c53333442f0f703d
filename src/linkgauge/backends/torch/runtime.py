"""Lists torch's devices and converts torch's errors. `torch.create` imports torch."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import cached_property
from typing import Any

import msgspec

from linkgauge.machine.environment import in_force
from linkgauge.machine.numa import near_node
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory

SPACE = "torch"


class TorchFacts(msgspec.Struct, frozen=True):
    """What torch reports about a device. `type` is torch's name for its type (`cuda` also for AMD's
    GPUs). `peers` are memories that the device can access. `gated` is true if work can wait for a
    start signal and events time it. `binds` is true if pinned memory can be on a given node."""

    device: Device
    type: str
    peers: tuple[str, ...] = ()
    gated: bool = False
    binds: bool = True

    @property
    def memory(self) -> Memory:
        return parse_memory(self.device.memory)


_SHORT = ("out of memory", "can't allocate memory", "not enough memory", "invalid buffer size")
"""Texts in torch's messages that mean a lack of memory."""
_LARGEST = 1 << 62
_ROCM = "ROCm"
_SLEEP = 1 << 20
"""The cycles of a first sleep, which shows how long a cycle is."""
_MILLI = 1e-3


@contextmanager
def calling(call: str, about: str = "") -> Iterator[None]:
    """Turns an error of `call` in torch into AllocationError, Unsupported or BackendError."""
    try:
        yield
    except (RuntimeError, MemoryError, TypeError) as error:
        said = next((line.strip() for line in str(error).splitlines() if line.strip()), "no reason")
        if isinstance(error, NotImplementedError) or "not implemented for" in said:
            raise Unsupported(f"{call}: {said}") from error
        short = any(text in str(error).lower() for text in _SHORT)
        kind = AllocationError if short or isinstance(error, MemoryError) else BackendError
        raise kind(call, f"{said} ({about})" if about else said) from error


class TorchDevice:
    def __init__(self, torch: Any, facts: TorchFacts) -> None:
        self.torch = torch
        self.facts = facts
        self.memory = facts.memory
        self.device = torch.device(facts.type, facts.device.index)
        self.is_cpu = facts.type == "cpu"
        self._module: Any = getattr(torch, facts.type, None)
        self._streams: list[Any] = []

    def stream(self, number: int) -> Any:
        """Returns the stream of this number, or None if torch has no streams."""
        if self.is_cpu or not hasattr(self._module, "Stream"):
            return None
        with calling("torch.Stream"):
            while len(self._streams) <= number:
                self._streams.append(self._module.Stream(device=self.device))
        return self._streams[number]

    def on(self, stream: Any) -> AbstractContextManager[Any]:
        return nullcontext() if stream is None else self._module.stream(stream)

    def event(self) -> Any:
        """Returns an event that records a time. `facts.gated` must be true."""
        return self._module.Event(enable_timing=True)

    def finish(self, stream: Any = None) -> None:
        if self.is_cpu:
            return
        with calling("torch.synchronize"):
            if stream is not None:
                stream.synchronize()
            elif self._module is not None and self.facts.type == "mps":
                self._module.synchronize()
            else:
                self._module.synchronize(self.device)

    def supported(self) -> dict[str, Any]:
        """Returns `isa`, `built_for` and `runtime` of an AMD GPU; {} for other devices."""
        if not self.facts.device.driver.startswith(_ROCM):
            return {}
        properties = self._module.get_device_properties(self.device)
        return {
            "isa": str(getattr(properties, "gcnArchName", "")).partition(":")[0] or None,
            "built_for": tuple(self._module.get_arch_list()) or None,
            "runtime": self.facts.device.driver,
        }

    def let_go(self) -> None:
        empty = getattr(self._module, "empty_cache", None)
        if empty is not None and not self.is_cpu:
            with calling("torch.empty_cache"):
                empty()

    def sleep(self, seconds: float) -> None:
        self._module._sleep(max(1, int(seconds * self._cycles)))  # noqa: SLF001  # no other name

    @cached_property
    def _cycles(self) -> float:
        begin, end = self.event(), self.event()
        with self.on(self.stream(0)):
            self._module._sleep(_SLEEP)  # noqa: SLF001
            begin.record()
            self._module._sleep(_SLEEP)  # noqa: SLF001
            end.record()
        self.finish()
        return float(_SLEEP / max(begin.elapsed_time(end) * _MILLI, 1e-9))


@contextmanager
def current(streams: Iterable[tuple[TorchDevice, Any]]) -> Iterator[None]:
    with ExitStack() as entered:
        for unit, stream in reversed(tuple(streams)):
            entered.enter_context(unit.on(stream))
        yield


def discover(torch: Any, root: Root = ROOT) -> tuple[TorchDevice, ...]:
    found: list[TorchDevice] = []
    with calling("torch.accelerator"):
        kind = accelerator(torch)
        if kind is not None:
            module = getattr(torch, kind)
            indices = range(int(module.device_count()))
            found += [TorchDevice(torch, _facts(torch, kind, index, root)) for index in indices]
    return (*found, TorchDevice(torch, _cpu(torch)))


def accelerator(torch: Any) -> str | None:
    known = getattr(torch, "accelerator", None)
    if known is not None:  # torch 2.6 has it
        here = known.current_accelerator() if known.is_available() else None
        return None if here is None else str(here.type)
    for kind in ("cuda", "xpu", "mps"):
        module = getattr(torch, kind, None) or getattr(torch.backends, kind, None)
        if module is not None and module.is_available():
            return kind
    return None


def _facts(torch: Any, kind: str, index: int, root: Root) -> TorchFacts:
    module = getattr(torch, kind)
    properties: Any = None
    with suppress(AttributeError, RuntimeError):
        properties = module.get_device_properties(index)
    pci, uuid = pci_address(properties), getattr(properties, "uuid", None)
    size = int(getattr(properties, "total_memory", 0)) or _recommended(module)
    others = range(int(module.device_count())) if kind == "cuda" else ()
    peers = tuple(
        f"{SPACE}:{kind}:{other}"
        for other in others
        if other != index and module.can_device_access_peer(index, other)
    )
    device = Device(
        memory=f"{SPACE}:{kind}:{index}",
        model=str(getattr(properties, "name", kind)),
        memory_bytes=size,
        largest_buffer=size,
        driver=_driver(torch, kind),
        shares_host_memory=kind == "mps",
        near=0 if pci is None else near_node(root, pci),
        pci=pci,
        uuid=None if uuid is None else f"GPU-{uuid}",
        notes=(*_notes(torch, kind), *in_force(root, pci or "", os.environ)),
    )
    gated = kind == "cuda" and hasattr(module, "_sleep")
    return TorchFacts(device, kind, peers, gated, binds=kind == "cuda")


def _cpu(torch: Any) -> TorchFacts:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    device = Device(
        memory=f"{SPACE}:cpu:0",
        model=f"CPU, {torch.get_num_threads()} threads",
        memory_bytes=size,
        largest_buffer=size,
        shares_host_memory=True,
        notes=(f"torch {torch.__version__}",),
        is_cpu=True,
    )
    return TorchFacts(device, "cpu")


def _notes(torch: Any, kind: str) -> Iterator[str]:
    yield f"torch {torch.__version__}"
    if kind == "cuda" and torch.version.hip is None:
        yield "backend cuda, if it has the device, is the better one: it needs no torch"


def _driver(torch: Any, kind: str) -> str:
    if kind == "cuda":
        hip = torch.version.hip
        return f"{_ROCM} {hip}" if hip else f"CUDA {torch.version.cuda}"
    return str(getattr(torch.version, kind, None) or "")


def _recommended(module: Any) -> int:
    # Only Apple's devices recommend a limit.
    with suppress(AttributeError, RuntimeError):
        return int(module.recommended_max_memory())
    return _LARGEST


def pci_address(properties: Any) -> str | None:
    """Returns a PCI address as sysfs writes it, or None if torch does not report it."""
    parts = [getattr(properties, f"pci_{part}_id", None) for part in ("domain", "bus", "device")]
    if None in parts[1:]:
        return None
    domain, bus, device = (int(part or 0) for part in parts)
    return f"{domain:04x}:{bus:02x}:{device:02x}.0"
