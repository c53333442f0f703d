"""Checks network adapters beside accelerators: the way between them, the adapters' links and
packets, and the module by which they reach the accelerators' memory."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.blame.cases import cases_of, listed
from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.pcie_chains import hops
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Adapter
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import MACHINE, Part
from linkgauge.model.hardware.pcie import TopologyClass, link_rate
from linkgauge.model.hardware.wiring import Wire
from linkgauge.model.names import spans
from linkgauge.model.units import count_of

CLOSENESS: tuple[TopologyClass, ...] = ("PIX", "PXB", "PHB", "NODE", "SYS")
"""The classes of ways between an accelerator and an adapter, the closest first."""
_FAST = 12.5e9
"""The bytes/s of a port (100 Gb/s) from which small packets cost much of its rate."""
_LARGE = 4200
"""The bytes of an Ethernet packet that carries 4096 bytes of payload of RoCE."""
NO_MODULE = "none"
"""What `HostDetails.gpudirect` has if no module lets adapters reach accelerators' memory."""


def used_adapters(machine: Machine) -> dict[str, list[Adapter]]:
    """Returns the ports of each adapter that PCI shows, by the adapter's name. Ports that are down
    are left out."""
    ports = (one for one in machine.known.adapters if one.pci in machine.functions)
    return grouped((one.device, one) for one in ports if one.state in (None, "active"))


def nearest(machine: Machine, address: str) -> tuple[TopologyClass | None, tuple[str, ...]]:
    """Returns the adapters that are closest to an accelerator, and the class of the way to them.
    Nothing is known of a virtual machine, whose bridges are made up."""
    if machine.is_virtual:
        return None, ()
    found = grouped(
        (how, name)
        for name, ports in used_adapters(machine).items()
        if (how := machine.pci_tree.topo_class(address, ports[0].pci or "")) is not None
    )
    closest = next((how for how in CLOSENESS if how in found), None)
    return closest, tuple(found[closest]) if closest is not None else ()


def check_far_adapters(evidence: Evidence) -> Iterator[Finding]:
    """Checks for accelerators whose adapters are all at another NUMA node. With a single adapter,
    some accelerators are always far."""
    machine = evidence.machine
    far = [
        (name, address, adapters)
        for name, address in machine.addresses.items()
        for how, adapters in [nearest(machine, address)]
        if how == "SYS"
    ]
    several = len({one.pci for one in machine.known.adapters}) > 1
    severity: Severity = "warn" if several else "note"
    for name, address, adapters in far:
        found = f"no adapter is at its NUMA node: the nearest is {spans(adapters[:4])}"
        why = "what it sends to other hosts crosses the link between the nodes first"
        remedy = ("# Move an adapter to a slot of this node; the board's manual has a drawing.",)
        yield Finding("far-adapter", severity, Part.device(name, address), found, why, remedy)


def check_slots(evidence: Evidence) -> Iterator[Finding]:
    """Checks for adapters whose slot carries less than their ports, alone or together."""
    machine = evidence.machine
    links = {hop.function.address: hop for hop in hops(evidence)}
    slots = grouped(
        ((one.pci or "").rpartition(".")[0], one)
        for ports in used_adapters(machine).values()
        for one in ports
    )
    for ports in slots.values():
        hop, rates = links.get(ports[0].pci or ""), [port.rate for port in ports]
        if hop is None or not hop.speed or not hop.width or not all(rates):
            continue
        need, carries = sum(rate or 0.0 for rate in rates), link_rate(hop.speed, int(hop.width))
        if need > carries:
            shared = f"its {len(ports)} ports share" if len(ports) > 1 else "its port has"
            found = f"{shared} PCIe {hop.speed:g} GT/s x{hop.width:g}, which carries "
            found += f"{figure(carries)}, and need {figure(need)}"
            why = f"all of them together reach {carries / need:.0%} of their rate"
            remedy = (
                "# Use a slot of a newer generation or of more lanes, or one port of the card.",
            )
            yield Finding("adapter-slot", "warn", hop.part, found, why, remedy)


def check_mtu(evidence: Evidence) -> Iterator[Finding]:
    """Checks for Ethernet ports with RDMA whose packets are small for their speed."""
    for nic in evidence.machine.known.interfaces:
        is_roce = nic.rdma is not None and nic.kind == "Ethernet" and nic.up is not False
        if is_roce and nic.mtu and nic.mtu < _LARGE and (nic.speed or 0.0) >= _FAST:
            found = f"packets have {nic.mtu} bytes at most (MTU), the port {figure(nic.speed or 0)}"
            why = "RDMA then sends 1024 bytes a packet instead of 4096, and TCP needs six times "
            why += "the packets: headers and interrupts take their part"
            remedy = (f"sudo ip link set {nic.name} mtu 9000  # at the switch and all hosts, too",)
            yield Finding("mtu", "warn", f"{nic.name} ({nic.rdma})", found, why, remedy)


def check_uncrossed(evidence: Evidence) -> Iterator[Finding]:
    """Yields a note on links of a network that no measured cell crossed, while others were."""
    wires = [one for one in evidence.machine.wiring.wires if _of_network(one)]
    if not wires:
        return
    crossed = frozenset[Part]().union(*(case.touched for case in cases_of(evidence)))
    missed = [wire.part for wire in wires if wire.part not in crossed]
    if len(missed) in (0, len(wires)):
        return
    found = f"no cell crossed {listed(missed)}: nothing is known of what they carry"
    remedy = (
        "linkgauge run nodes_rails rails_crossing  # rails_crossing takes the spine switches",
    )
    about = missed[0] if len(missed) == 1 else f"{len(missed)} links of the network"
    yield Finding("uncrossed", "unknown", about, found, remedy=remedy)


def _of_network(wire: Wire) -> bool:
    bundle = wire.bundle
    return wire.kind == "network" or (wire.kind == "fabric" and bundle is None)


def check_gpudirect(evidence: Evidence) -> Iterator[Finding]:
    """Checks for hosts whose adapters do not reach the memory of accelerators."""
    machine = evidence.machine
    ports = used_adapters(machine)
    if machine.known.host.gpudirect != NO_MODULE or not ports or not machine.addresses:
        return
    found = "no module lets adapters read and write the accelerators' memory (GPUDirect RDMA)"
    why = f"what {count_of(len(ports), 'adapter')} send goes through the host's memory first"
    remedy = (
        "sudo modprobe nvidia-peermem",
        "# Or use the open kernel modules of the driver, which share memory as DMA-BUF.",
    )
    yield Finding("gpudirect", "warn", MACHINE, found, why, remedy)
