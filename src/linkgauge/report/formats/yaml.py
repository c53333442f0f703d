"""YAML: for a machine, hardware.yml."""

from __future__ import annotations

from . import Format, late

_HARDWARE = late("machine.hardware", "hardware_yaml")
FORMAT = Format("yaml", "Write hardware.yml to stdout.", {"machine": _HARDWARE})
