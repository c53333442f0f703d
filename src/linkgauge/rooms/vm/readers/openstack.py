"""Writes a placement as settings of an OpenStack flavor, because nova rewrites a guest's XML at
each hard reboot. Source: nova's documentation, Extra Specs and CPU topologies."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkgauge.rooms.vm.domain import Domain

if TYPE_CHECKING:
    from linkgauge.rooms.vm.checks.planner import Suited

NAMESPACE = "http://openstack.org/xmlns/libvirt/nova/"
NAME = "OpenStack"


def settings(domain: Domain, suited: Suited) -> Iterator[str]:
    """Yields commands that change the flavor. nova chooses the CPUs and nodes itself."""
    asked = {"cpu_policy": "dedicated", "emulator_threads_policy": "share"}
    topology = suited.topology or domain.topology
    if topology is not None:
        asked |= {"cpu_sockets": str(topology.sockets), "cpu_threads": str(topology.threads)}
        asked |= {"cpu_thread_policy": "require"} if topology.threads > 1 else {}
    asked |= {"numa_nodes": str(max(1, len(suited.nodes)))}
    asked |= {"pci_numa_affinity_policy": "required"} if domain.devices else {}
    if suited.page_size or domain.huge_pages:
        asked["mem_page_size"] = "large"
    yield "# A new flavor, as nova resizes no server to the flavor that it has:"
    yield " \\\n".join((
        "openstack flavor set FLAVOR",
        *(f"  --property hw:{name}={value}" for name, value in asked.items()),
    ))  # fmt: skip
    yield "openstack server resize --flavor FLAVOR SERVER; openstack server resize confirm SERVER"
