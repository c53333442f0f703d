"""Trees of machines as small as can be: files as Linux shows them, and SMBIOS tables; how a tree is
read and kept."""

from __future__ import annotations

import os
import struct

from linkgauge.backends.sim.backend import simulate
from linkgauge.backends.sim.description import load, shipped
from linkgauge.machine.captures.archive import read_archive, write_archive
from linkgauge.machine.host import read_host
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tree import ROOT, Captured
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import EngineSettings, Simulation
from sim_tree import tree_of

CPU = "sys/devices/system/cpu"
NODE = "sys/devices/system/node"
HUGE = "sys/kernel/mm/hugepages"
GROUPS = "sys/kernel/iommu_groups"
DMI = "sys/firmware/dmi/tables/DMI"
LIMITS = (
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max locked memory         {:<21}unlimited            bytes     \n"
)
X86_FLAGS = (
    "lm cx16 lahf_lm pni popcnt sse4_1 sse4_2 ssse3 abm avx avx2 bmi1 bmi2 f16c fma movbe xsave"
)
"""Those of x86-64-v3."""
SWITCHED = """
source: a test
host: {cpu_model: Test CPU, iommu: translating, nodes: [{cpus: 4, memory: 8G}]}
link_kinds: {x16: {kind: pcie, speed: 32, width: 16}}
switches:
  - {name: sw0, kind: pcie, acs_redirect: true}
  - {name: sw1, kind: pcie}
devices: [{count: 4, model: Card, memory: 1G}]
links:
  - {kind: x16, each: sim:0..3, to: sw0..1}
  - {kind: x16, each: sw0..1, to: host:0}
"""
"""A simulated machine: two devices below a switch that redirects by ACS, two below one that does
not, and an IOMMU that translates."""

LARGEST = "fat-tree-10000"
"""Its plan alone takes ten seconds."""
SHIPPED = [name for name in shipped() if name != LARGEST]
CLUSTERS = [name for name in SHIPPED if name.startswith("fat-tree")]
"""Machines whose devices stand for nodes: tests/cli/test_nodes.py measures them."""
OF_HOSTS = [name for name in SHIPPED if name not in CLUSTERS]
"""All other machines shipped as descriptions."""
# The rack of 72 takes as long as all others together.
_FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
MACHINES = [name for name in OF_HOSTS if _FULL or name != "gb200-nvl72"]
"""Those for tests that take long."""


def simulated(name):
    return tree_of(simulate(Simulation(*load(name), ()), EngineSettings()))


def captured(*parts):
    """A machine of texts and bytes by path."""
    files = {path: content for part in parts for path, content in part.items()}
    return Captured({p: c if isinstance(c, bytes) else c.encode() for p, c in files.items()})


def seen(root):
    """The machine as its readers find it."""
    return Machine(host=read_host(root), inventory=read_inventory(root))


def through_a_file(tree, folder):
    path = folder / "machine.tgz"
    write_archive(path, tree)
    return read_archive(path)


def processors(*, sockets, cores, threads, extra=()):
    """CPUs as x86 numbers them: the second threads of all cores after the first ones."""
    all_cores = sockets * cores
    files = {f"{CPU}/online": f"0-{all_cores * threads - 1}\n"}
    for cpu in range(all_cores * threads):
        core = cpu % all_cores
        siblings = ",".join(str(core + all_cores * thread) for thread in range(threads))
        folder = f"{CPU}/cpu{cpu}/topology"
        files[f"{folder}/physical_package_id"] = f"{core // cores}\n"
        files[f"{folder}/core_id"] = f"{core % cores}\n"
        files[f"{folder}/thread_siblings_list"] = f"{siblings}\n"
        files |= {f"{CPU}/cpu{cpu}/{name}": text for name, text in extra}
    return files


def reason(details, subject):
    """The reason that is given for a field."""
    (line,) = (line for line in details.unknown if line.startswith(f"{subject}: "))
    return line


def subjects(details):
    return {", ".join(gap.fields) for gap in details.unknown}


def dimm(
    locator="DIMM 0", *, bank="", size=0x4000, speed=4800, width=64, kit=0, form=9, kind=0x22,
    technology=3, length=0x5C,
):  # fmt: skip
    """A structure of type 17 (SMBIOS 3.7, 7.18); `speed` as configured."""
    extended = speed if speed > 0xFFFE else 0
    short = 0xFFFF if extended else speed
    body = struct.pack(
        "<BBHHHHHHBBBBBHH4BBIH6xBH", 17, length, 0x11, 0x10, 0xFFFE, 0xFFFF, width, size, form,
        kit, 1, 2, kind, 0x80, 5600, 0, 0, 0, 0, 0, 0, short, technology, 0,
    )  # fmt: skip
    body = body.ljust(0x58, b"\0") + struct.pack("<I", extended)
    strings = locator.encode() + b"\0" + (bank or "-").encode()
    return body[:length] + strings + b"\0\0"


def table(*structures):
    other = bytes([0, 26]) + bytes(24) + b"Vendor\0Version\0\0"
    end = bytes([127, 4, 0, 0, 0, 0])
    return b"".join([other, *structures, end])


def host_of(root=ROOT):
    """What a machine's files tell of its host."""
    return read_inventory(root).host
