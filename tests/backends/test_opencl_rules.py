"""What OpenCL refuses, on faked devices; and what it says where there is no OpenCL."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")

from linkgauge.backends import open_backend
from linkgauge.backends.opencl.runtime import _pci
from linkgauge.model.errors import Unsupported
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfer
from linkgauge.model.transfer import Engine, Transfer
from opencl_kit import backend_of, cl, opencl_error


def facts(index: int, platform: int = 0, *, shares: bool, fine: bool, near: int = 0) -> Any:
    """What is known of a device, as a device has it."""
    device = Device(f"opencl:{index}", "model", 1 << 30, 1 << 28, "1.0", shares, near)
    memory = Memory("opencl", index)
    known = SimpleNamespace(device=device, platform=platform, fine_grained=fine)
    return SimpleNamespace(facts=known, memory=memory, no_kernels=None)


def refusal(transfer: Transfer, devices: tuple[Any, ...], nodes: Sequence[int] = (0,)) -> Any:
    return backend_of(list(devices), nodes).refusal(transfer)


CPUS = (facts(0, shares=True, fine=True), facts(1, shares=True, fine=True))
GPUS = (facts(0, shares=False, fine=False), facts(1, shares=False, fine=True, near=1))
MIXED = (facts(0, shares=True, fine=False), facts(1, platform=1, shares=True, fine=True))


REFUSED = (
    (CPUS, "opencl:7 -> host:0 by ce", "no opencl:7 here: there is opencl:0, opencl:1"),
    (CPUS, "host:0 -> opencl:0 by opencl:7.ce", "no opencl:7 here"),
    (CPUS, "host:3 -> opencl:0 by ce", "no node host:3: this machine has host:0"),
    (CPUS, "cuda:0 -> opencl:0 by opencl:0.ce", "OpenCL does not reach cuda:0"),
    (CPUS, "host:0/huge -> opencl:0 by ce", "huge pages"),
    (CPUS, "host:0/mapped -> opencl:0 by ce", "no mapped memory"),
    (CPUS, "host:0/pageable -> opencl:0 by sm", "only host memory that OpenCL allocated"),
    (CPUS, "host:0 -> opencl:0 by host:0.cpu", "host threads do not reach"),
    (
        CPUS,
        "host:0 -> host:0/pageable by opencl:0.ce",
        "neither end is the memory of an OpenCL device",
    ),
    (CPUS, "opencl:0 -> opencl:0 by opencl:1.ce", "opencl:1 holds neither end"),
    (CPUS, "null -> opencl:0 by ce", "needs a kernel"),
    (CPUS, "host:0 <-> opencl:0 by ce", "needs a kernel"),
    (GPUS, "host:0 -> opencl:0 by sm", "may silently move the buffer first"),
    (GPUS, "opencl:0 -> opencl:1 by ce", "may be a local one"),
    (GPUS, "opencl:0 -> opencl:1 by sm", "may be a local one"),
    (GPUS, "host:0 -> null by opencl:0.sm", "may silently move the buffer first"),
    (GPUS, "opencl:1 -> null by opencl:0.sm", "opencl:0 may work on opencl:1's in its own memory"),
    (MIXED, "opencl:0 -> opencl:1 by ce", "different OpenCL platforms"),
    (MIXED, "opencl:1 -> null by opencl:0.sm", "different OpenCL platforms"),
)


@pytest.mark.parametrize(("devices", "text", "reason"), REFUSED)
def test_refuses(devices: tuple[Any, ...], text: str, reason: str) -> None:
    said = refusal(parse_transfer(text), devices)
    assert said is not None
    assert reason in said
    assert "\n" not in said


def test_refuses_what_the_notation_cannot_even_say() -> None:
    null, opencl, other = Memory("null"), Memory("opencl", 0), Memory("host", 0, rank=1)
    kernel = Engine(opencl, "sm")
    # Work without memories is none that copies: prepare() knows the operation.
    assert refusal(Transfer(null, null, kernel), CPUS) is None
    by_copies = refusal(Transfer(null, null, Engine(opencl, "ce")), CPUS)
    assert "between two memories" in str(by_copies)
    one_end = Transfer(null, opencl, kernel, both_ways=True)
    assert "two memories" in str(refusal(one_end, CPUS))
    by_host = Transfer(opencl, opencl, Engine(Memory("host", 0), "ce"))
    assert "only an OpenCL device can do this" in str(refusal(by_host, CPUS))
    assert "another process" in str(refusal(Transfer(other, opencl, kernel), CPUS))


def test_pinned_memory_is_measured_near_the_device_only() -> None:
    far = parse_transfer("host:0 -> opencl:1 by ce")
    assert "only host:1, nearest to opencl:1" in str(refusal(far, GPUS, [0, 1]))
    for text in ("host:1 -> opencl:1 by ce", "host:0/pageable -> opencl:1 by ce"):
        assert refusal(parse_transfer(text), GPUS, [0, 1]) is None


def test_without_pyopencl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyopencl", None)
    with pytest.raises(Unsupported) as caught:
        open_backend("opencl")
    assert str(caught.value) == (
        f"pyopencl is not installed: {sys.executable} -m pip install 'linkgauge[opencl]'"
    )


class Broken:
    """Stands for a platform whose driver fails, or has no device."""

    name = "broken"

    def __init__(self, error: Exception | None) -> None:
        self.error = error

    def get_devices(self) -> list[Any]:
        if self.error:
            raise self.error
        return []


def test_runtimes_without_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    platforms = [Broken(None), Broken(opencl_error("DEVICE_NOT_FOUND", "clGetDeviceIDs"))]
    monkeypatch.setattr(cl, "get_platforms", lambda: platforms)
    with pytest.raises(Unsupported, match=r"no device: broken, broken \(clGetDeviceIDs: DEVICE_NO"):
        open_backend("opencl")


def test_the_address_on_the_bus_is_the_one_of_sysfs() -> None:
    nvidia: Any = SimpleNamespace(pci_domain_id_nv=1, pci_bus_id_nv=0xC1, pci_slot_id_nv=0x11)
    # The driver gives the bus as a signed byte.
    amd: Any = SimpleNamespace(topology_amd=SimpleNamespace(bus=0x41 - 256, device=0, function=0))
    assert _pci(nvidia) == "0001:c1:02.1"
    assert _pci(amd) == "0000:41:00.0"
    assert _pci(SimpleNamespace()) is None  # type: ignore[arg-type]
