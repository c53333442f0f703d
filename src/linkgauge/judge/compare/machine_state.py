"""Describes a machine and its state during a run as short texts by name, so that machines can be
compared. A state has no entries for unknown facts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from linkgauge.model.documents.result import Run
from linkgauge.model.hardware.host_details import HostDetails, stolen
from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.units import approximate_size, format_size

# The facts in which compared machines may differ: short texts, by name.

ABSENT = "none"


class Fact(msgspec.Struct, frozen=True):
    """A fact that differs between runs.

    name: The name of the fact.
    values: The value on each side or in each run; null if it is unknown."""

    name: str
    values: tuple[str | None, ...]


def differing_facts(runs: Sequence[Run]) -> tuple[Fact, ...]:
    sizes = (", ".join(map(format_size, run.settings.sizes)) for run in runs)
    options = differing_options([_details(run).command_line for run in runs])
    facts = (Fact(name, tuple(map(read, runs))) for name, read in _FACTS.items())
    return differing((*facts, Fact("sizes", tuple(sizes)), options))


def differing(facts: Iterable[Fact]) -> tuple[Fact, ...]:
    return tuple(fact for fact in facts if len(set(fact.values)) > 1)


def facts_of(run: Run) -> dict[str, str | None]:
    return {name: read(run) for name, read in _FACTS.items()}


def differing_options(lines: Sequence[str | None]) -> Fact:
    """Returns the kernel options that are not in all of these command lines."""
    known = [set(line.split()) for line in lines if line is not None]
    common = set[str].intersection(*known) if known else set()
    own = [None if line is None else [o for o in line.split() if o not in common] for line in lines]
    return Fact("kernel options", tuple(o if o is None else " ".join(o) or ABSENT for o in own))


def _details(run: Run) -> HostDetails:
    return run.machine.known.host


def joined(parts: Iterable[str | None], by: str = ", ") -> str | None:
    return by.join(dict.fromkeys(part for part in parts if part)) or None


def counted(values: Iterable[str | float | None], by: str = ", ") -> str | None:
    """Formats `8 × 96.00.61`, or `7 × 96.00.61, 1 × 96.00.44` if values differ."""
    counts = Counter(str(value) for value in values if value)
    return by.join(f"{count} × {what}" for what, count in counts.items()) or None


def _cpu(run: Run) -> str | None:
    host = run.machine.host
    cache = host.last_level_cache
    return joined((host.cpu_model, f"cache {approximate_size(cache)}" if cache else None))


def _cpus(run: Run) -> str:
    details = _details(run)
    sockets, cores, threads = details.sockets, details.cores, details.threads_per_core
    count = str(run.machine.host.cpus)
    if not sockets or cores is None or threads is None:
        return count
    numbers = {"socket": sockets, "core": cores // sockets, "thread": threads}
    shape = (f"{number} {what}{'' if number == 1 else 's'}" for what, number in numbers.items())
    return f"{count} of {' × '.join(shape)}"


def _nodes(run: Run) -> str:
    nodes = run.machine.host.nodes
    counts = " + ".join(str(len(node.cpus)) for node in nodes)
    return f"{len(nodes)} with {counts} CPUs" if len(nodes) > 1 else str(len(nodes))


def _memory(run: Run) -> str | None:
    total = run.machine.host.memory_total
    return None if total is None else approximate_size(total)


def _huge_pages(run: Run) -> str:
    details = _details(run)
    pools = details.huge_pages.items()
    pages = (f"{total} of {approximate_size(size)}" for size, (total, _) in pools if total)
    choice = details.transparent_huge_pages
    return joined((*pages, choice and f"transparent: {choice}")) or ABSENT


def hypervisor_of(run: Run) -> str | None:
    """Returns the hypervisor, `ABSENT` on a bare machine, or None if it could not be read."""
    details = _details(run)
    unread = any("hypervisor" in gap.fields for gap in details.unknown)
    return details.hypervisor or (None if unread or not run.machine.inventory else ABSENT)


def _accelerators(run: Run) -> str:
    found = (joined((one.model, one.driver), ", driver ") for one in run.machine.all_devices)
    return counted(found, "; ") or ABSENT


def _near(run: Run) -> str | None:
    """Returns the accelerators' NUMA nodes, `unknown` where a hypervisor hides them."""
    machine = run.machine
    nodes = {function.address: function.numa_node for function in machine.known.pci}
    found = [nodes[device.pci] for device in machine.all_devices if device.pci in nodes]
    known = ["unknown" if node is None else str(node) for node in found]
    return ", ".join(known if len(set(known)) > 1 else known[:1]) or None


def _links(run: Run) -> str | None:
    accelerators = run.machine.known.accelerators
    loaded = {
        reading.memory: (reading.link_speed, reading.link_width)
        for result in run.results
        for cell in result.cells
        for reading in cell.readings
        if reading.link_speed is not None
    }
    idle = {one.memory: (one.link.speed, one.link.width) for one in accelerators}
    links = dict.fromkeys((idle | loaded).values())
    return ", ".join(f"{speed:g} GT/s x{width}" for speed, width in links if speed) or None


def _steal(run: Run) -> str | None:
    share = stolen(_details(run), run.after.host) if run.after else None
    return None if share is None else f"{share:.0%}"


def _faults(run: Run) -> str | None:
    simulation = run.settings.simulation
    return None if simulation is None else ", ".join(simulation.faults) or ABSENT


_FACTS: dict[str, Callable[[Run], str | None]] = {
    "machine": lambda run: run.machine.host.hostname or None,
    "CPU": _cpu,
    "CPUs": _cpus,
    "NUMA nodes": _nodes,
    "memory": _memory,
    "hypervisor": hypervisor_of,
    "container": lambda run: _details(run).container or ABSENT,
    "kernel": lambda run: run.machine.host.kernel or None,
    "huge pages": _huge_pages,
    "governor": lambda run: _details(run).governor,
    "IOMMU": lambda run: _details(run).iommu,
    "CPU steal": _steal,
    "accelerators": _accelerators,
    "device nodes": _near,
    "PCIe": _links,
    "profile": lambda run: run.settings.profile,
    "faults": _faults,
    "linkgauge": lambda run: joined((run.machine.linkgauge, (run.machine.commit or "")[:12]), " "),
}


_NOT_OF_THE_STATE = ("machine", "accelerators", "CPU steal", "profile")
"""The facts that identify a machine, differ in every run, or are chosen by a person."""
KERNEL_OPTIONS = "kernel options"


def state_of(run: Run) -> dict[str, str]:
    """Returns the known facts of a run's state, such as driver, firmware, kernel and links."""
    return state_from(run.machine, facts_of(run))


def state_from(machine: Machine, facts: Mapping[str, str | None]) -> dict[str, str]:
    """Computes the state from a run's machine and the result of `facts_of`."""
    host, found = machine.known.host, machine.known.accelerators
    own = joined(one.driver for one in found)  # as the vendors' libraries report it
    state = {
        "accelerators": counted(device.model for device in machine.all_devices) or ABSENT,
        "system": machine.host.system,
        "BIOS": host.firmware,
        "microcode": host.microcode,
        KERNEL_OPTIONS: host.command_line,
        "firmware": counted(one.firmware for one in found),
        "library": joined(one.library for one in found),
        "fabric links": counted(map(_fabric, found)),
        "ECC": counted(_switch(one.ecc) for one in found),
        "MIG": counted(_switch(one.mig) for one in found),
        "power limit": counted(one.power_limit and f"{one.power_limit:.0f} W" for one in found),
        "locked clock": counted(
            one.locked_clock and f"{one.locked_clock / 1e6:.0f} MHz" for one in found
        ),
        "driver": own or joined(one.driver for one in machine.all_devices if not one.is_cpu),
        **{name: facts[name] for name in facts if name not in _NOT_OF_THE_STATE},
    }
    return {name: value for name, value in state.items() if value}


def changed_facts(before: Mapping[str, str], after: Mapping[str, str]) -> tuple[Fact, ...]:
    """Returns the changed facts; of a long kernel command line, only the changed options."""
    facts = list[Fact]()
    for name in {**before, **after}:
        values = before.get(name), after.get(name)
        if name == KERNEL_OPTIONS and None not in values:
            facts.append(differing_options(values))
        else:
            facts.append(Fact(name, values))
    return differing(facts)


def _fabric(one: Accelerator) -> str | None:
    if not one.links:
        return None
    kinds = "/".join(dict.fromkeys(link.kind for link in one.links))
    return f"{sum(link.active is True for link in one.links)} of {len(one.links)} {kinds}"


def _switch(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"
