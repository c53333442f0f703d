"""Checks network interfaces: rates, rings, queues, interrupts, offloads, and unequal ends."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.network_counters import Kind, counted
from linkgauge.model.hardware.inventory import Interface
from linkgauge.model.hardware.network import InterfaceSetup
from linkgauge.model.hardware.part import Part
from linkgauge.model.ranks import nic_ends

_FAST = 10e9 / 8
"""The least bytes/s of an interface for data. Slower interfaces are for management."""


class _Setting(NamedTuple):
    of: Callable[[Interface], object]
    found: str
    why: str
    remedy: str


_EQUIVALENT = (
    _Setting(
        lambda nic: nic.mtu, "take packets of different lengths (MTU, bytes)",
        "RDMA sends the shorter ones, and longer packets that a switch passes are dropped",
        "sudo ip link set {0} mtu 9000  # at both ends and the switch, or 1500 at all",
    ),
    _Setting(
        lambda nic: nic.setup and nic.setup.roce, "use different versions of RoCE",
        "their packets differ, and the other end drops them",
        "# Set default_roce_mode of {0} in /sys/kernel/config/rdma_cm alike at both ends.",
    ),
    _Setting(
        lambda nic: nic.setup and nic.setup.traffic_class, "send RoCE in different traffic classes",
        "switches then treat one way as lossless and the other not",
        "# Set default_roce_tos of {0} in /sys/kernel/config/rdma_cm alike at both ends.",
    ),
)  # fmt: skip


def check_ends(evidence: Evidence) -> Iterator[Finding]:
    nics = {rank.number: rank.nics for rank in evidence.machine.ranks}
    pairs = {nic_ends(one) for cell in evidence.cells() for one in cell.transfers
             if one.engine.owner.is_nic}  # fmt: skip
    for pair in sorted(pairs):
        ends = [(str(end.place), nics[end.rank][end.nic]) for end in pair
                if end.nic < len(nics.get(end.rank, ()))]  # fmt: skip
        for setting in _EQUIVALENT:
            values = [setting.of(nic) for _, nic in ends]
            if len(values) == 2 and None not in values and values[0] != values[1]:
                each = zip(ends, values, strict=True)
                texts = [f"{at} ({nic.name}) {value}" for (at, nic), value in each]
                found = f"the two ends {setting.found}: {' and '.join(texts)}"
                at, nic = ends[0]
                remedy = (setting.remedy.format(nic.name),)
                yield Finding("mtu-ends", "warn", Part.device(at), found, setting.why, remedy)


def check_setup(evidence: Evidence) -> Iterator[Finding]:
    rose = {(str(one.about), one.kind) for one in counted(evidence)}
    for number, nic in enumerate(evidence.machine.known.interfaces):
        if nic.setup is None or nic.up is False or (nic.speed or 0.0) < _FAST:
            continue
        about = Part.device(f"nic:{number}", nic.pci)
        kinds = {kind for of, kind in rose if of.partition("@")[0] == f"nic:{number}"}
        for found, why, *lines in _slowed(nic, nic.setup, evidence, kinds):
            yield Finding("interface", "warn", about, f"{nic.name}: {found}", why, tuple(lines))


def _slowed(
    nic: Interface, setup: InterfaceSetup, evidence: Evidence, kinds: Collection[Kind]
) -> Iterator[tuple[str, ...]]:
    if setup.able and nic.speed and nic.speed < setup.able:
        rates = (f"{rate * 8 / 1e9:g}" for rate in (nic.speed, setup.able))
        found = "the link runs at {} Gb/s, and both ends can {}".format(*rates)
        remedy = f"sudo ethtool -s {nic.name} autoneg on  # else another cable or transceiver"
        yield found, "it was set to this rate, or did not train at more", remedy
    if setup.fec in ("off", "none") and "broken" in kinds:
        found = "errors of the link are not corrected (FEC is off)"
        remedy = f"sudo ethtool --set-fec {nic.name} encoding auto  # at the switch, too"
        yield found, "broken symbols cost whole packets", remedy
    if setup.rings and setup.rings[0] < setup.rings[2] and "no room" in kinds:
        rx, _, most, _ = setup.rings
        found = f"its receive ring has {rx} of {most} entries, and packets found no room"
        why = "packets that come faster than a CPU takes them are dropped"
        yield found, why, f"sudo ethtool -G {nic.name} rx {most}"
    if setup.queues and setup.queues[0] == 1 < setup.queues[1]:
        most = min(setup.queues[1], evidence.machine.host.cpus)
        remedy = f"sudo ethtool -L {nic.name} combined {most}"
        yield f"it uses 1 of {setup.queues[1]} queues", "one CPU takes all packets", remedy
    near = evidence.machine.known.host.node_cpus.get(-1 if nic.node is None else nic.node, ())
    far = [cpu for cpu in setup.irq_cpus if near and cpu not in near]
    if len(far) * 2 > len(setup.irq_cpus):
        count = f"{len(far)} of its {len(setup.irq_cpus)} interrupts"
        found = f"CPUs of other NUMA nodes handle {count}, and it is at node {nic.node}"
        write = f"write CPUs of node {nic.node} to /proc/irq/N/smp_affinity_list."
        yield found, "each packet crosses the link between the nodes", f"# Stop irqbalance; {write}"
    if setup.off:
        lines = (f"sudo ethtool -K {nic.name} {name} on" for name in setup.off)
        why = "CPUs do for each packet what the adapter does for many"
        yield f"offloads are off: {', '.join(setup.off)}", why, *lines
    if setup.roce == "v1":
        mode = f"default_roce_mode of {nic.rdma} in /sys/kernel/config/rdma_cm."
        why = "no router passes its packets"
        yield "RoCE uses version 1 by default", why, f"# Write `RoCE v2` to {mode}"
