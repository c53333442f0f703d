"""Writes a run's figures of host memory as memory attributes into hwloc's topology file, for
HWLOC_XMLFILE. A node's CPUs are initiators, nodes are targets. `Bandwidth` is the mean of reads and
writes in MiB/s (hwloc/memattrs.h). `Latency` is of reads, in ns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element, SubElement

from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Node
from linkgauge.model.printable import printable

from .nccl_topology import mask
from .rows import OneRun
from .tables import cell_rows

_READ, _WRITE = "host_to_host_memcpy_read_cpu", "host_to_host_memcpy_write_cpu"
_LATENCY = "memory_latency_nodes"
_Values = Mapping[tuple[str, str], float]
"""Figures in SI units, by the numbers of the initiator's and of the target's node."""


class _Attribute(NamedTuple):
    benchmarks: tuple[str, ...]
    unit: float
    flags: int


_HIGHER_FIRST, _LOWER_FIRST, _NEED_INITIATOR = 1, 2, 4
_BANDWIDTH = float(1 << 20), _HIGHER_FIRST | _NEED_INITIATOR
_TIME = 1e-9, _LOWER_FIRST | _NEED_INITIATOR
ATTRIBUTES = {
    "Bandwidth": _Attribute((_READ, _WRITE), *_BANDWIDTH),
    "ReadBandwidth": _Attribute((_READ,), *_BANDWIDTH),
    "WriteBandwidth": _Attribute((_WRITE,), *_BANDWIDTH),
    "Latency": _Attribute((_LATENCY,), *_TIME),
    "ReadLatency": _Attribute((_LATENCY,), *_TIME),
}
"""By hwloc's names."""


def memattrs_xml(one: OneRun) -> str:
    """Returns the XML. Raises InputError if the run has no figures of host memory."""
    run, ids = one.run, map(str, count(1))
    found = {name: _figures_of(run, name) for name in (_READ, _WRITE, _LATENCY)}
    if not any(found.values()):
        raise InputError(
            f"--hwloc: run {run.id} has no figure of host memory by node: measure it with "
            f"linkgauge run {' '.join(found)}"
        )
    nodes = {str(node.index): node for node in run.machine.host.nodes}
    topology = Element("topology", version="2.0")
    targets = _objects(topology, run, nodes, ids)
    for name, (benchmarks, unit, flags) in ATTRIBUTES.items():
        of_each = [found[benchmark] for benchmark in benchmarks]
        measured = [key for key in of_each[0] if all(key in other for other in of_each)]
        if not measured:
            continue
        attribute = SubElement(topology, "memattr", name=name, flags=str(flags))
        for row, column in measured:
            mean = sum(values[row, column] for values in of_each) / len(of_each)
            SubElement(
                attribute, "memattr_value", target_obj_gp_index=targets[column],
                target_obj_type="NUMANode", value=str(round(mean / unit)),
                initiator_cpuset=mask(nodes[row].cpus),
            )  # fmt: skip
    ET.indent(topology)
    head = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
    return f"{head}{ET.tostring(topology, encoding='unicode')}\n"


def _figures_of(run: Run, benchmark: str) -> _Values:
    """Returns figures at the largest size, by the nodes of the initiator and of the target."""
    nodes = {str(node.index) for node in run.machine.host.nodes if node.cpus}
    rows = sorted(cell_rows(run), key=lambda row: row.size or 0)
    return {
        (row.row, row.column): row.figure
        for row in rows
        if row.benchmark == benchmark and row.status == "pass" and row.figure is not None
        and row.row in nodes
    }  # fmt: skip


def _objects(
    topology: Element, run: Run, nodes: Mapping[str, Node], ids: Iterator[str]
) -> dict[str, str]:
    host = run.machine.host
    all_cpus = [cpu for node in nodes.values() for cpu in node.cpus]
    machine = SubElement(
        topology, "object", _sets(all_cpus, [node.index for node in nodes.values()]),
        type="Machine", os_index="0", gp_index=next(ids),
    )  # fmt: skip
    about = {"HostName": host.hostname, "CPUModel": host.cpu_model, "LinkgaugeRun": run.id}
    about |= {"Simulated": run.machine.simulated}
    for name, value in about.items():
        if value:
            SubElement(machine, "info", name=name, value=printable(value))
    found = {}
    for name, node in nodes.items():
        sets, place = _sets(node.cpus, [node.index]), machine
        if node.cpus and len(nodes) > 1:
            place = SubElement(machine, "object", sets, type="Group", gp_index=next(ids))
        found[name] = next(ids)
        SubElement(
            place, "object", sets, type="NUMANode", os_index=name, gp_index=found[name],
            local_memory=str(node.memory_total or 0),
        )  # fmt: skip
        for cpu in node.cpus:
            SubElement(
                place, "object", _sets([cpu], [node.index]), type="PU", os_index=str(cpu),
                gp_index=next(ids),
            )  # fmt: skip
    return found


def _sets(cpus: Sequence[int], nodes: Sequence[int]) -> dict[str, str]:
    sets = {"cpuset": mask(cpus), "nodeset": mask(nodes)}
    return sets | {f"complete_{name}": value for name, value in sets.items()}
