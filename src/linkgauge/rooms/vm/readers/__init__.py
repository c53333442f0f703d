"""Definitions of virtual machines that are not libvirt's XML, a file each: a function that knows
its form, and one that reads it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from linkgauge.rooms.vm.domain import Domain

from . import proxmox, qemu


class Reader(NamedTuple):
    """`knows` tells whether a text is of this form; `parse` raises InputError in one line."""

    name: str
    knows: Callable[[str], bool]
    parse: Callable[[str], Domain]


READERS = (
    Reader("a configuration of Proxmox VE", proxmox.knows, proxmox.parse),
    Reader("a command line of QEMU", qemu.knows, qemu.parse),
)


def reader_of(text: str) -> Reader | None:
    return next((one for one in READERS if one.knows(text)), None)
