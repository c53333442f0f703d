"""Describes this machine, or that of a kept run, for `--machine`. Products supply the facts that
could not be read, as for texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from msgspec.structs import replace

from linkgauge.engine.kept.runs import one_run, read_run
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import survey
from linkgauge.judge.doctor.pcie_chains import hops
from linkgauge.judge.findings import Evidence, evidence_of
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.inventory import Accelerator, PciFunction
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.hardware.wiring import coding

from .descriptions import describe
from .told import Bridge, Facts, ToldGpu, ToldNode

MINE = "mine"
"""The value of `--machine` that stands for this machine."""


def given(text: str) -> tuple[str, str] | None:
    """Returns the name and the YAML of a machine in the value of `--machine`: `mine`, or a kept run
    by its path or label. Returns None for any other value."""
    if text == MINE:
        machine = survey(RunRequest())
        return MINE, describe(MINE, [facts_of(Evidence(machine))]).text
    path = _kept(text)
    if path is None:
        return None
    run = read_run(path)
    if run.settings.simulation is not None:
        return run.settings.simulation.machine, run.settings.simulation.description
    name = run.machine.host.hostname or text
    return name, describe(name, [facts_of(evidence_of(run))]).text


def _kept(text: str) -> Path | None:
    """Returns the path of the run that a text names by its folder, its file or its label."""
    path = Path(text)
    is_run = path.is_dir() or path.suffix == ".json" if path.exists() else len(path.parts) == 1
    try:
        return one_run(path) if is_run else None
    except InputError:
        return None


def facts_of(evidence: Evidence) -> Facts:
    """Returns the facts about a machine that a description needs."""
    machine = evidence.machine
    host, details = machine.host, machine.known.host
    found = ([one for one in some if not one.is_cpu] for some in machine.devices.values())
    cards = next(filter(None, found), [])  # of the first backend that reaches any
    places = {one.memory: number for number, one in enumerate(cards)}
    rows = tuple(tuple(row) for _, row in sorted(details.distances.items()))
    return Facts(
        gpus={number: _gpu(evidence, one) for number, one in enumerate(cards)},
        joins=dict(_joins(machine, places)),
        bridges={one.address: _bridge(one) for one in machine.known.pci if one.port is not None},
        nodes={one.index: ToldNode(len(one.cpus), one.memory_total) for one in host.nodes},
        distances=rows if len(rows) == len(host.nodes) > 1 else None,
        cpu_model=host.cpu_model,
        sockets=details.sockets,
        architecture=host.architecture or None,
        hypervisor=details.hypervisor,
        hostname=host.hostname or None,
    )


def _gpu(evidence: Evidence, device: Device) -> ToldGpu:
    machine = evidence.machine
    known = machine.accelerators.get(device.memory, Accelerator(memory="", model=""))
    function = machine.functions.get(device.pci or "", PciFunction(address=""))
    slot = machine.pci_tree.slot(device.pci or "")
    hop = next((one for one in hops(evidence) if one.function.address == slot), None)
    up = (link for link in known.links if link.active)
    active = [link for link in up if not (link.remote or "").startswith("host:")]
    rate = active[0].rate if active else None
    node = device.near if function.numa_node is None else function.numa_node
    gpu = ToldGpu(
        device.model,
        device.pci,
        node,
        links=len(active) or None,
        link_rate=rate and rate * coding(rate),
        memory=device.memory_bytes,
        above=tuple(one.address for one in machine.pci_tree.above(slot)),
    )
    if hop is None:
        return gpu
    # A link that is slow without load may only be idle, and counts as well.
    speed = hop.loaded_speed or hop.link.speed if hop.is_slow else hop.speed
    width = hop.loaded_width or hop.link.width
    return replace(gpu, speed=speed, max_speed=speed, width=width, max_width=hop.width)


def _joins(machine: Machine, places: dict[str, int]) -> Iterator[tuple[tuple[int, int], str]]:
    """Yields how two accelerators are joined, in the words of `nvidia-smi topo -m`. Yields nothing
    if no library reports the accelerators' own links."""
    ends = {
        place: Counter(link.remote for link in machine.accelerators[name].links if link.active)
        for name, place in places.items()
        if name in machine.accelerators
    }
    names = {place: name for name, place in places.items()}
    for a, b in combinations(ends, 2):
        direct = ends[a][names[b]]
        shared = [end for end in ends[a] if end in ends[b] and end not in places]
        through = sum(ends[a][end] for end in shared if not str(end).startswith("host:"))
        if direct or through:
            yield (a, b), f"NV{direct or through}"
        else:
            addresses = (machine.addresses.get(names[place], "") for place in (a, b))
            yield (a, b), machine.pci_tree.topo_class(*addresses) or "SYS"


def _bridge(port: PciFunction) -> Bridge:
    redirects = any("redirect" in one.lower() for one in port.acs or ())
    return Bridge(redirects, port.port in ("upstream port", "downstream port"))
