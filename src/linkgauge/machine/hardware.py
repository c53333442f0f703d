"""Reads and writes hardware.yml, where people state what the machine does not report."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine

_TO_STATE = {
    "soc": "SoC model and silicon revision, such as X2800-v1",
    "nvlink_fusion_fw": "firmware of the NVLink Fusion PHY, such as 2025.12.4",
    "firmware": "of the host: BIOS or UEFI version",
    "dimms": "rate of all DIMMs together, such as 307.2 GB/s",
}
_NOT_FOUND = "not found"
_GIGA = 1e9
_RATE = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,6})?) ?GB/s")
_NULLS = ("", "~", "null", "Null", "NULL")


def hardware_yaml(machine: Machine) -> str:
    stated = dict(machine.inventory.stated) if machine.inventory else {}
    known = known_values(machine)
    lines = ["# linkgauge devices --yaml; fill in the empty values, then pass it with --hardware"]
    if machine.simulated is not None:
        lines.append(f"# SIMULATED: {machine.simulated}")
    for key, value in known.items():
        stands = stated.pop(key, value)
        comment = "" if stands else f"  # {_TO_STATE.get(key, _NOT_FOUND)}"
        lines.append(f"{key}:{' ' + _scalar(stands) if stands else ''}{comment}")
    lines += [f"{_scalar(key)}: {_scalar(value)}" for key, value in stated.items()]
    return "\n".join(lines) + "\n"


def known_values(machine: Machine) -> dict[str, str | None]:
    """Returns the machine's values by the keys of hardware.yml; None for a value not reported."""
    host, rate = machine.host, machine.known.host.memory_rate
    return {
        "host": host.hostname or None,
        "architecture": host.architecture or None,
        "cpu": host.cpu_model,
        "soc": None,
        "firmware": None,
        "dimms": None if rate is None else f"{rate / _GIGA:g} GB/s",
        "nvlink_fusion_fw": None,
        **dict(_accelerators(machine)),
        "os": host.system or None,
        "kernel": host.kernel or None,
    }


def _accelerators(machine: Machine) -> Iterator[tuple[str, str | None]]:
    inventory = machine.known
    listed = [device for devices in machine.devices.values() for device in devices if device.pci]
    found = inventory.accelerators or listed
    models = list(dict.fromkeys(one.model for one in found))
    nvidia = any("nvidia" in model.lower() for model in models)
    drivers = list(dict.fromkeys(one.driver for one in found if one.driver))
    yield "gpu", ", ".join(models) or None
    yield "gpu_count", str(len(found)) if found else None
    yield "nvidia_driver" if nvidia or not found else "driver", ", ".join(drivers) or None


def _scalar(value: str) -> str:
    import yaml

    # YAML has escapes for what is not printable, too.
    text: str = yaml.safe_dump(value, width=1 << 16, allow_unicode=value.isprintable())
    return text.removesuffix("...\n").strip()


def read_hardware(path: Path) -> dict[str, str]:
    """Returns the values in the file. Raises InputError if it is unreadable or not `key: value`."""
    import yaml  # 10 ms, and every session imports this module

    from .given import MOST_YAML, encodable, read_given, yaml_problem

    try:
        content = read_given(path, MOST_YAML)
        # BaseLoader makes strings alone, as safe as safe_load; that would take 2025.10 for 2025.1.
        values = encodable(yaml.load(content, yaml.BaseLoader))  # noqa: S506
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        what = yaml_problem(error) + (f", line {mark.line + 1}" if mark else "")
        raise InputError(f"{path} is not YAML ({what}): give lines of key: value") from error
    if not isinstance(values, dict):
        raise InputError(f"{path} is not a hardware.yml: give lines of key: value")
    for key, value in values.items():
        if not (isinstance(key, str) and isinstance(value, str)):
            raise InputError(f"{path}: {key} is not a plain value: give lines of key: value")
    return {key: value for key, value in values.items() if value not in _NULLS}


def state(machine: Machine, values: dict[str, str]) -> Machine:
    """Returns the machine with `values` that the user stated. Raises InputError if `dimms` is not a
    memory rate like `307.2 GB/s`."""
    known = known_values(machine)
    stated = {key: value for key, value in values.items() if known.get(key) != value}
    inventory = machine.known
    if "dimms" in stated and known["dimms"] is None:  # a rate that the machine reports wins
        of_host = msgspec.structs.replace(inventory.host, memory_rate=_rate(stated["dimms"]))
        inventory = msgspec.structs.replace(inventory, host=of_host)
    return msgspec.structs.replace(
        machine, inventory=msgspec.structs.replace(inventory, stated={**inventory.stated, **stated})
    )


def _rate(text: str) -> float:
    match = _RATE.fullmatch(text)
    if match is None or float(match[1]) == 0:
        raise InputError(f"dimms: {text!r} is no rate: give one such as 307.2 GB/s")
    return float(match[1]) * _GIGA
