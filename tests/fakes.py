"""A backend as small as can be: bytearrays, a clock that the test sets, faults on demand."""

from __future__ import annotations

from collections.abc import Callable

from linkgauge.backends.protocol import Copy, Pattern, SamplingPolicy, Timing
from linkgauge.model.documents.result import Placement
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Device, Host, Machine, Node

MASK = (1 << 64) - 1


def word(index: int, seed: int) -> int:
    """backends/protocol.py's definition of the pattern, written down once more."""
    x = (index + seed * 0xD1B54A32D192ED03) * 0x9E3779B97F4A7C15 & MASK
    return x ^ x >> 29


def content(size: int, pattern: Pattern, seed: int, inverted: bool) -> bytes:
    data = bytearray()
    for index in range((size + 7) // 8):
        value = word(0 if pattern is Pattern.CONSTANT else index, seed)
        split = pattern is Pattern.SPLIT and index * 8 // 512 % 2 == 0
        data += (value ^ (MASK if inverted != split else 0)).to_bytes(8, "little")
    return bytes(data[:size])


class FakeBuffer:
    warnings = ()

    def __init__(self, memory, size):
        self.memory, self.size, self.data, self.freed = memory, size, bytearray(size), False

    def placement(self):
        return Placement(str(self.memory), self.size)

    def free(self):
        self.freed = True


class FakeGroup:
    most_loops = 1 << 20
    policy = SamplingPolicy()

    def __init__(self, backend, copies):
        self.backend, self.copies, self.loops, self.batches = backend, copies, None, 1

    def arm(self, loops, batches=1):
        self.loops, self.batches = loops * batches, batches

    def open(self):
        for copy in self.copies:
            move(copy)

    def wait(self):
        self.backend.samples += 1
        self.backend.on_sample(self)
        seconds = [
            self.backend.seconds_a_byte(self.backend.samples) * copy.size * self.loops
            for copy in self.copies
        ]
        sums = [checksum(copy.source, copy.size) if not copy.destination else None
                for copy in self.copies]  # fmt: skip
        ends = [
            [each * batch / self.batches for batch in range(self.batches + 1)] for each in seconds
        ]
        return Timing(tuple(seconds), max(seconds), tuple(sums), tuple(map(tuple, ends)))

    def close(self):
        self.backend.open_groups -= 1


def move(copy: Copy) -> None:
    if copy.source is None:
        copy.destination.data[:] = content(copy.size, Pattern.CONSTANT, copy.seed, False)
    elif copy.transfer.both_ways:
        both = content(copy.size, Pattern.SPLIT, copy.seed, False)
        copy.source.data[:] = copy.destination.data[:] = both
    elif copy.destination is not None:
        copy.destination.data[:] = copy.source.data


def checksum(buffer, size):
    value = 0
    for at in range(0, size, 8):
        value ^= int.from_bytes(buffer.data[at : min(at + 8, size)], "little")
    return value


class FakeBackend:
    """`seconds_a_byte(n)` is the speed of the n-th sample; `on_sample` may do harm."""

    def __init__(self, name="fake", devices=()):
        self.name = name
        self._devices = tuple(devices)
        self.samples = 0
        self.open_groups = self.groups = 0
        self.buffers: list[FakeBuffer] = []
        self.seconds_a_byte: Callable[[int], float] = lambda n: 1e-9
        self.on_sample: Callable[[FakeGroup], None] = lambda group: None
        self.on_allocate: Callable[[object, int], None] = lambda memory, size: None
        self.refuse: Callable[[object], str | None] = lambda transfer: None

    def devices(self):
        return self._devices

    def refusal(self, transfer):
        return self.refuse(transfer)

    def remarks(self, transfer):
        return ()

    def reach(self, memory, engine):
        return memory, engine.owner, engine.kind

    def allocate(self, memory, size, engine):
        self.on_allocate(memory, size)
        self.buffers.append(FakeBuffer(memory, size))
        return self.buffers[-1]

    def fill(self, buffer, size, pattern, seed, inverted):
        buffer.data[:size] = content(size, pattern, seed, inverted)

    def first_mismatch(self, buffer, size, pattern, seed):
        pairs = zip(buffer.data, content(size, pattern, seed, False), strict=True)
        return next((at for at, (a, b) in enumerate(pairs) if a != b), None)

    def checksum(self, buffer, size):
        return checksum(buffer, size)

    def prepare(self, copies, operation="copy"):
        if operation != "copy":
            raise Unsupported(f"backend {self.name} does not know {operation}")
        self.open_groups += 1
        self.groups += 1
        return FakeGroup(self, copies)

    def close(self):
        pass


def device(index=0, space="fake", memory=1 << 30, **more):
    return Device(f"{space}:{index}", "Fake Card X1", memory, more.pop("one", memory), **more)


def machine(devices=(), nodes=1, available=1 << 34, unavailable=None):
    found = tuple(Node(n, (2 * n, 2 * n + 1), available, available) for n in range(nodes))
    host = Host("box", "Test OS", "6.1", "x86_64", "Test CPU", 2 * nodes, found,
                available, available, None, "madvise")  # fmt: skip
    by_backend: dict[str, list[Device]] = {}
    for one in devices:
        by_backend.setdefault(one.memory.partition(":")[0], []).append(one)
    return Machine(
        host, {name: tuple(some) for name, some in by_backend.items()}, unavailable or {},
        "0", "3",
    )  # fmt: skip
