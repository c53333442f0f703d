"""Definitions by other systems than libvirt, a file each. One that writes libvirt's XML has a
namespace in it. Each has a function that asks the system for a placement by its own settings."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from . import kubevirt, openstack, proxmox

_OWNERS = {one.NAME: one for one in (kubevirt, openstack)}
SETTINGS = {one.NAME: one.settings for one in (kubevirt, openstack, proxmox)}


def owner_of(root: Element) -> str | None:
    """By the metadata; None for libvirt."""
    tags = [element.tag for element in root.iterfind("metadata/*")]
    owned = (name for name, one in _OWNERS.items() if any(f"{{{one.NAMESPACE}" in t for t in tags))
    return next(owned, None)
