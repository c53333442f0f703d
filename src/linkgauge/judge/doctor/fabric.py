"""Checks a device's connections: fabric links, fabric switches and network adapters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from linkgauge.judge.blame.cases import cases_of, listed
from linkgauge.judge.blame.counters import bundles, fabric_errors
from linkgauge.judge.expected.link_rates import figure
from linkgauge.judge.findings import Check, Evidence, Finding, Severity
from linkgauge.judge.pcie_chains import hops, latest_accelerators
from linkgauge.judge.remedies import FABRIC_MANAGER
from linkgauge.judge.vendor import Matter, nvidia, tools
from linkgauge.machine.tree import ranges
from linkgauge.model.documents.result import CellResult
from linkgauge.model.errors import OutcomeKind
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Accelerator, Adapter
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.hardware.part import MACHINE, Part, is_memory
from linkgauge.model.hardware.pcie import TopologyClass, link_rate
from linkgauge.model.names import spans
from linkgauge.model.notes import STAGED
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
    """Returns the network ports that are not down, grouped by adapter name."""
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
    several = len({one.pci for one in machine.known.adapters}) > 1
    severity: Severity = "warn" if several else "note"
    for name, address in machine.addresses.items():
        how, adapters = nearest(machine, address)
        if how == "SYS":
            part = Part.device(name, address)
            found = f"no adapter is at its NUMA node: the nearest is {spans(adapters[:4])}"
            yield Finding("far-adapter", severity, part, found, why, remedy)


def check_slots(evidence: Evidence) -> Iterator[Finding]:
    machine = evidence.machine
    links = {hop.function.address: hop for hop in hops(evidence)}
    remedy = ("# Use a slot of a newer generation or of more lanes, or one port of the card.",)
    slots = grouped(
        ((one.pci or "").rpartition(".")[0], one)
        for ports in used_adapters(machine).values()
        for one in ports
    )
    for ports in slots.values():
        hop, rates = links.get(ports[0].pci or ""), [port.rate or 0.0 for port in ports]
        if hop is None or not hop.speed or not hop.width or not all(rates):
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


_HALVED = re.compile(r"\b[AH]800\b")
"""Boards that use only some of their links to switches."""
_RESEAT = "# Reseat the device's module or, of cards, the bridge between them."
_PEERS = "linkgauge doctor  # look for acs and iommu; on a virtual machine, run it on the host too"
_SPANS_HOSTS = re.compile(r"\b(?:GB[2-9]|VR[1-9])\d\d\b")
"""Models whose links, where they lead to switches, join several hosts: GB200, GB300 and later."""


def check_switch(evidence: Evidence) -> Iterator[Finding]:
    """Reports a switch to which every device has lost links."""
    joined = grouped(
        (to[0] if len(to) == 1 else f"{device.links[0].kind} switches", device)
        for device in latest_accelerators(evidence).values()
        if (
            to := [
                *{one.remote for one in device.links if one.remote and not is_memory(one.remote)}
            ]
        )
    )
    for name, devices in joined.items():
        down = [_lost(evidence, device) for device in devices]
        if len(devices) > 1 and all(down):
            led = {link.remote or "" for d in devices for link in d.links if link.active is False}
            one = led.pop() if len(led) == 1 else ""
            at = Part.fabric_switch(name if not one or is_memory(one) else one)
            counts = [f"{d.memory} {n}" for d, n in zip(devices, down, strict=True)]
            found = f"each of {len(devices)} devices has lost links to it: {', '.join(counts[:8])}"
            why = "a fault in the shared part is likelier than one in each device"
            restart = "# Power the machine off and on. Check the switch board and its power supply."
            remedy = (*_manager(evidence, devices[0]), restart)
            yield Finding("switch", "fail", at, found, why, remedy)


def _lost(evidence: Evidence, device: Accelerator) -> int:
    down = sum(link.active is False for link in device.links)
    # With a thousand devices, comparing each with all others takes long: only where links are down.
    return down - _unused(device).total() if down and _is_as_built(evidence, device) else down


def _manager(evidence: Evidence, device: Accelerator) -> tuple[str, ...]:
    restart = "sudo systemctl restart nvidia-fabricmanager  # interrupts the GPUs' jobs"
    return nvidia(evidence, device.memory, FABRIC_MANAGER, restart)


def check_inactive(evidence: Evidence) -> Iterator[Finding]:
    reported: set[Part | str] = set()
    for device in latest_accelerators(evidence).values():
        for part, links in bundles(device).items():
            down = [link for link in links if link.active is False]
            if not down or part in reported:
                continue
            # A link that is down may not report its remote end: then all of its kind count.
            equivalent = [link for link in device.links if link.kind == down[0].kind]
            all_links = equivalent if down[0].remote is None else links
            up = [link for link in all_links if link.active]
            count = f"{len(down)} of {len(all_links)} {down[0].kind} links"
            if part == device.part and _is_as_built(evidence, device):
                if device.model not in reported:
                    why = f"each {device.model} here has as many inactive links: it was built so"
                    yield Finding("fabric-links", "note", part, f"{count} are inactive", why)
                reported.add(device.model)
                continue
            reported.add(part)
            numbers = ranges(link.index for link in down)
            found = f"{count} of {device.memory} are inactive: number {numbers}"
            why = "copies between devices go over PCIe"
            if up:
                why = f"the active ones carry {len(up) / len(all_links):.0%} of what all would"
            look = "linkgauge devices  # where each link leads"
            remedy = (*tools(evidence, "links"), *_manager(evidence, device), look, _RESEAT)
            yield Finding("fabric-links", "fail", part, found, why, remedy, value=len(down))


def _is_as_built(evidence: Evidence, device: Accelerator) -> bool:
    """Whether a device lacks links by design: all cards of its model lack equally many links before
    and after the run, and the form factor and model allow it."""
    cards, before = (
        [other for other in known.values() if other.model == device.model]
        for known in (latest_accelerators(evidence), evidence.machine.accelerators)
    )
    if any(_unused(other) != _unused(device) for other in (*cards, *before)):
        return False
    if any("switch" in (link.remote or "") for link in device.links):
        return bool(_HALVED.search(device.model))
    uses_some = any(link.active for link in device.links if link.kind in _unused(device))
    if device.form_factor == "SXM":
        return uses_some and len(cards) > 1
    return device.form_factor == "PCIe" or len(cards) > 1 or not uses_some


def _unused(device: Accelerator) -> Counter[str]:
    return Counter(
        link.kind for link in device.links if link.active is False and link.remote is None
    )


def check_errors(evidence: Evidence) -> Iterator[Finding]:
    why = "broken packets are sent again, which lowers the rate"
    remedy = (*tools(evidence, "errors"), _RESEAT)
    counted = fabric_errors(evidence)
    for joint, links in evidence.machine.wiring.joints().items():
        if joint.kind == "switch" and len(links) >= LEAST_WORN and links <= counted.keys():
            found = f"each of its {len(links)} links counted errors during the run"
            shared = "a fault in the shared part is likelier than one in each link"
            yield Finding("switch", "warn", joint, found, shared, remedy)
    for part, count in counted.items():
        found = f"its links counted {count} errors during the run"
        yield Finding("fabric-errors", "warn", part, found, why, remedy)


def check_state(evidence: Evidence) -> Iterator[Finding]:
    """Reports devices that did not join NVSwitch's fabric or, across hosts, a cluster's clique."""
    for device in evidence.machine.accelerators.values():
        state = (device.fabric_state or "").lower()
        if not state or "not supported" in state:
            continue
        restart = _manager(evidence, device)
        if not any(word in state for word in ("completed", "success")):
            found = f"the fabric manager has not set it up: {device.fabric_state}"
            why = "copies between devices over NVSwitch are refused"
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
            yield Finding("fabric-state", severity, device.part, found, why, (*look, *restart))


def _unmeasured(
    check: str, kind: OutcomeKind, why: str, *remedy: str, first: Matter | None = None
) -> Check[Evidence]:
    def by_reason(evidence: Evidence) -> Iterator[Finding]:
        found = ((cell.reason or "", str(cell)) for cell in evidence.cells() if cell.kind == kind)
        steps = (*(tools(evidence, first) if first else ()), *remedy)
        for reason, cells in grouped(found).items():
            yield Finding(check, "fail", cells[0], reason, why, steps, tuple(cells))

    return by_reason


_refused_peers = _unmeasured(
    "peer-access", "peer", "copies between the devices go through host memory, or not at all",
    _PEERS, first="peers",
)  # fmt: skip


def check_peers(evidence: Evidence) -> Iterator[Finding]:
    """Reports refused peer access. The finding is only a note if no fabric joins the devices and no
    device reaches the memory of another."""
    refused = [*_refused_peers(evidence)]
    joined = any(wire.kind == "fabric" for wire in evidence.machine.wiring.wires)
    if refused and not joined and not any(map(_reaches_peer, evidence.cells())):
        cells = tuple(cell for one in refused for cell in one.cells)
        found = "no device reaches another's memory, as with products that do not offer it"
        of = refused[0].why, refused[0].remedy, cells
        refused = [Finding("peer-access", "note", "devices", found, *of)]
    yield from refused


def _reaches_peer(cell: CellResult) -> bool:
    devices = {str(end.place) for one in cell.transfers for end in one.memories if end.is_device}
    return cell.status == "pass" and len(devices) > 1 and STAGED not in cell.notes


check_imex = _unmeasured(
    "imex", "imex", "fabric handles reach the memory of other nodes and need an IMEX channel",
    "systemctl status nvidia-imex; ls /dev/nvidia-caps-imex-channels",
    "# Load the module nvidia with NVreg_CreateImexChannel0=1.",
)  # fmt: skip
