"""Writes a machine's PCI tree as NCCL's topology file (NCCL_TOPO_FILE), for guests whose hypervisor
hides the switches: nodes with CPUs, and below them switches, accelerators and adapters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree as ET
from xml.etree.ElementTree import Element, SubElement

from linkgauge.judge.pcie_chains import PcieChain
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.inventory import PciFunction
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.pcie import is_accelerator

_GROUP = 32
"""The CPUs of a group of a mask, as sysfs separates them."""


def nccl_topology(machine: Machine) -> bytes:
    """Returns the topology file. Raises InputError if the machine has no accelerators on PCI."""
    system = Element("system", version="1")
    cpus = {node.index: node.cpus for node in machine.host.nodes}
    found: dict[str | int, Element] = {}
    for function in _cards(machine):
        node = function.numa_node if function.numa_node in cpus else min(cpus)
        if node not in found:
            found[node] = SubElement(
                system, "cpu", numaid=str(node), affinity=mask(cpus[node or 0]),
                arch=machine.host.architecture or "x86_64",
            )  # fmt: skip
        place = found[node or 0]
        above = machine.pci_tree.above(function.address)
        switches = [port for port in above if port.port == "upstream port"]
        for one in (*reversed(switches), function):
            if one.address not in found:
                found[one.address] = _pci(place, one, machine)
            place = found[one.address]
    if not found:
        raise InputError("--nccl-topo: this machine has no accelerator on PCI")
    ET.indent(system)
    return ET.tostring(system) + b"\n"


def _cards(machine: Machine) -> Iterator[PciFunction]:
    adapters = {adapter.pci for adapter in machine.known.adapters}
    own = [one for one in machine.known.pci if one.port in (None, "endpoint")]
    cards = [one for one in own if is_accelerator(one)]
    yield from cards
    yield from (one for one in own if one.address in adapters and cards)


def _pci(place: Element, function: PciFunction, machine: Machine) -> Element:
    link = PcieChain("", function, machine.functions.get(function.parent or ""))
    speed, width = link.speed or function.link.speed, link.width or function.link.width
    about = {"busid": function.address, "class": f"0x{function.class_code or 0:06x}"}
    about |= {"link_speed": f"{speed:.1f} GT/s PCIe", "link_width": str(width)} if speed else {}
    return SubElement(place, "pci", about)


def mask(cpus: Sequence[int]) -> str:
    """Formats a CPU mask as sysfs does, in groups of 32 bits: `00000001,00000000`."""
    whole = sum(1 << cpu for cpu in cpus)
    groups = range(max(cpus, default=0) // _GROUP, -1, -1)
    return ",".join(f"{whole >> group * _GROUP & 0xFFFFFFFF:08x}" for group in groups)
