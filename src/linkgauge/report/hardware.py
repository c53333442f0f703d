"""hardware.yml as it is written: what the machine knows of itself is filled in, what it cannot know
stands there empty."""

from __future__ import annotations

import yaml

from linkgauge.machine.hardware import known_values
from linkgauge.model.machine import Machine

_TO_STATE = {
    "soc": "SoC model and silicon revision, such as X2800-v1",
    "nvlink_fusion_fw": "firmware of the NVLink Fusion PHY, such as 2025.12.4",
    "firmware": "of the host: BIOS or UEFI version",
}
_NOT_FOUND = "not found"


def hardware_yaml(machine: Machine) -> str:
    """The file's text. A value that is stated stands where it was asked for."""
    stated = dict(machine.inventory.stated) if machine.inventory else {}
    known = known_values(machine)
    lines = ["# linkgauge devices --yaml; fill in what is empty, then give it by --hardware"]
    if machine.simulated is not None:
        lines.append(f"# SIMULATED: {machine.simulated}")
    for key, value in known.items():
        stands = stated.pop(key, value)
        comment = "" if stands else f"  # {_TO_STATE.get(key, _NOT_FOUND)}"
        lines.append(f"{key}:{' ' + _scalar(stands) if stands else ''}{comment}")
    lines += [f"{_scalar(key)}: {_scalar(value)}" for key, value in stated.items()]
    return "\n".join(lines) + "\n"


def _scalar(value: str) -> str:
    """A string on one line, quoted where YAML would read something else."""
    return yaml.safe_dump(value, width=1 << 16, allow_unicode=True).removesuffix("...\n").strip()
