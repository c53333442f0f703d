"""Backend torch without torch: what it refuses and remarks, its devices, and works behind its gate,
a kernel that takes its time, on streams whose clock a test moves."""

import sys
from unittest.mock import patch

import pytest

from amd_tree import gpu
from fakes import machine
from linkgauge.backends import open_backend
from linkgauge.backends.amd import AmdTelemetry
from linkgauge.backends.protocol import run
from linkgauge.backends.torch import gated
from linkgauge.backends.torch.gated import GatedGroup
from linkgauge.model.errors import AllocationError, BackendError, NoPeerAccess, Unsupported
from linkgauge.model.notation import parse_memory, parse_transfer
from linkgauge.model.settings import EngineSettings
from machine_kit import captured
from torch_kit import FakeClock, FakeUnit, FakeWork, fake_torch


def opened(**devices):
    """The backend with the devices of this torch, on a machine of two nodes."""
    with patch.dict(sys.modules, torch=fake_torch(**devices)):
        return open_backend("torch", EngineSettings(), machine(nodes=2).host)


def reason(text, **devices):
    return opened(**devices).refusal(parse_transfer(text))


def remarks(text, **devices):
    return opened(**devices).remarks(parse_transfer(text))


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("host:0 -> torch:cuda:7", "no torch:cuda:7 here: there is torch:cuda:0, torch:cuda:1"),
        ("host:9 -> torch:cuda:0", "no node host:9"),
        ("host:0@1 -> torch:cuda:0", "belongs to another process"),
        ("host:0 -> cuda:0 by torch:cuda:0.ce", "torch does not reach cuda:0"),
        ("host:0 -> torch:cuda:0 by host:0.cpu", "only a device of torch can do this"),
        ("host:0 -> torch:cuda:0 by sm", "their own device alone: use ce"),
        ("torch:cuda:0 -> torch:cuda:1 by sm", "their own device alone: use ce"),
        ("torch:cuda:0 -> null by sm", "no operation that only reads memory"),
        ("torch:cuda:0 -> null by ce", "a pure read or write needs a kernel"),
        ("torch:cuda:0 <-> torch:cuda:1 by sm", "join two transfers with '&'"),
        ("host:0 -> host:1 by torch:cuda:0.ce", "neither end is the memory of a device"),
        ("host:0 -> torch:cuda:0 by torch:cuda:1.ce", "holds neither end"),
        ("torch:cuda:0 -> torch:cuda:1 by torch:cuda:1.ce", "on a stream of the source"),
        ("torch:cuda:0 -> torch:cpu:0", "by way of the host"),
        ("host:0/wc -> torch:cuda:0", "no wc host memory"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_refused_with_the_reason(text, because):
    assert because in str(reason(text))


def test_devices_without_peer_access_say_so():
    why = reason("torch:cuda:1 -> torch:cuda:0")
    assert isinstance(why, NoPeerAccess)
    assert "no peer access from torch:cuda:1 to torch:cuda:0" in str(why)


def test_pinned_memory_that_torch_allocates_is_only_measured_near_the_device():
    assert reason("host:0 -> torch:xpu:0", kind="xpu") is None
    assert reason("host:1/pageable -> torch:xpu:0", kind="xpu") is None
    far = reason("host:1 -> torch:xpu:0", kind="xpu")
    assert "only host:0, nearest to torch:xpu:0" in far
    assert "itself: use host:N" in reason("host:0/huge -> torch:xpu:0", kind="xpu")


def test_what_the_hosts_clock_times_says_so():
    assert remarks("host:0 -> torch:cuda:0") == ()
    (pageable,) = remarks("host:0/pageable -> torch:cuda:0")
    assert "the host's clock" in pageable
    assert remarks("host:1 -> torch:xpu:0", kind="xpu") == (pageable,)
    shared = "host:0 and torch:cpu:0 share one DRAM"
    assert remarks("host:0 -> torch:cpu:0") == (pageable, shared)
    assert remarks("null -> null by torch:cuda:0.sm") == (
        "products by torch.matmul (torch 2.15.0)",
    )


def test_amds_gpus_are_described_by_their_driver_and_by_torch():
    backend = opened(hip="7.1.2", gpus=1)
    backend.sensors = AmdTelemetry(backend.devices(), captured(gpu("0000:1b:00.0")))
    (one,) = backend.inventory()
    assert (one.memory, one.link.speed, one.power) == ("torch:cuda:0", 32.0, 158.0)
    assert (one.isa, one.runtime) == ("gfx950", "ROCm 7.1.2")
    (now,) = backend.sense([parse_memory("torch:cuda:0")])
    assert now.clock == 1.204e9
    backend.close()


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate\n2 GiB"), AllocationError, "CUDA out"),
        (RuntimeError("CUDA error: an illegal memory access"), BackendError, "illegal memory"),
        (MemoryError(), AllocationError, "no reason"),
        (NotImplementedError("no such kernel"), Unsupported, "no such kernel"),
        (RuntimeError("\"addmm\" not implemented for 'Half'"), Unsupported, "not implemented"),
    ],
)
def test_errors_of_torch_are_one_line_that_names_the_call(error, kind, said):
    def empty(*_, **__):
        raise error

    backend, work = opened(), parse_transfer("null -> torch:cuda:0 by sm")
    (unit, *_) = backend._units.values()
    unit.torch.uint8, unit.torch.empty = None, empty
    with pytest.raises(kind) as caught:
        backend.allocate(work.destination, 1 << 30, work.engine)
    assert type(caught.value) is kind
    assert "torch.empty" in str(caught.value)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_without_torch_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(Unsupported, match=r"^torch .*: .*pip install 'linkgauge\[ai\]'$"):
        open_backend("torch")


@pytest.fixture
def clock(monkeypatch):
    found = FakeClock()
    monkeypatch.setattr(gated, "time", found)
    return found


def test_only_loops_are_timed_not_what_the_host_does(clock):
    work = FakeWork([FakeUnit(clock)], each=1e-3, call=1e-4)
    timing = run(GatedGroup([work]), 4, 3)
    assert timing.seconds == pytest.approx((12e-3,))
    assert timing.span == pytest.approx(12e-3)
    assert timing.progress[0] == pytest.approx((0, 4e-3, 8e-3, 12e-3))
    assert timing.checksums == (None,)


def test_a_gate_that_never_holds_is_an_error(clock):
    class Slower(FakeWork):
        """Takes the host ever longer."""

        def enqueue(self, loops):
            super().enqueue(loops)
            self.call *= 4

    with pytest.raises(BackendError, match="gate: not closed"):
        run(GatedGroup([Slower([FakeUnit(clock)], each=1e-6, call=1e-2)]), 1)


def test_works_start_together_when_all_are_warm(clock):
    units = FakeUnit(clock), FakeUnit(clock, "torch:cuda:1")
    works = [FakeWork([units[0]], each=1e-3), FakeWork([units[1]], each=5e-3)]
    group = GatedGroup(works)
    timing = run(group, 2)
    assert timing.seconds == pytest.approx((2e-3, 10e-3))
    assert timing.span == pytest.approx(10e-3)
    assert [work.loops for work in works] == [[1, 2], [1, 2]]


def test_calls_out_of_order_raise_and_closing_is_always_safe(clock):
    group = GatedGroup([FakeWork([FakeUnit(clock)], each=1e-3)])
    for call in (group.wait, group.open):
        with pytest.raises(BackendError):
            call()
    group.arm(1)
    with pytest.raises(BackendError):
        group.arm(1)
    group.close()
    group.close()
