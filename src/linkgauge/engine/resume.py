"""Whether a run may go on: on the machine it began on, and asked for the same."""

from __future__ import annotations

from collections.abc import Mapping

from linkgauge.model.errors import InputError
from linkgauge.model.machine import Machine


def fingerprint(machine: Machine) -> dict[str, str]:
    """What figures depend on and what stays as long as nobody changes the machine, by its name:
    never a reading such as free memory."""
    host = machine.host
    prints = {
        "host name": host.hostname,
        "architecture": host.architecture,
        "CPU": host.cpu_model or "",
        "NUMA nodes": ", ".join(str(node.index) for node in host.nodes),
    }
    for devices in machine.devices.values():
        for device in devices:
            prints[device.memory] = device.model
            prints[f"driver of {device.memory}"] = device.driver
            prints[f"PCI address of {device.memory}"] = device.pci or ""
            prints[f"UUID of {device.memory}"] = device.uuid or ""
    return prints


def check_same_machine(then: Machine, now: Machine) -> None:
    """Raises InputError with the first thing in which this machine differs from the run's."""
    was, present = fingerprint(then), fingerprint(now)
    for name in dict.fromkeys((*was, *present)):
        before, after = (prints.get(name) or "not there" for prints in (was, present))
        if before != after:
            raise InputError(
                f"this is not the machine that the run began on: {name} was {before}, "
                f"is {after}: start a new run"
            )


def check_same_options(then: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raises InputError for the first option given that is not in effect in the run."""
    for name, value in given.items():
        if then.get(name) != value:
            own = f"{name} {then[name]}".strip() if name in then else f"no {name}"
            raise InputError(
                f"{f'{name} {value}'.strip()} disagrees with the run's own ({own}): "
                "leave it out, or start a new run"
            )
