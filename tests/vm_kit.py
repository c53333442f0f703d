"""Domains as virsh writes them, and the trees of their guests and hosts: as small as can be."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import msgspec

from command_kit import called
from linkgauge.judge.findings import Finding
from linkgauge.machine.captures.archive import pack
from linkgauge.machine.tree import Captured
from pci_kit import Bus
from remedy_kit import assert_pasteable

GIB, MIB = 1 << 30, 1 << 20
CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
FULL = {
    "current_link_speed": "32.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16", "max_link_width": "16",
}  # fmt: skip


def domain(body="", *, name="gpu-vm", vcpus=4, memory=8, devices="", more=""):
    """A domain's XML: `memory` in GiB, `body` beside <devices>, `devices` in it."""
    return f"""<domain type='kvm'>
  <name>{name}</name>
  <uuid>11111111-2222-4333-8444-555555555555</uuid>
  <memory unit='GiB'>{memory}</memory>
  <vcpu placement='static'{more}>{vcpus}</vcpu>
  <os><type arch='x86_64' machine='pc-q35-8.2'>hvm</type></os>
  {body}
  <devices>{devices}</devices>
</domain>
""".encode()


def hostdev(source, guest=None, managed="yes"):
    """`source` as lspci writes it, `guest` as (bus, slot, function)."""
    place, function = source.split(".")
    space, bus, slot = place.split(":")
    at = "" if guest is None else (
        "<address type='pci' domain='0x0000' bus='{:#04x}' slot='{:#04x}' function='{:#x}'/>"
    ).format(*guest)  # fmt: skip
    return (
        f"<hostdev mode='subsystem' type='pci' managed='{managed}'><source><address "
        f"domain='0x{space}' bus='0x{bus}' slot='0x{slot}' function='0x{function}'/></source>"
        f"{at}</hostdev>"
    )


def root_port(index, slot, bus=0, function=0):
    return (
        f"<controller type='pci' index='{index}' model='pcie-root-port'>"
        f"<address type='pci' domain='0x0000' bus='{bus:#04x}' slot='{slot:#04x}' "
        f"function='{function:#x}'/></controller>"
    )


def expander(index, slot, bus_number, cell):
    return (
        f"<controller type='pci' index='{index}' model='pcie-expander-bus'>"
        f"<target busNr='{bus_number}'><node>{cell}</node></target>"
        f"<address type='pci' domain='0x0000' bus='0x00' slot='{slot:#04x}' function='0x0'/>"
        "</controller>"
    )


def tree(
    *, sockets=1, cores=4, threads=1, nodes=None, memory=8 * GIB, pools=None, thp="madvise",
    guest=True, bus=None, distances=None, vendor="GenuineIntel", online=None, files=(),
):  # fmt: skip
    """A machine's files: `cores` of a socket; `nodes` have CPUs and bytes each, `pools` huge pages
    by node and size. CPUs that are threads of a core follow one another in a guest; on a host the
    second threads come after all cores."""
    all_cores = sockets * cores
    cpus = range(all_cores * threads)
    core_of = {cpu: cpu // threads if guest else cpu % all_cores for cpu in cpus}
    online = tuple(cpus) if online is None else tuple(online)
    nodes = {0: (online, memory)} if nodes is None else nodes
    flags = "fpu hypervisor" if guest else "fpu"
    texts = {
        "proc/cpuinfo": f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: {flags}\n",
        "proc/meminfo": f"MemTotal: {sum(size for _, size in nodes.values()) >> 10} kB",
        "proc/stat": "cpu  0 0 0 1000 0 0 0 0 0 0",
        "sys/class/dmi/id/sys_vendor": "QEMU" if guest else "Supermicro",
        "sys/kernel/mm/transparent_hugepage/enabled": f"always madvise [{thp}]",
        f"{CPU}/online": ",".join(map(str, online)),
    }
    for cpu in online:
        siblings = [other for other in online if core_of[other] == core_of[cpu]]
        texts[f"{CPU}/cpu{cpu}/topology/physical_package_id"] = str(core_of[cpu] // cores)
        texts[f"{CPU}/cpu{cpu}/topology/core_id"] = str(core_of[cpu] % cores)
        texts[f"{CPU}/cpu{cpu}/topology/thread_siblings_list"] = ",".join(map(str, siblings))
    for node, (own, size) in nodes.items():
        row = (distances or {}).get(node, [10 if other == node else 20 for other in nodes])
        texts |= {
            f"{NODE}/node{node}/cpulist": ",".join(map(str, own)),
            f"{NODE}/node{node}/meminfo": f"Node {node} MemTotal: {size >> 10} kB",
            f"{NODE}/node{node}/distance": " ".join(map(str, row)),
        }
    texts |= _pools({} if pools is None else pools)
    contents = {path: f"{text}\n".encode() for path, text in texts.items()}
    bus = bus or Bus()
    return Captured(contents | bus.files | dict(files), bus.links)


def _pools(pools):
    """`pools`: by node, then by size, how many pages there are and how many are free."""
    texts, sums = {}, {}
    for node, sizes in pools.items():
        for size, (total, free) in sizes.items():
            name = f"hugepages-{size >> 10}kB"
            folder = f"{NODE}/node{node}/hugepages/{name}"
            texts |= {f"{folder}/nr_hugepages": total, f"{folder}/free_hugepages": free}
            known = sums.get(name, (0, 0))
            sums[name] = known[0] + total, known[1] + free
    for name, (total, free) in sums.items():
        folder = f"sys/kernel/mm/hugepages/{name}"
        texts |= {f"{folder}/nr_hugepages": total, f"{folder}/free_hugepages": free}
    return {path: str(text) for path, text in texts.items()}


def guest_bus(*routes, nodes=()):
    """A guest's bus: virtio and a VGA of the hypervisor, and a real card at the end of each route
    (`pci0000:00/0000:00:02.0/0000:01:00.0`); `nodes` are what it sees of each."""
    bus = Bus()
    own = {"vendor": "0x1af4", "device": "0x1041", "class": "0x020000", "numa_node": "-1"}
    bus.add("pci0000:00/0000:00:03.0", **own, subsystem_vendor="0x1af4")
    bus.add("pci0000:00/0000:00:01.0", vendor="0x1234", device="0x1111", numa_node="-1",
            **{"class": "0x030000"}, subsystem_vendor="0x1af4")  # fmt: skip
    for place, route in enumerate(routes):
        steps = route.split("/")
        for end in range(2, len(steps)):
            bus.bridge("/".join(steps[:end]), vendor="0x1b36", device="0x000c", numa_node="-1")
        node = nodes[place] if place < len(nodes) else "-1"
        bus.add(route, numa_node=str(node), subsystem_vendor="0x10de", **FULL)
    return bus


def host_bus(*cards, driver="vfio-pci", group=True, link=FULL):
    """A host's bus: cards as (address, node), each below a root port of its own."""
    bus = Bus()
    for number, (address, node) in enumerate(cards):
        port = f"pci0000:{number + 0x80:02x}/0000:{number + 0x80:02x}:01.0"
        bus.bridge(port, numa_node=str(node), **link)
        folder = bus.add(f"{port}/{address}", numa_node=str(node), **link)
        if driver:
            bus.links[f"{folder}/driver"] = f"../../../../bus/pci/drivers/{driver}"
        if group:
            bus.links[f"{folder}/iommu_group"] = f"../../../../kernel/iommu_groups/{number}"
    return bus


def running(name, *, vcpus, emulator=None, nodes=None):
    """The control groups of a domain that runs: the CPUs of each vCPU and of the emulator."""
    scope = f"sys/fs/cgroup/machine.slice/machine-qemu\\x2d1\\x2d{name}.scope/libvirt"
    texts = {f"{scope}/vcpu{vcpu}/cpuset.cpus": cpus for vcpu, cpus in vcpus.items()}
    texts |= {f"{scope}/emulator/cpuset.cpus": emulator, f"{scope}/emulator/cpuset.mems": nodes}
    return {path: f"{text}\n".encode() for path, text in texts.items() if text is not None}


class Compared(NamedTuple):
    """What is found, and the XML of the placement that suits."""

    findings: list[Finding]
    xml: list[str]


def compare(xml, root, role, files=()):
    """`linkgauge vm`, without XML of a guest by itself; `files` are more of the machine's."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        own = {"proc/own": b""}  # of a machine that shows nothing, too
        whole = Captured(own | root.files | dict(files), root.links)
        (folder / "machine.tgz").write_bytes(pack(whole))
        (folder / "domain.xml").write_bytes(xml or b"")
        words = ["domain.xml"] if xml else []
        done = called("vm", *words, "--root", "machine.tgz", "--as", role, "--json", cwd=folder)
    assert done.stdout, done.stderr
    told = json.loads(done.stdout)
    reported_as = [("about", str, msgspec.field(name="subject"))]  # a document has a part's name
    kind = msgspec.defstruct("Told", reported_as, bases=(Finding,), frozen=True)
    findings = msgspec.convert(told["findings"], list[kind])
    assert_pasteable(findings)
    return Compared(findings, told["xml"])


def told(folder, xml, root, role="host"):
    """What `linkgauge vm --json` says of a domain beside this machine."""
    (folder / "machine.tgz").write_bytes(pack(root))
    (folder / "domain.xml").write_bytes(xml)
    words = (folder / "domain.xml", "--root", folder / "machine.tgz", "--as", role, "--json")
    return json.loads(called("vm", *words).stdout)


def contradictions(judged):
    """What failed and what warns, by check and subject."""
    return {(one.check, one.subject) for one in judged.findings if one.severity in ("fail", "warn")}
