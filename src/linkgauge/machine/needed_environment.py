"""Environment variables that accelerators' libraries need on some machines to work at all: as a
table, with what each is for and who says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from .environment import hypervisor
from .tree import Root, hexadecimal, names_in, read_text

_AMD, _NVIDIA = 0x1002, 0x10DE
_MI350, _MI350_VIRTUAL = (0x75A0, 0x75A3), (0x75B0, 0x75B3)
"""PCI devices of MI350X and MI355X, and of virtual functions of both."""
_DEVICES = "sys/bus/pci/devices"


class Need(msgspec.Struct, frozen=True):
    """`variable` is set to `value` on a machine with a PCI device of this `vendor`, one of these
    `devices` if there are any, `because` of what happens without; `source` says so. Some are of
    guests of a hypervisor alone."""

    variable: str
    value: str
    vendor: int
    devices: tuple[int, ...]
    because: str
    source: str
    only_in_guests: bool = False


NEEDS: tuple[Need, ...] = (
    Need(
        "HSA_NO_SCRATCH_RECLAIM",
        "1",
        _AMD,
        (*_MI350, *_MI350_VIRTUAL),
        "RCCL ends with a fatal error of scratch memory being reclaimed",
        "vCPU benchmark suite, AMD-specific notes",
    ),
    Need(
        "NCCL_P2P_DISABLE",
        "1",
        _AMD,
        _MI350_VIRTUAL,
        "virtual functions that access each other's memory hang; RCCL goes by way of the host",
        "vCPU benchmark suite, AMD-specific notes",
    ),
    Need(
        "NCCL_NVLS_ENABLE",
        "0",
        _NVIDIA,
        (),
        "multicast memory of a guest can put GPUs out of service that others of the host use",
        "docs/several-processes.md",
        only_in_guests=True,
    ),
)


def needed(root: Root, environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that this machine needs and that are not set in `environment`, which always
    wins."""
    return {
        need.variable: need.value for need in _applying(root) if need.variable not in environment
    }


def in_force(root: Root, address: str, environment: Mapping[str, str]) -> tuple[str, ...]:
    """The variables of the table that concern the PCI function at this address, as they are set:
    `HSA_NO_SCRATCH_RECLAIM=1`."""
    is_of = _identity(root, address)
    return tuple(
        f"{need.variable}={environment[need.variable]}"
        for need in _applying(root)
        if is_of is not None and need.vendor == is_of[0] and is_of[1] in (need.devices or is_of)
        if need.variable in environment
    )


def _applying(root: Root) -> Iterator[Need]:
    present = set(_present(root))
    is_guest = hypervisor(root)[0] is not None
    for need in NEEDS:
        wanted = {device for vendor, device in present if vendor == need.vendor}
        if wanted & set(need.devices or wanted) and (is_guest or not need.only_in_guests):
            yield need


def _present(root: Root) -> Iterator[tuple[int, int]]:
    """Vendor and device of each PCI function."""
    for name in names_in(root, _DEVICES):
        if (found := _identity(root, name)) is not None:
            yield found


def _identity(root: Root, address: str) -> tuple[int, int] | None:
    """Vendor and device of the PCI function at this address; None if unreadable."""
    vendor, device = (
        hexadecimal(read_text(root, f"{_DEVICES}/{address}/{what}"))
        for what in ("vendor", "device")
    )
    return None if vendor is None or device is None else (vendor, device)
