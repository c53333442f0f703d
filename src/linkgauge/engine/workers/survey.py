"""Joins the surveys of several workers into one description of the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from linkgauge.backends import GPUS
from linkgauge.machine.tree import ROOT
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.hardware.host_details import HostDetails
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.hardware.machine import Machine

SURVEY_SECONDS = 60.0
"""The seconds within which a driver must answer the survey. Otherwise it is assumed to hang."""
NOT_NEEDED = "not waited for, because another backend reaches the accelerators"


def has_no_driver(name: str | None) -> bool:
    """Whether `name` is the backend of CUDA, and NVIDIA's driver is not loaded."""
    return name == GPUS and not ROOT.exists("proc/driver/nvidia")


def reaches_accelerators(machine: Machine) -> bool:
    return any(not device.is_cpu for device in machine.all_devices)


def merge_machines(machines: Sequence[Machine], failed: Mapping[str, LinkgaugeError]) -> Machine:
    """Joins the workers' machines. `failed` has the errors of backends whose workers failed."""
    unanswered = (name for name, error in failed.items() if error.kind == "timeout")
    return msgspec.structs.replace(
        machines[0],
        inventory=merge_inventories([one.inventory for one in machines if one.inventory]),
        devices={name: of for machine in machines for name, of in machine.devices.items()},
        unavailable={name: str(error) for name, error in failed.items()}
        | {name: why for machine in machines for name, why in machine.unavailable.items()},
        unanswered=tuple(unanswered),
    )


def merge_inventories(inventories: Sequence[Inventory]) -> Inventory:
    """Joins the workers' inventories. The first that has facts about the host supplies these."""
    read = next((one for one in inventories if one.host != HostDetails()), inventories[0])
    return msgspec.structs.replace(
        read,
        accelerators=tuple(device for one in inventories for device in one.accelerators),
        unknown=tuple(dict.fromkeys(why for one in inventories for why in one.unknown)),
    )
