"""Reads the versions of kernel modules and libraries, and which CPUs handle interrupts. A capture
keeps all names in a folder that is listed, so this file lists no folders with private names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import distributions

import msgspec

from linkgauge.model.shareable import Digest, PciAddress, Version, Word

from .tree import INTERFACES, PCI, ROOT, Root, hexadecimal

SOFTWARE = "linkgauge/software.json"
"""The file of a captured machine that holds its `Software`, for people and scripts."""
MODULES = "sys/module"
DKMS = "var/lib/dkms"
_NVIDIA = "proc/driver/nvidia/version"
_TOOLKITS = ("usr/local/cuda", "opt/cuda")
_ROCM = "opt/rocm/.info/version"
_PLACES = (
    "usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib/riscv64-linux-gnu",
    "usr/lib64", "usr/lib", "usr/local/lib",
)  # fmt: skip
"""The folders in which distributions keep libraries. The first folder that has a library counts."""
_LIBRARIES = {
    "libcuda": "libcuda.so.1",
    "libcudart 12": "libcudart.so.12",
    "libcudart 13": "libcudart.so.13",
    "libnccl": "libnccl.so.2",
    "librccl": "librccl.so.1",
    "libOpenCL": "libOpenCL.so.1",
}
_CLASSES = (0x02, 0x03, 0x0B, 0x12)
"""PCI classes of devices whose interrupts are read: network, display, co-processor and accelerator.
NVMe drives are read, too."""
_NVME = 0x0108
_PACKAGES = {
    "cuda-bindings", "cuda-python", "cupy", "mpi4py", "mpich", "nccl4py", "numpy", "openmpi",
    "pocl-binary-distribution", "pyopencl", "torch", "triton",
}  # fmt: skip


class Module(msgspec.Struct, frozen=True, omit_defaults=True):
    """A kernel module. Modules of equal version may differ in `srcversion`, a source checksum."""

    version: Version | None = None
    srcversion: Digest | None = None


class DkmsModule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A kernel module in DKMS. `state` is `added` (only sources), `built` or `installed`."""

    module: Word
    version: Version
    state: Word
    kernel: Version | None = None
    architecture: Word | None = None


class Interrupt(msgspec.Struct, frozen=True, omit_defaults=True):
    """An interrupt of a device. `allowed` lists the CPUs that may handle it, such as `0-3,8`.
    `effective` lists the CPUs that the kernel chose among them."""

    number: int
    kind: Word
    allowed: Word | None = None
    effective: Word | None = None


class Software(msgspec.Struct, frozen=True, omit_defaults=True):
    """The versions of a machine's kernel modules and system libraries. `interrupts` has the
    interrupts of devices by PCI address."""

    modules: dict[Word, Module] = {}
    dkms: tuple[DkmsModule, ...] = ()
    libraries: dict[Word, Version] = {}
    interrupts: dict[PciAddress, tuple[Interrupt, ...]] = {}


def read_software(root: Root = ROOT) -> Software:
    return Software(
        modules=dict(_modules(root)),
        dkms=tuple(_dkms(root)),
        libraries=dict(_libraries(root)),
        interrupts=dict(_interrupts(root)),
    )


def installed_packages() -> dict[str, str]:
    """Returns the versions of installed Python packages that linkgauge measures with."""
    found = {
        re.sub(r"[-_.]+", "-", str(name)).lower(): one.version
        for one in distributions()
        # A folder of metadata that was left behind has no name.
        if (name := one.metadata["Name"])
    }
    kept = {name for name in found if name in _PACKAGES or name.startswith(("nvidia-", "cupy-"))}
    return {name: found[name] for name in sorted(kept)}


def interfaces(root: Root = ROOT) -> tuple[str, ...]:
    """Returns the network interfaces of real devices, not those of bridges or containers."""
    names = sorted(root.names(INTERFACES))
    return tuple(name for name in names if root.resolve(f"{INTERFACES}/{name}/device"))


def _modules(root: Root) -> Iterator[tuple[str, Module]]:
    for name in sorted(root.names(MODULES)):
        version, source = (
            root.line(f"{MODULES}/{name}/{file}") for file in ("version", "srcversion")
        )
        if version or source:
            yield name, Module(version, source)


def _dkms(root: Root) -> Iterator[DkmsModule]:
    """Yields DKMS's modules. A folder VERSION/KERNEL/ARCHITECTURE/module is a build; a link
    `kernel-KERNEL-ARCHITECTURE` next to VERSION points to the installed build."""
    for module in sorted(root.names(DKMS)):
        folder = f"{DKMS}/{module}"
        names = sorted(root.names(folder))
        for version in (name for name in names if not name.startswith("kernel-")):
            builds = list(_builds(root, f"{folder}/{version}"))
            if not builds and root.link_name(f"{folder}/{version}/source"):
                yield DkmsModule(module, version, "added")
            for kernel, architecture in builds:
                place = root.resolve(f"{folder}/kernel-{kernel}-{architecture}")
                here = root.resolve(f"{folder}/{version}/{kernel}/{architecture}")
                state = "installed" if place and place == here else "built"
                yield DkmsModule(module, version, state, kernel, architecture)


def _builds(root: Root, folder: str) -> Iterator[tuple[str, str]]:
    for kernel in sorted(set(root.names(folder)) - {"build", "source"}):
        for architecture in sorted(root.names(f"{folder}/{kernel}")):
            if "module" in root.names(f"{folder}/{kernel}/{architecture}"):
                yield kernel, architecture


def _libraries(root: Root) -> Iterator[tuple[str, str]]:
    driver = re.search(r"Kernel Module(?:\s+for \S+)?\s+([0-9][0-9.]*)", root.text(_NVIDIA) or "")
    if driver:
        yield "NVIDIA kernel module", driver[1]
    for place in _TOOLKITS:
        if version := _toolkit(root, place):
            yield "CUDA toolkit", version
            break
    if version := root.line(_ROCM):
        yield "ROCm", version
    for name, file in _LIBRARIES.items():
        # By its link alone: a folder that is looked into is kept with all of its names.
        links = (root.link_name(f"{place}/{file}") for place in _PLACES)
        target = next(filter(None, links), None)
        if target and (version := target.partition(".so.")[2]):
            yield name, version


def _toolkit(root: Root, place: str) -> str | None:
    found = re.search(
        r'"cuda"\s*:\s*\{[^{}]*"version"\s*:\s*"([^"]+)"',
        root.text(f"{place}/version.json") or "",
    )
    return found[1] if found else None


def _interrupts(root: Root) -> Iterator[tuple[str, tuple[Interrupt, ...]]]:
    for address in sorted(root.names(PCI)):
        folder = root.resolve(f"{PCI}/{address}")
        code = hexadecimal(root.text(f"{folder}/class")) if folder else None
        if code is None or not (code >> 16 in _CLASSES or code >> 8 == _NVME):
            continue
        numbers = root.names(f"{folder}/msi_irqs")
        kinds = {name: root.text(f"{folder}/msi_irqs/{name}") or "msi" for name in numbers}
        line = root.text(f"{folder}/irq")
        kinds = kinds or ({line: "line"} if line and line != "0" else {})
        found = (_interrupt(root, name, kind) for name, kind in kinds.items())
        served = tuple(sorted(filter(None, found), key=lambda one: one.number))
        if served:
            yield address, served


def _interrupt(root: Root, name: str, kind: str) -> Interrupt | None:
    if not re.fullmatch(r"[0-9]{1,9}", name, re.ASCII):
        return None
    allowed, effective = (
        root.line(f"proc/irq/{name}/{file}_affinity_list") for file in ("smp", "effective")
    )
    return Interrupt(int(name), kind, allowed, effective)
