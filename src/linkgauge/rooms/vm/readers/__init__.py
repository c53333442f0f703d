"""Reads and writes definitions of virtual machines. In a system's module, `knows` and `parse` read
text, NAMESPACE marks its libvirt XML, and `settings` writes a placement."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element

from linkgauge.rooms.vm.domain import Domain

from . import kubevirt, openstack, proxmox, qemu

_OWNERS = {one.NAME: one for one in (kubevirt, openstack)}
SETTINGS = {one.NAME: one.settings for one in (kubevirt, openstack, proxmox)}


def parser_of(text: str) -> Callable[[str], Domain] | None:
    """Returns the parser of a text's format, or None for an unknown format."""
    return next((one.parse for one in (proxmox, qemu) if one.knows(text)), None)


def owner_of(root: Element) -> str | None:
    """Returns the system that wrote a domain's XML, by its metadata, or None for libvirt itself."""
    tags = [element.tag for element in root.iterfind("metadata/*")]
    owned = (name for name, one in _OWNERS.items() if any(f"{{{one.NAMESPACE}" in t for t in tags))
    return next(owned, None)
