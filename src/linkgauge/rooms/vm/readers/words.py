"""Reads syntax that several systems share: options with commas, numbers, sizes and lists."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.model.errors import InputError
from linkgauge.rooms.vm.domain import MOST, BusAddress, HostDevice, length, parse_cpu_set

_SIZE = re.compile(r"([0-9]{1,15})([kmgt]?)(?:i?b)?", re.IGNORECASE | re.ASCII)
_POWERS = {"k": 10, "m": 20, "g": 30, "t": 40}
MODES = {"bind": "strict", "preferred": "preferred", "interleave": "interleave"}
"""QEMU's names of memory policies, which Proxmox VE uses, and libvirt's names of the same."""
_ADDRESS = re.compile(
    r"(?:([0-9a-f]{4}):)?([0-9a-f]{2}):([01][0-9a-f])(?:\.([0-7]))?", re.IGNORECASE | re.ASCII
)


def options(text: str, first: str) -> Iterator[tuple[str, str]]:
    """Yields names and values of `host,pcie=1`. A first word without `=` is a value of `first`."""
    for place, word in enumerate(text.split(",")):
        name, sign, value = word.strip().partition("=")
        yield (name, value) if sign or place else (first, name)


def count(text: str, what: str, most: int = MOST) -> int:
    if not re.fullmatch("[0-9]{1,9}", text, re.ASCII) or not int(text) <= most:
        raise InputError(f"{what} is {text[:40]!r}: give a number from 0 to {most}")
    return int(text)


def vcpus(text: str, what: str) -> int:
    if (number := count(text, what)) == 0:
        raise InputError(f"{what} is 0: give a number from 1 to {MOST}")
    return number


def size(text: str, what: str, power: int = 20) -> int:
    """Returns the bytes of `16G`. A number without a unit is multiplied by 2^`power`."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise InputError(f"{what} is {text[:40]!r}: give a size such as 16G")
    return int(match[1]) << _POWERS.get(match[2].lower(), power)


def numbers(text: str, what: str) -> tuple[int, ...]:
    if length(text) > MOST:
        raise InputError(f"{what} lists more than {MOST} numbers")
    try:
        return parse_cpu_set(text)
    except ValueError as error:
        raise InputError(f"{what} is {text[:40]!r}: {error}") from error


def address(text: str, what: str) -> str:
    """Returns a PCI address as sysfs writes it. An address without a function gets function 0."""
    match = _ADDRESS.fullmatch(text)
    if match is None:
        raise InputError(f"{what} is {text[:40]!r}: give a PCI address such as 0000:41:00.0")
    return f"{match[1] or '0000'}:{match[2]}:{match[3]}.{match[4] or 0}".lower()


def host_device(source: str, guest: BusAddress | None = None) -> HostDevice:
    domain, bus, rest = source.split(":")
    slot, function = rest.split(".")
    address_ = (
        f"<address domain='0x{domain}' bus='0x{bus}' slot='0x{slot}' function='0x{function}'/>"
    )
    element = "<hostdev mode='subsystem' type='pci' managed='yes'>"
    return HostDevice(
        source, guest, managed=True, element=f"{element}<source>{address_}</source></hostdev>"
    )
