"""What a machine ran on while it was measured: what may change from one run to the next, as short
texts by name. A fact that is not known is left out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from linkgauge.model.host_details import HostDetails
from linkgauge.model.inventory import Accelerator
from linkgauge.model.machine import Machine
from linkgauge.model.result import Run

from .machine_facts import ABSENT, Fact, facts_of, options_apart

_NOT_OF_THE_STATE = ("machine", "accelerators", "CPU steal", "profile")
"""What tells machines apart, differs in every run, or is asked for."""
KERNEL_OPTIONS = "kernel options"


def state_of(run: Run) -> dict[str, str]:
    """Each fact by its name: driver, firmware, kernel, BIOS, microcode, links and the like."""
    return state_from(run.machine, facts_of(run))


def state_from(machine: Machine, facts: Mapping[str, str | None]) -> dict[str, str]:
    """The same, of a run's machine and of its `facts_of`."""
    inventory = machine.known
    state = {
        "accelerators": _counted(device.model for device in machine.all_devices) or ABSENT,
        **_of_host(inventory.host, machine.host.system),
        **_of_accelerators(inventory.accelerators),
        "driver": _driver(machine),
        **{name: facts[name] for name in facts if name not in _NOT_OF_THE_STATE},
    }
    return {name: value for name, value in state.items() if value}


def facts_apart(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Fact, ...]:
    """In what two states differ; null is what one does not know."""
    names = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    return tuple(Fact(name, _values(name, before.get(name), after.get(name))) for name in names)


def _values(name: str, before: str | None, after: str | None) -> tuple[str | None, ...]:
    """Of a long command line, the options that changed."""
    if name == KERNEL_OPTIONS and before is not None and after is not None:
        return options_apart((before, after)).values
    return before, after


def _of_host(host: HostDetails, system: str) -> dict[str, str | None]:
    return {
        "system": system,
        "BIOS": host.firmware,
        "microcode": host.microcode,
        KERNEL_OPTIONS: host.command_line,
    }


def _of_accelerators(found: tuple[Accelerator, ...]) -> dict[str, str | None]:
    return {
        "firmware": _counted(one.firmware for one in found),
        "library": _distinct(one.library for one in found),
        "fabric links": _counted(map(_fabric, found)),
        "ECC": _counted(_switch(one.ecc) for one in found),
        "MIG": _counted(_switch(one.mig) for one in found),
        "power limit": _counted(one.power_limit and f"{one.power_limit:.0f} W" for one in found),
        "locked clock": _counted(
            one.locked_clock and f"{one.locked_clock / 1e6:.0f} MHz" for one in found
        ),
    }


def _driver(machine: Machine) -> str | None:
    """Of the vendors' libraries; else as backends report it."""
    found = machine.known.accelerators
    own = _distinct(one.driver for one in found)
    return own or _distinct(one.driver for one in machine.all_devices if not one.is_cpu)


def _fabric(one: Accelerator) -> str | None:
    """`18 of 18 NVLink`: the active links of a device."""
    if not one.links:
        return None
    kinds = "/".join(dict.fromkeys(link.kind for link in one.links))
    return f"{sum(link.active is True for link in one.links)} of {len(one.links)} {kinds}"


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _distinct(values: Iterable[str | None]) -> str | None:
    return ", ".join(dict.fromkeys(value for value in values if value)) or None


def _counted(values: Iterable[str | float | None]) -> str | None:
    """`8 × 96.00.61`, or where they differ `7 × 96.00.61, 1 × 96.00.44`."""
    counts = Counter(str(value) for value in values if value)
    return ", ".join(f"{count} × {what}" for what, count in counts.items()) or None
