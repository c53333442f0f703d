"""Chooses the vendor's own tool for a remedy."""

from __future__ import annotations

from functools import partial
from typing import Literal

from linkgauge.model.hardware.inventory import Accelerator

from .findings import Evidence

NVIDIA, AMD, REBELLIONS = 0x10DE, 0x1002, 0x1EFF

Matter = Literal["state", "users", "links", "errors", "peers", "topology", "slots"]

_TOOLS: dict[Matter, dict[int, str]] = {
    "state": {
        NVIDIA: "nvidia-smi -q -d CLOCK,PERFORMANCE,POWER,TEMPERATURE",
        AMD: "amd-smi metric",
        REBELLIONS: "rbln-smi",
    },
    "users": {NVIDIA: "nvidia-smi pmon -c 1", AMD: "amd-smi process", REBELLIONS: "rbln-smi"},
    "links": {NVIDIA: "nvidia-smi nvlink -s", AMD: "amd-smi xgmi"},
    "errors": {NVIDIA: "nvidia-smi nvlink -e", AMD: "amd-smi xgmi"},
    "peers": {
        NVIDIA: "nvidia-smi topo -p2p r  # the GPUs of a virtual machine need a common peer "
        "clique (x-nv-gpudirect-clique)",
        AMD: "amd-smi topology",
    },
    "topology": {NVIDIA: "nvidia-smi topo -m", AMD: "amd-smi topology"},
    "slots": {NVIDIA: "nvidia-smi -q, GPU Link Info", AMD: "amd-smi metric --pcie"},
}


def vendor_of(evidence: Evidence, memory: str) -> int | None:
    """Returns the PCI vendor ID of a device. A CUDA device that PCI does not show is NVIDIA's."""
    function = evidence.machine.functions.get(evidence.machine.addresses.get(memory, ""))
    vendor = function.vendor if function else None
    return NVIDIA if vendor is None and memory.startswith("cuda:") else vendor


def tools(evidence: Evidence, matter: Matter) -> tuple[str, ...]:
    names = *evidence.machine.addresses, *evidence.machine.by_memory
    vendors = set(map(partial(vendor_of, evidence), names))
    return tuple(tool for vendor, tool in _TOOLS[matter].items() if vendor in vendors)


def tool_of(vendor: int | None, matter: Matter) -> str:
    """Returns the vendor's command, or `lspci -vv` for an unknown vendor."""
    return _TOOLS[matter].get(vendor or 0, "lspci -vv").partition("  #")[0]


def nvidia(evidence: Evidence, memory: str, *commands: str) -> tuple[str, ...]:
    return commands if vendor_of(evidence, memory) == NVIDIA else ()


def nvidia_option(evidence: Evidence, device: Accelerator, option: str) -> tuple[str, ...]:
    """Returns an nvidia-smi command; empty if the device is not NVIDIA's."""
    which = device.pci or device.memory.rpartition(":")[2]
    return nvidia(evidence, device.memory, f"sudo nvidia-smi -i {which} {option}")
