"""Describes a machine from texts, or this machine. Tables of products fill in what is unknown."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from gzip import GzipFile
from io import BytesIO
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from msgspec.structs import replace

from linkgauge.backends.sim.description import Description, description_of
from linkgauge.engine.kept.runs import read_run, run_named
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import survey
from linkgauge.judge.findings import Evidence, evidence_of
from linkgauge.judge.pcie_chains import hops
from linkgauge.judge.vendor import tool_of
from linkgauge.machine.given import read_given
from linkgauge.model.by_name import by_name
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.bundles import coding
from linkgauge.model.hardware.inventory import Accelerator, PciFunction
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.names import and_all

from .facts import (
    Bridge,
    Facts,
    ReportedFigure,
    ReportedGpu,
    ReportedNode,
    is_telling,
    merged,
    vendor_of,
)  # fmt: skip
from .fleets import Fleet, fleet_of, joined, rack_of
from .layout import MachineLayout
from .pair_groups import figures_of_pairs, joined_by_figures, nodes_by_figures, unexplained
from .products import VENDORS, product_of, split_product
from .readers import ReadText, read_text

MOST_BYTES = 64 << 20
"""The largest log in bytes that is read whole; a larger one may be cut."""


class Described(NamedTuple):
    """A machine as texts and products describe it. `clashes` are contradictions between texts.
    `is_unclear`: figures differ by pairs of accelerators, and nothing shows how they are joined."""

    name: str
    description: Description
    assumed: tuple[str, ...]
    clashes: tuple[str, ...]
    facts: Facts
    tree: Mapping[str, Any] = {}
    is_unclear: bool = False

    @property
    def text(self) -> str:
        return yaml.safe_dump(self.tree, sort_keys=False, allow_unicode=True)


# What `--machine` says.


def given(text: str) -> tuple[str, str] | None:
    """Returns a name and a YAML description for a value of `--machine`: files
    (`topo.txt,lspci.txt`), a product (`8 x H100 SXM`), a fleet, `mine` or a stored run; else None.
    Raises InputError if files describe no machine, unless one file of YAML or JSON is given."""
    paths, name, facts = [Path(one) for one in text.split(",")], text, list[Facts]()
    if all(path.is_file() for path in paths):
        name, facts = paths[0].stem, [o for p in paths for each in read_file(p) for o in each.facts]
        if not any(one.gpus or one.joins or one.nodes for one in facts):
            if len(paths) > 1 or paths[0].suffix not in (".yml", ".yaml", ".json"):
                names = and_all(path.name for path in paths)
                judged = f"; linkgauge judge {paths[0].name} says what it shows"
                more = judged if is_telling(merged(facts)[0]) else ""
                raise InputError(f"--machine: {names} tell of no machine: {FORMS}{more}")
            facts = []
    elif counted := split_product(text):
        facts = [of_product(*counted)]
    elif (fleet := fleet_of(text)) is not None:
        return text, _of_fleet(text, fleet)
    elif text == "mine":
        facts = [facts_of(Evidence(survey(RunRequest())))]
    if not facts and paths[0].exists() and (path := run_named(text)) is not None:
        facts = [facts_of(evidence_of(read_run(path)))]
    return (name, describe(name, facts).text) if facts else None


FORMS = (
    "nvidia-smi topo -m, -q or nvlink -s, lspci -vvv or -tv, NCCL's topology XML, rocm-smi "
    "--showtopo, lscpu, numactl -H, lstopo's XML and DCGM's JSON are understood"
)


def _of_fleet(name: str, fleet: Fleet) -> str:
    tree = rack_of(fleet.facts.nics) if fleet.rack else describe(name, [fleet.facts]).tree
    made = joined(tree, fleet.hosts) if fleet.hosts > 1 else tree
    return yaml.safe_dump(made, sort_keys=False, allow_unicode=True)


def of_product(model: str, count: int) -> Facts:
    """Returns facts of `count` accelerators. Raises InputError unless `count` is 1 to 64."""
    if not 1 <= count <= 64:
        raise InputError(f"{count} × {model}: give 1 to 64 of a product")
    return Facts(gpus={index: ReportedGpu(model) for index in range(count)}, counted=count)


def read_file(path: Path) -> list[ReadText]:
    """Reads a text from a file. Raises InputError if it cannot be read."""
    try:
        return read_bytes(path.name, read_given(path, MOST_BYTES))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def read_bytes(name: str, data: bytes) -> list[ReadText]:
    """Reads a text, gzipped or not. Raises InputError if it is damaged or too large."""
    if data[:2] == _GZIP:
        try:
            with GzipFile(fileobj=BytesIO(data)) as file:
                data = file.read(MOST_BYTES + 1)
        except (OSError, EOFError, zlib.error) as error:
            raise InputError(f"{name}: damaged gzip: {error}") from error
    if len(data) > MOST_BYTES:
        raise InputError(f"{name} holds more than {MOST_BYTES} bytes: give less")
    return read_text(name, data.decode("utf-8", "replace"))


_GZIP = b"\x1f\x8b"


# The description.


def describe(
    name: str, found: Sequence[Facts], reported: Sequence[ReportedFigure] = ()
) -> Described:
    """Merges facts into a description. Figures between accelerators show links and NUMA nodes that
    no text gives. Raises InputError for more than 256 accelerators."""
    facts, clashes = merged(found)
    indices = sorted({*facts.gpus, *(index for pair in facts.joins for index in pair)})
    if len(indices) > 256:
        raise InputError(f"{len(indices)} accelerators: this is no output of one machine")
    gpus = [facts.gpus.get(index, ReportedGpu()) for index in indices]
    usual = next((gpu.model for gpu in gpus if gpu.model), None)
    gpus = [replace(gpu, model=gpu.model or usual) for gpu in gpus]
    assumed = list[str]()
    joined, levels = facts.joins, ""
    pairs = figures_of_pairs(reported, indices)
    tool = tool_of(VENDORS[vendor_of(facts)].pci, "topology")
    if not joined:
        joined, said = joined_by_figures(pairs, product_of(usual))
        levels = "" if joined else unexplained(pairs, product_of(usual))
        unclear = f"{levels}: no given text states such a topology, so they are not judged"
        assumed += [f"{said or unclear} ({tool} would tell)"] if said or levels else []
    if not joined and not levels and all(gpu.node is None for gpu in gpus):
        nodes = nodes_by_figures(pairs, indices)
        gpus = [replace(gpu, node=nodes.get(i)) for i, gpu in zip(indices, gpus, strict=True)]
        if nodes:
            groups = grouped((nodes[i], str(i)) for i in indices)
            shown = " and ".join(", ".join(group) for group in groups.values())
            assumed.append(
                f"accelerators {shown} lie at different nodes, as the figures between them show "
                f"({tool} would tell)"
            )
    place = {index: place for place, index in enumerate(indices)}
    joins = {(place[a], place[b]): how for (a, b), how in joined.items()}
    numbered = replace(facts, joins=joins, gpus=dict(enumerate(gpus)))
    made = MachineLayout(numbered, reported, assumed)
    tree = made.description()
    known = tuple(assumed), clashes, facts
    return Described(name, description_of(tree), *known, tree, is_unclear=bool(levels))


# This machine, or that of a kept run.


def facts_of(evidence: Evidence) -> Facts:
    machine = evidence.machine
    host = machine.host
    found = ([one for one in some if not one.is_cpu] for some in machine.devices.values())
    cards = next(filter(None, found), [])  # of the first backend that reaches any
    rows = tuple(tuple(row) for _, row in sorted(machine.known.host.distances.items()))
    return by_name(
        Facts, machine.known.host, host, cpus={},
        gpus={number: _gpu(evidence, one) for number, one in enumerate(cards)},
        joins=dict(_joins(machine, [one.memory for one in cards])),
        bridges={one.address: _bridge(one) for one in machine.known.pci if one.port is not None},
        nodes={one.index: ReportedNode(len(one.cpus), one.memory_total) for one in host.nodes},
        distances=rows if len(rows) == len(host.nodes) > 1 else None,
    )  # fmt: skip


def _gpu(evidence: Evidence, device: Device) -> ReportedGpu:
    machine = evidence.machine
    known = machine.accelerators.get(device.memory, Accelerator(memory="", model=""))
    function = machine.functions.get(device.pci or "", PciFunction(address=""))
    slot = machine.pci_tree.slot(device.pci or "")
    hop = next((one for one in hops(evidence) if one.function.address == slot), None)
    up = (link for link in known.links if link.active)
    active = [link for link in up if not (link.remote or "").startswith("host:")]
    rate = active[0].rate if active else None
    node = device.near if function.numa_node is None else function.numa_node
    link = dict[str, Any]()
    if hop is not None:
        # A link that is slow without load may only be idle, and counts as well.
        speed = hop.loaded_speed or hop.link.speed if hop.is_slow else hop.speed
        width = hop.loaded_width or hop.link.width
        link = {"speed": speed, "max_speed": speed, "width": width, "max_width": hop.width}
    return ReportedGpu(
        device.model, device.pci, node, **link, links=len(active) or None,
        link_rate=rate and rate * coding(rate), memory=device.memory_bytes,
        above=tuple(one.address for one in machine.pci_tree.above(slot)),
    )  # fmt: skip


def _joins(machine: Machine, names: Sequence[str]) -> Iterator[tuple[tuple[int, int], str]]:
    known = [(at, name) for at, name in enumerate(names) if name in machine.accelerators]
    for (a, one), (b, other) in combinations(known, 2):
        crossed = machine.wiring.bundles(one, other).values()
        addresses = (machine.addresses.get(name, "") for name in (one, other))
        if count := min((bundle.count for bundle in crossed), default=0):
            yield (a, b), f"NV{count}"
        else:
            yield (a, b), machine.pci_tree.topo_class(*addresses) or "SYS"


def _bridge(port: PciFunction) -> Bridge:
    redirects = any("redirect" in one.lower() for one in port.acs or ())
    return Bridge(redirects, port.port in ("upstream port", "downstream port"))
