"""YAML: of a machine, hardware.yml."""

from __future__ import annotations

from . import Format, late

FORMAT = Format(
    "yaml",
    "Write hardware.yml to stdout.",
    {"machine": late("machine.hardware", "hardware_yaml")},
)
