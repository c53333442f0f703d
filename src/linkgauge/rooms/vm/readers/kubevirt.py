"""Writes a placement as settings of KubeVirt, which generates a domain's XML for each pod. Source:
KubeVirt user guide, Dedicated CPU resources, NUMA and Hugepages support."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import yaml

from linkgauge.rooms.vm.domain import Domain

if TYPE_CHECKING:
    from linkgauge.rooms.vm.checks.planner import Suited

NAMESPACE = "http://kubevirt.io"
NAME = "KubeVirt"
_GIB = 1 << 30


def settings(domain: Domain, suited: Suited) -> Iterator[str]:
    """Yields YAML. KubeVirt chooses CPUs and nodes, and gives guests nodes only with huge pages."""
    topology, is_wide = suited.topology or domain.topology, len(suited.nodes) > 1
    size = suited.page_size or next((pages.size for pages in domain.huge_pages), None)
    cpu: dict[str, object] = {}
    if topology is not None:
        cpu = {"sockets": topology.sockets, "threads": topology.threads}
        cpu |= {"cores": topology.cores_of_socket}
    cpu |= {"dedicatedCpuPlacement": True, "isolateEmulatorThread": True}
    asked = {"cpu": cpu | ({"numa": {"guestMappingPassthrough": {}}} if is_wide else {})}
    if is_wide or size:
        asked["memory"] = {"hugepages": {"pageSize": "1Gi" if size == _GIB else "2Mi"}}
    yield "# In the VirtualMachine, below spec.template.spec.domain:"
    yield from yaml.safe_dump(asked, sort_keys=False).splitlines()
