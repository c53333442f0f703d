"""YAML: of a machine, hardware.yml."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from linkgauge.model.machine import Machine


def _hardware(machine: Machine) -> str:
    from linkgauge.machine.hardware import hardware_yaml

    return hardware_yaml(machine)


FORMAT = Format("yaml", "Write hardware.yml to stdout.", {"machine": _hardware}, extension=".yml")
