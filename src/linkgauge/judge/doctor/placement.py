"""Checks whether the CPUs and memory near each device are known and may be used."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.pcie_chains import shown
from linkgauge.judge.remedies import COMPARE_ON_HOST, NEAR_NODE
from linkgauge.model.hardware.inventory import PciFunction


def check_near_node(evidence: Evidence) -> Iterator[Finding]:
    nodes = set(map(attrgetter("index"), evidence.machine.host.nodes))
    for device, function in shown(evidence):
        node = function.numa_node
        if node is None and len(nodes) > 1:
            hidden = bool(evidence.machine.known.host.hypervisor)
            found = "its NUMA node is unknown"
            found += " (a virtual machine hides it)" if hidden else ": the firmware names none"
            why = "it is measured from node 0 for want of a better one: if another node is nearer, "
            why += "figures are lower than they could be"
            yield Finding("near-node", "warn", device, found, why, _placed(function, hidden=hidden))
        elif node is not None and node not in nodes:
            found = f"its node {node} has no memory that this system can see"
            why = "buffers lie on a farther node: transfers cross the link between nodes"
            populate = "# Fit DIMMs to that socket. Until then:"
            yield Finding("near-node", "warn", device, found, why, (populate, NEAR_NODE))


def _placed(function: PciFunction, *, hidden: bool) -> tuple[str, ...]:
    if hidden:
        return (NEAR_NODE, *COMPARE_ON_HOST)
    command = f"echo N | sudo tee /sys/bus/pci/devices/{function.address}/numa_node"
    return NEAR_NODE, f"{command}  # lasts until the next boot, a firmware update for good"


def check_allowed(evidence: Evidence) -> Iterator[Finding]:
    host = evidence.machine.known.host
    why = "threads or buffers are on a farther node: transfers cross the link between nodes"
    for device, function in shown(evidence):
        node = function.numa_node
        cpus = host.node_cpus.get(-1 if node is None else node)
        missing = list[str]()
        if cpus and host.allowed_cpus is not None and not set(cpus) & set(host.allowed_cpus):
            missing.append("CPUs")
        if node is not None and host.allowed_nodes is not None and node not in host.allowed_nodes:
            missing.append("memory")
        if missing:
            what = " and ".join(missing)
            found = f"this process may not use the {what} of node {node}, the nearest one"
            remedy = (
                "# If taskset or numactl restricts it, start it on that node:",
                f"numactl --cpunodebind={node} --membind={node} linkgauge run",
                "# If a cpuset does, widen it, as by docker run --cpuset-cpus --cpuset-mems.",
            )
            yield Finding("allowed", "fail", device, found, why, remedy)
