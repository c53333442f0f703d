"""Checks a device's connections: network adapters, and the errors and the state of its fabric."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.judge.blame.cases import cases_of, listed
from linkgauge.judge.blame.counters import fabric_errors
from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.pcie_chains import hops
from linkgauge.judge.remedies import FABRIC_MANAGER, RESEAT_BRIDGE
from linkgauge.judge.vendor import nvidia, tools
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Accelerator, Adapter
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import MACHINE, Part
from linkgauge.model.hardware.pcie import TopologyClass, link_rate
from linkgauge.model.names import spans
from linkgauge.model.units import count_of

from .links import LEAST_WORN

CLOSENESS: tuple[TopologyClass, ...] = ("PIX", "PXB", "PHB", "NODE", "SYS")
_FAST = 12.5e9
"""The bytes/s of a port (100 Gb/s) from which small packets cost much of its rate."""
_LARGE = 4200
"""The bytes of an Ethernet packet that carries 4096 bytes of payload of RoCE."""
NO_MODULE = "none"
"""What `HostDetails.gpudirect` has if no module lets adapters reach accelerators' memory."""


def used_adapters(machine: Machine) -> dict[str, list[Adapter]]:
    """Returns the network ports that are active or of unknown state, grouped by adapter name."""
    ports = (one for one in machine.known.adapters if one.pci in machine.functions)
    return grouped((one.device, one) for one in ports if one.state in (None, "active"))


def nearest(machine: Machine, address: str) -> tuple[TopologyClass | None, tuple[str, ...]]:
    """Returns the topology class (such as `PIX`) and the names of a device's nearest adapters.
    Returns None and no names in a virtual machine, whose PCI bridges are emulated."""
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
    """Reports accelerators far from all adapters. With one adapter, this is only a note."""
    machine = evidence.machine
    why = "what it sends to other hosts crosses the link between the nodes first"
    remedy = ("# Move an adapter to a slot of this node; the board's manual has a drawing.",)
    for name, address in machine.addresses.items():
        how, adapters = nearest(machine, address)
        if how == "SYS":
            several = len({one.pci for one in machine.known.adapters}) > 1
            severity: Severity = "warn" if several else "note"
            part = Part.device(name, address)
            found = f"no adapter is at its NUMA node: the nearest is {spans(adapters[:4])}"
            yield Finding("far-adapter", severity, part, found, why, remedy)


def check_slots(evidence: Evidence) -> Iterator[Finding]:
    machine = evidence.machine
    remedy = ("# Use a slot of a newer generation or of more lanes, or one port of the card.",)
    slots = grouped(
        ((one.pci or "").rpartition(".")[0], one)
        for ports in used_adapters(machine).values()
        for one in ports
    )
    for hop in hops(evidence) if slots else ():
        ports = slots.get(hop.function.address.rpartition(".")[0], [])
        rates = [port.rate or 0.0 for port in ports if ports[0].pci == hop.function.address]
        if not rates or not hop.speed or not hop.width or not all(rates):
            continue
        need, carries = sum(rates), link_rate(hop.speed, int(hop.width))
        if need > carries:
            shared = f"its {len(ports)} ports share" if len(ports) > 1 else "its port has"
            found = f"{shared} PCIe {hop.speed:g} GT/s x{hop.width:g}, which carries "
            found += f"{figure(carries)}, and need {figure(need)}"
            why = f"all of them together reach {carries / need:.0%} of their rate"
            yield Finding("adapter-slot", "warn", hop.part, found, why, remedy)


def check_mtu(evidence: Evidence) -> Iterator[Finding]:
    for nic in evidence.machine.known.interfaces:
        is_roce = nic.rdma is not None and nic.kind == "Ethernet" and nic.up is not False
        if is_roce and nic.mtu and nic.mtu < _LARGE and (nic.speed or 0.0) >= _FAST:
            found = f"packets have {nic.mtu} bytes at most (MTU), the port {figure(nic.speed or 0)}"
            why = "RDMA then sends 1024 bytes a packet instead of 4096, and TCP needs six times "
            why += "the packets: headers and interrupts take their part"
            remedy = (f"sudo ip link set {nic.name} mtu 9000  # at the switch and all hosts, too",)
            yield Finding("mtu", "warn", f"{nic.name} ({nic.rdma})", found, why, remedy)


def check_uncrossed(evidence: Evidence) -> Iterator[Finding]:
    wires = [
        one for one in evidence.machine.wiring.wires
        if one.kind == "network" or (one.kind == "fabric" and one.bundle is None)
    ]  # fmt: skip
    if not wires:
        return
    crossed = frozenset[Part]().union(*(case.touched for case in cases_of(evidence)))
    missed = [wire.part for wire in wires if wire.part not in crossed]
    if 0 < len(missed) < len(wires):
        found = f"no cell crossed {listed(missed)}: nothing is known of what they carry"
        crossing = "linkgauge run nodes_rails rails_crossing"
        remedy = (f"{crossing}  # rails_crossing takes the spine switches",)
        about = missed[0] if len(missed) == 1 else f"{len(missed)} links of the network"
        yield Finding("uncrossed", "unknown", about, found, remedy=remedy)


def check_gpudirect(evidence: Evidence) -> Iterator[Finding]:
    machine = evidence.machine
    ports = used_adapters(machine)
    if machine.known.host.gpudirect == NO_MODULE and ports and machine.addresses:
        found = "no module lets adapters read and write the accelerators' memory (GPUDirect RDMA)"
        why = f"what {count_of(len(ports), 'adapter')} send goes through the host's memory first"
        or_else = "# Or use the open kernel modules of the driver, which share memory as DMA-BUF."
        remedy = ("sudo modprobe nvidia-peermem", or_else)
        yield Finding("gpudirect", "warn", MACHINE, found, why, remedy)


_SPANS_HOSTS = re.compile(r"\b(?:GB[2-9]|VR[1-9])\d\d\b")
"""Models whose links, where they lead to switches, join several hosts: GB200, GB300 and later."""


def check_errors(evidence: Evidence) -> Iterator[Finding]:
    counted = fabric_errors(evidence)
    if not counted:
        return
    why = "broken packets are sent again, which lowers the rate"
    remedy = (*tools(evidence, "errors"), RESEAT_BRIDGE)
    for joint, links in evidence.machine.wiring.joints().items():
        if joint.kind == "switch" and len(links) >= LEAST_WORN and links <= counted.keys():
            found = f"each of its {len(links)} links counted errors during the run"
            shared = "a fault in the shared part is likelier than one in each link"
            yield Finding("switch", "warn", joint, found, shared, remedy)
    for part, count in counted.items():
        found = f"its links counted {count} errors during the run"
        yield Finding("fabric-errors", "warn", part, found, why, remedy)


def fabric_manager(evidence: Evidence, device: Accelerator) -> tuple[str, ...]:
    restart = "sudo systemctl restart nvidia-fabricmanager  # interrupts the GPUs' jobs"
    return nvidia(evidence, device.memory, FABRIC_MANAGER, restart)


def check_state(evidence: Evidence) -> Iterator[Finding]:
    """Reports devices that did not join NVSwitch's fabric or, across hosts, a cluster's clique."""
    for device in evidence.machine.accelerators.values():
        state = (device.fabric_state or "").lower()
        if not state or "not supported" in state:
            continue
        if "completed" not in state and "success" not in state:
            found = f"the fabric manager has not set it up: {device.fabric_state}"
            why = "copies between devices over NVSwitch are refused"
            restart = fabric_manager(evidence, device)
            yield Finding("fabric-state", "fail", device.part, found, why, restart)
        elif _SPANS_HOSTS.search(device.model) and device.fabric_cluster is not None:
            joined = bool(device.fabric_cluster.strip("0-"))
            if joined and device.fabric_clique != 0:
                continue
            what = f"clique {device.fabric_clique} of cluster {device.fabric_cluster}"
            found = f"it has joined no NVLink domain: {what}"
            why = "it cannot reach the memory of other hosts, and perhaps of devices on this one"
            partition = "# Check that the NVLink switches list it in a partition (NMX-C)."
            look = nvidia(evidence, device.memory, "nvidia-smi -q | grep -A6 Fabric", partition)
            severity: Severity = "warn" if joined else "fail"
            remedy = (*look, *fabric_manager(evidence, device))
            yield Finding("fabric-state", severity, device.part, found, why, remedy)
