"""Definitions of virtual machines by other systems than libvirt, a file each. One that is not XML
has a function that knows the form and one that reads it. One that writes libvirt's XML has a
namespace in it. Systems with settings of their own have a function that writes a placement as
these."""

from __future__ import annotations

from collections.abc import Callable
from xml.etree.ElementTree import Element

from linkgauge.rooms.vm.domain import Domain

from . import kubevirt, openstack, proxmox, qemu

_OWNERS = {one.NAME: one for one in (kubevirt, openstack)}
SETTINGS = {one.NAME: one.settings for one in (kubevirt, openstack, proxmox)}


def parser_of(text: str) -> Callable[[str], Domain] | None:
    """Returns the function that reads this definition, which is not XML; None if its form is
    unknown. The function raises InputError in one line."""
    return next((one.parse for one in (proxmox, qemu) if one.knows(text)), None)


def owner_of(root: Element) -> str | None:
    """Returns the name of the system that writes a domain's XML, by the metadata; None for
    libvirt."""
    tags = [element.tag for element in root.iterfind("metadata/*")]
    owned = (name for name, one in _OWNERS.items() if any(f"{{{one.NAMESPACE}" in t for t in tags))
    return next(owned, None)
