"""Virtual machines: compares a libvirt domain with its guest or its host, and writes better XML."""

from linkgauge.registry import Room

ROOM = Room("vm", commands={"vm": f"{__name__}.command:vm"})
