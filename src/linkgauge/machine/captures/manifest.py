"""The manifest of a captured machine."""

from __future__ import annotations

import msgspec

from linkgauge import __version__
from linkgauge.model.hardware.machine import Device
from linkgauge.model.shareable import Digest, MachineName, OwnName, Reason, Version, Word

from ..tools import ToolOutput

MANIFEST = "linkgauge/capture.json"
SCHEMA = "linkgauge.capture/1"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Facts that no file of the machine has: devices, packages, and the outcomes of tools."""

    schema: OwnName = SCHEMA
    linkgauge: Version = __version__
    commit: Digest | None = None
    anonymized: bool = False
    simulated: MachineName | None = None
    devices: dict[OwnName, tuple[Device, ...]] = {}
    unavailable: dict[OwnName, Reason] = {}
    packages: dict[Word, Version] = {}
    tools: tuple[ToolOutput, ...] = ()
