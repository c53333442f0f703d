"""Checks passed-through devices on the host, and their distance from vCPUs and memory."""

from __future__ import annotations

from collections.abc import Iterator

from linkgauge.judge.doctor import links
from linkgauge.judge.findings import Finding, Severity
from linkgauge.judge.remedies import NEAR_NODE
from linkgauge.machine.tree import ranges
from linkgauge.model.hardware.part import Part
from linkgauge.model.hardware.virtual import BusFunction

from .comparison import DomainEvidence, sized

BELOW = ("# Use the <cputune> and the <numatune> below.",)
_BRIDGE = 0x06
_OF_LINKS = (*links.OF_LINKS, links.check_bridge)
_PXB = "# Use the expanders (pxb-pcie) and the devices' addresses below."


def _there(case: DomainEvidence) -> Iterator[tuple[Part, BusFunction]]:
    for device in case.domain.devices:
        function = case.functions.get(device.source)
        if function is not None:
            yield Part.function(device.source), function


def check_present(case: DomainEvidence) -> Iterator[Finding]:
    if case.domain.devices and case.virtual.functions is None:
        found = "cannot read the host's PCI bus"
        where = "# Run it on the host itself."
        yield Finding("device", "unknown", "devices", found, remedy=(where,))
        return
    for device in case.domain.devices:
        if device.source not in case.functions:
            found = "the domain passes this address through, but the host has no device there"
            why = "the domain does not start; addresses change with cards and firmware"
            remedy = "lspci -Dnn  # then correct the <source> of the <hostdev>"
            yield Finding("device", "fail", Part.function(device.source), found, why, (remedy,))


def check_iommu(case: DomainEvidence) -> Iterator[Finding]:
    for part, function in _there(case):
        if function.is_known and function.iommu_group is None:
            found = "it is in no IOMMU group"
            why = "VFIO needs one, so the domain does not start"
            setup = "# Enable VT-d or AMD-Vi in the firmware's setup."
            boot = "# Boot with intel_iommu=on on Intel's CPUs."
            yield Finding("device-iommu", "fail", part, found, why, (setup, boot))


def check_driver(case: DomainEvidence) -> Iterator[Finding]:
    managed = {device.source for device in case.domain.devices if device.managed}
    for part, function in _there(case):
        has_vfio = "vfio" in (function.driver or "")
        driver = f"the driver {function.driver}" if function.driver else "no driver"
        is_managed = function.address in managed and not case.runs
        if has_vfio or not function.is_known or is_managed:
            continue
        severity: Severity = "warn"
        found = f"it has {driver}, and libvirt does not manage it"
        why = "the domain does not start until vfio-pci has the device"
        remedy = "# Set <hostdev … managed='yes'>, or detach the device with virsh nodedev-detach."
        if case.alive is not None:
            severity, why = "fail", "the guest cannot use it"
            found = f"the domain runs, but its device has {driver}"
            remedy = f"virsh dumpxml {case.name} | grep -A4 '<hostdev'  # as it runs"
        yield Finding("device-driver", severity, part, found, why, (remedy,))


def check_links(case: DomainEvidence) -> Iterator[Finding]:
    """Reports links that trained too low: only the host can retrain them, not the guest."""
    addresses = [device.source for device in case.domain.devices]
    mine = {*addresses}.union(*(function.route for _, function in _there(case)))
    for finding in (one for check in _OF_LINKS for one in check(case.evidence)):
        if mine.isdisjoint(finding.ends):
            continue
        if finding.is_grave:
            yield finding
        elif finding.check == "link-speed" and not finding.ends.isdisjoint(addresses):
            yield _resting(case, finding)


def _resting(case: DomainEvidence, finding: Finding) -> Finding:
    drivers = [case.functions[at].driver or "" for at in finding.ends if at in case.functions]
    is_held = any("vfio" in driver for driver in drivers)
    severity: Severity = "note" if is_held else finding.severity
    why = "an idle device may save power, so this says nothing of its speed in the guest"
    remedy = "# In the guest (traffic wakes the link): linkgauge run --profile quick"
    return Finding("link-rest", severity, finding.about, finding.found, why, (remedy,))


def check_group(case: DomainEvidence) -> Iterator[Finding]:
    """Checks that other devices of an IOMMU group have no host driver: VFIO takes whole groups."""
    mine = {device.source for device in case.domain.devices}
    groups = {one.iommu_group: part for part, one in _there(case) if one.iommu_group is not None}
    for one in case.functions.values():
        is_free = one.driver is None or "vfio" in one.driver or one.driver == "pci-stub"
        is_bridge = (one.class_code or 0) >> 16 == _BRIDGE
        if one.iommu_group in groups and not (one.address in mine or is_free or is_bridge):
            found = f"shares IOMMU group {one.iommu_group} with {one.address}, "
            found += f"which has the driver {one.driver}"
            why = "VFIO takes whole groups, so the domain does not start"
            remedy = f"# Pass {one.address} through, too, or move the card to a slot with a group "
            remedy += "of its own (ACS)."
            yield Finding("device-group", "fail", groups[one.iommu_group], found, why, (remedy,))


def check_windows(case: DomainEvidence) -> Iterator[Finding]:
    for part, function in _there(case):
        for place, size, most in (one for one in function.windows if one[1] < one[2]):
            found = f"its window {place} (BAR) has {sized(size)} and can have {sized(most)}"
            why = "the host's CPUs and other devices reach only that much of its memory at once"
            remedy = "# In the firmware's setup, enable Above 4G Decoding and Resizable BAR."
            yield Finding("rebar", "note", part, found, why, (remedy,))


def check_guest_iommu(case: DomainEvidence) -> Iterator[Finding]:
    model = case.domain.iommu
    if model is None or not case.domain.devices:
        return
    if model == "intel" and not case.domain.iommu_caches:
        found = "the guest's IOMMU (intel) has no caching_mode"
        why = "QEMU does not start with it and devices that are passed through"
        remedy = "# In <iommu>: <driver caching_mode='on'/>"
        yield Finding("guest-iommu", "fail", "iommu", found, why, (remedy,))
    else:
        found = f"the guest has an IOMMU of its own ({model})"
        why = "while its kernel translates by it, each buffer that it maps costs a trap to the host"
        remedy = "# In the guest, boot with iommu=pt, unless it passes the devices on."
        yield Finding("guest-iommu", "note", "iommu", found, why, (remedy,))


def check_acs(case: DomainEvidence) -> Iterator[Finding]:
    """Reports ACS that slows copies between devices, without a remedy: ACS isolates guests."""
    names = case.evidence.machine.addresses
    mine = {device.source for device in case.domain.devices}
    for port, pairs in links.redirecting(case.evidence).items():
        both = [pair for pair in pairs if {names[one] for one in pair} <= mine]
        if both:
            shown = ", ".join(" and ".join(names[one] for one in pair) for pair in both[:3])
            found = f"ACS redirects what {shown} send each other over the root complex"
            why = "copies between them are slower than the switch; ACS isolates them from others"
            yield Finding("acs", "note", Part.function(port), found, why)


def check_far(case: DomainEvidence) -> Iterator[Finding]:
    """Checks that vCPUs and memory are on a device's node. Other checks report missing pins."""
    everyone = case.sure_nodes_of(range(case.domain.vcpus))
    places = {"the vCPUs run": everyone, "the memory is": case.bound_nodes}
    for part, function in _there(case):
        node = function.numa_node
        if node is None and len(case.node_memory) > 1:
            found = "the host does not know its NUMA node"
            yield Finding("device-far", "unknown", part, found, remedy=(NEAR_NODE,))
        others = {what: at for what, at in places.items() if at and node not in at}
        far = [f"{what} on node {ranges(at)}" for what, at in others.items()]
        if far and node is not None:
            found = f"it is on node {node}; {', '.join(far)}"
            why = "every transfer and every interrupt crosses the link between the nodes"
            yield Finding("device-far", "warn", part, found, why, BELOW)


def check_hidden(case: DomainEvidence) -> Iterator[Finding]:
    vcpus = tuple(range(case.domain.vcpus))
    at = case.sure_nodes_of(vcpus)
    is_fixed = all(len(case.nodes_of((vcpu,))) == 1 for vcpu in vcpus)
    if len(case.cells) < 2 and len(at) > 1 and is_fixed:
        found = f"its vCPUs run on nodes {ranges(at)}, but the guest sees only one"
        why = "the guest cannot place threads and memory near each other, or near a device"
        remedy = "# Use the <cpu> with <numa>, the <cputune> and the <numatune> below."
        yield Finding("cells-hidden", "warn", "cells", found, why, (remedy,))


def check_cells(case: DomainEvidence) -> Iterator[Finding]:
    if len(case.cells) < 2:
        return
    why = "drivers in the guest use memory and CPUs of another node than the device's"
    for device in case.domain.devices:
        node, cell = case.node_of_device(device.source), case.domain.cell_of(device)
        home = () if node is None else _cell_at(case, node)
        if not home or cell in home:
            continue
        found = f"its expander belongs to cell {cell}, but its node {node} is cell {ranges(home)}"
        if cell is None:
            found = "it is below no expander, so the guest does not know which cell is near"
        yield Finding("device-node", "warn", Part.function(device.source), found, why, (_PXB,))


def _cell_at(case: DomainEvidence, node: int) -> tuple[int, ...]:
    return tuple(
        cell.index for cell in case.cells
        if node in case.sure_nodes_of(cell.vcpus)
        or ((own := case.domain.cell_policies.get(cell.index)) and own.nodes == (node,))
    )  # fmt: skip
