"""Describes a guest for NCCL's topology file, with the host's switches above its devices."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from linkgauge.model.errors import InputError
from linkgauge.model.hardware.inventory import Adapter
from linkgauge.model.hardware.machine import Machine, Node

from .domain import Domain, HostDevice

_NETWORK = 0x02
"""The PCI class of network adapters."""


def guest_of(domain: Domain, host: Machine) -> Machine:
    """Returns the guest as a machine. Bridges above the guest's devices get made-up addresses.
    Raises InputError if the domain does not give a device's address in the guest."""
    buses = dict(_numbered(domain))
    devices = [one for one in domain.devices if one.source in host.functions]
    above = {one.source: host.pci_tree.above(one.source) for one in devices}
    bridges = {port.address: port for line in above.values() for port in line}
    named = {address: f"ffff:{n:02x}:00.0" for n, address in enumerate(bridges)}
    named |= {one.source: _address(one, buses) for one in devices}
    cells = {one.source: _cell(domain, one, host) for one in devices}
    pci = tuple(
        replace(one, address=named[one.address], parent=named.get(one.parent or ""),
                numa_node=cells.get(one.address))
        for one in (*bridges.values(), *(host.functions[source] for source in cells))
    )  # fmt: skip
    network = (one.address for one in pci if (one.class_code or 0) >> 16 == _NETWORK)
    adapters = tuple(Adapter(name=address, pci=address) for address in network)
    nodes = tuple(Node(cell.index, cell.vcpus) for cell in domain.cells)
    about = replace(host.host, nodes=nodes or (Node(0, domain.enabled),))
    return replace(host, host=about, inventory=replace(host.known, pci=pci, adapters=adapters))


def _numbered(domain: Domain) -> Iterator[tuple[int, int]]:
    """Yields the index and bus number of each PCI controller. Linux numbers buses depth first."""

    def below(index: int, number: int) -> Iterator[tuple[int, int]]:
        yield index, number
        ports = (one for one in domain.controllers if one.address and one.address.bus == index)
        own = {(one.address.slot, one.address.function): one.index  # type: ignore[union-attr]
               for one in ports if one.index and not one.is_expander}  # fmt: skip
        last = number
        for _, port in sorted(own.items()):
            for found in below(port, last + 1):
                yield found
                last = found[1]

    yield from below(0, 0)
    for one in domain.controllers:
        if one.is_expander and one.bus_number is not None:
            yield from below(one.index, one.bus_number)


def _address(device: HostDevice, buses: dict[int, int]) -> str:
    at = device.guest
    if at is None or at.bus not in buses:
        raise InputError(
            f"--nccl-topo: the domain does not say where {device.source} is in the guest: give "
            "what virsh dumpxml prints while it runs"
        )
    return f"{at.domain:04x}:{buses[at.bus]:02x}:{at.slot:02x}.{at.function:x}"


def _cell(domain: Domain, device: HostDevice, host: Machine) -> int:
    near, known = host.functions[device.source].numa_node, domain.cell_of(device)
    nodes = {cell.index: domain.policy_of(cell.index) for cell in domain.cells}
    like = (index for index, policy in nodes.items() if policy and near in (policy.nodes or ()))
    return next(like, min(nodes, default=0)) if known is None else known
