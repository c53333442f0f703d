"""torch without torch: what a backend asks of it, and streams whose clock the test moves."""

from __future__ import annotations

from contextlib import contextmanager
from types import SimpleNamespace

from linkgauge.model.notation import parse_memory


class FakeEvent:
    """Its time is that of the stream that records it."""

    def __init__(self, clock):
        self.clock, self.at = clock, None

    def record(self, stream=None):
        stream = stream or self.clock.current
        stream.log.append(("record", self))
        self.at = stream.at

    def query(self):
        """Whether the host's time has come to it."""
        return self.clock.host >= self.at

    def elapsed_time(self, end):
        return (end.at - self.at) * 1e3

    def synchronize(self):
        self.clock.host = max(self.clock.host, self.at)


class FakeStream:
    def __init__(self, clock):
        self.clock, self.at, self.log = clock, 0.0, []

    def wait_event(self, event):
        self.log.append(("wait", event))
        if event.at is not None:
            self.at = max(self.at, event.at)

    def synchronize(self):
        self.clock.host = max(self.clock.host, self.at)


class FakeClock:
    """The host's seconds, and the stream on which things are enqueued."""

    def __init__(self):
        self.host, self.current = 0.0, None

    def monotonic(self):
        return self.host


class FakeUnit:
    """A device whose streams take time; `memory` is its notation."""

    def __init__(self, clock, text="torch:cuda:0"):
        self.clock, self.memory, self.streams = clock, parse_memory(text), []
        self.is_cpu = False

    def stream(self, number):
        while len(self.streams) <= number:
            self.streams.append(FakeStream(self.clock))
        return self.streams[number]

    @contextmanager
    def on(self, stream):
        before, self.clock.current = self.clock.current, stream
        yield
        self.clock.current = before

    def event(self):
        return FakeEvent(self.clock)

    def sleep(self, seconds):
        stream = self.clock.current
        stream.at = max(stream.at, self.clock.host) + seconds
        stream.log.append(("sleep", seconds))

    def finish(self, stream=None):
        stream.synchronize()


class FakeWork:
    """A loop takes `each` seconds on the device, and `call` seconds of the host."""

    def __init__(self, units, each, call=1e-6):
        self.units, self.each, self.call = tuple(units), each, call
        self.loops = []

    def enqueue(self, loops):
        clock = self.units[0].clock
        stream = clock.current
        stream.at = max(stream.at, clock.host) + loops * self.each
        stream.log.append(("loops", loops))
        clock.host += loops * self.call
        self.loops.append(loops)


def fake_torch(*, hip=None, gpus=2, kind="cuda"):
    """torch as it is where there are such GPUs."""
    properties = SimpleNamespace(
        name="NVIDIA H200", total_memory=150 << 30, pci_domain_id=0, pci_bus_id=0x1B,
        pci_device_id=0, uuid="aaaa-bbbb", gcnArchName="gfx950:sramecc+",
    )  # fmt: skip
    module = SimpleNamespace(
        device_count=lambda: gpus,
        is_available=lambda: gpus > 0,
        get_device_properties=lambda index: properties,
        can_device_access_peer=lambda one, other: one < other,
        get_arch_list=lambda: ["gfx942", "gfx950"],
        _sleep=lambda cycles: None,
    )
    return SimpleNamespace(
        __version__="2.15.0",
        version=SimpleNamespace(cuda=None if hip else "13.2", hip=hip),
        device=lambda kind, index: SimpleNamespace(type=kind, index=index),
        get_num_threads=lambda: 2,
        accelerator=SimpleNamespace(
            is_available=lambda: gpus > 0, current_accelerator=lambda: SimpleNamespace(type=kind)
        ),
        **{kind: module},
    )
