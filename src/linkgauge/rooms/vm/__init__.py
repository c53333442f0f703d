"""Virtual machines: a libvirt domain beside its guest or its host, and the XML that suits it."""

from linkgauge.registry import Room

ROOM = Room("vm", commands={"vm": f"{__name__}.command:vm"})
