"""Whether runs can be judged by each other: on machines of one kind, and measured in one way.

Drivers, firmware and kernels are no part of it: what they change is what a comparison is to find.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from msgspec.structs import replace

from linkgauge.model.machine import Machine
from linkgauge.model.settings import Settings
from linkgauge.model.units import format_size

from .machine_state import ABSENT, Fact, options_apart
from .run_figures import RunFigures

Runs = Sequence[RunFigures]
_READINGS = ("CPU steal",)
"""Facts that every run reads anew: a difference is no change of the machine."""


def unlike(sides: Sequence[Runs]) -> tuple[Fact, ...]:
    """In what the machines and settings of the sides differ that figures depend on, with the values
    of each side. Another host is unlike, unless the first side has several hosts."""
    facts = [Fact(name, tuple(_all_of(side, read) for side in sides))
             for name, read in _MACHINE.items()]  # fmt: skip
    if len({run.machine.host.hostname for run in sides[0]}) < 2:
        facts.append(Fact("machine", tuple(_all_of(side, _hostname) for side in sides)))
    facts += settings_facts(sides)
    return tuple(fact for fact in facts if len(set(fact.values)) > 1)


def differences(sides: Sequence[Runs]) -> tuple[Fact, ...]:
    """All that is known of machines and settings in which the sides differ."""
    names = dict.fromkeys(name for side in sides for run in side for name in run.facts)
    facts = [
        Fact(name, tuple(_joined(run.facts.get(name) for run in side) for side in sides))
        for name in names
        if name not in _READINGS
    ]
    lines = [_joined(_command_line(run.machine) for run in side) for side in sides]
    facts.append(options_apart(lines))
    known = {fact.name for fact in facts}
    facts += [fact for fact in settings_facts(sides) if fact.name not in known]
    return tuple(fact for fact in facts if len(set(fact.values)) > 1)


def settings_facts(sides: Sequence[Runs]) -> list[Fact]:
    """The settings that differ, each by its name."""
    every = [{name: value for run in side for name, value in _flat(run.settings)} for side in sides]
    names = dict.fromkeys(name for own in every for name in own)
    facts = [Fact(name, tuple(own.get(name) for own in every)) for name in names]
    return [fact for fact in facts if len(set(fact.values)) > 1]


def is_alike(run: RunFigures, other: RunFigures) -> bool:
    """Whether the figures of the two vary alike from run to run: the same machine in the same state
    (driver, kernel), measured in the same way."""
    if _state(run.machine) != _state(other.machine) or _faults(run) != _faults(other):
        return False
    return not unlike([[run], [other]])


def _all_of(side: Runs, read: Callable[[Machine], str | None]) -> str | None:
    """The values of a side's machines, each once."""
    return _joined(read(run.machine) for run in side)


def _joined(values: Iterable[str | None]) -> str | None:
    """Each value once."""
    return "; ".join(value for value in dict.fromkeys(values) if value) or None


def _command_line(machine: Machine) -> str | None:
    return machine.known.host.command_line


def _hostname(machine: Machine) -> str | None:
    return machine.host.hostname or None


def _accelerators(machine: Machine) -> str:
    counts = Counter(device.model for device in machine.all_devices)
    return ", ".join(f"{count} × {model}" for model, count in counts.items()) or ABSENT


_MACHINE: dict[str, Callable[[Machine], str | None]] = {
    "simulated machine": lambda machine: machine.simulated,
    "CPU": lambda machine: machine.host.cpu_model,
    "CPUs": lambda machine: f"{machine.host.cpus}",
    "NUMA nodes": lambda machine: f"{len(machine.host.nodes)}",
    "accelerators": _accelerators,
    "hypervisor": lambda machine: machine.known.host.hypervisor or ABSENT,
}


def _flat(settings: Settings) -> list[tuple[str, str]]:
    """Settings by name; a simulation's faults and draws are the machine's matter."""
    plain = replace(settings, simulation=None, timeout=None)
    found: list[tuple[str, str]] = []
    for name in plain.__struct_fields__:
        value = getattr(plain, name)
        if name in ("engines", "surroundings") and value is not None:
            found += [(one.replace("_", " "), f"{getattr(value, one)}")
                      for one in value.__struct_fields__]  # fmt: skip
        elif name == "sizes":
            found.append((name, ", ".join(map(format_size, value))))
        else:
            found.append((name.replace("_", " "), f"{value}"))
    return found


def _faults(run: RunFigures) -> tuple[str, ...]:
    return () if run.settings.simulation is None else run.settings.simulation.faults


def _state(machine: Machine) -> tuple[object, ...]:
    details = machine.known.host
    return (
        machine.host.hostname,
        machine.host.kernel,
        details.command_line,
        details.governor,
        machine.linkgauge,
        *(device.driver for device in machine.all_devices),
    )
