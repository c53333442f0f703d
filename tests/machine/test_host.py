"""The machine is read from any tree: a real one, a captured one, a garbled one."""

from pathlib import Path

import pytest

from linkgauge.machine.host import cgroup_headroom, cpu_model, read_host, unread
from linkgauge.machine.tree import Captured, Disk
from machine_kit import host_of


def build(root: Path, files: dict[str, str]) -> Disk:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Disk(root)


TWO_NODES = {
    "proc/meminfo": "MemTotal:  3000 kB\nMemAvailable: 2000 kB\n",
    "sys/devices/system/node/node0/cpulist": "0-1,4\n",
    "sys/devices/system/node/node0/meminfo": (
        "Node 0 MemTotal: 1000 kB\nNode 0 MemFree: 300 kB\n"
        "Node 0 Active(file): 100 kB\nNode 0 Inactive(file): 200 kB\n"
    ),
    "sys/devices/system/node/node1/cpulist": "2-3\n",
    "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 2000 kB\nNode 1 MemFree: 1 kB\n",
    "sys/devices/system/node/node2/cpulist": "5\n",
    "sys/devices/system/node/node2/meminfo": "Node 2 MemTotal: 0 kB\n",
    "sys/devices/system/node/possible": "0-2\n",
}


def test_nodes_have_their_cpus_and_memory_and_those_without_memory_are_left_out(tmp_path):
    online = {"sys/devices/system/cpu/online": "0-3,5\n"}
    group = {"sys/fs/cgroup/memory/memory.limit_in_bytes": f"{500 << 10}\n"}
    first, second = read_host(build(tmp_path, TWO_NODES | online | group)).nodes
    assert (first.index, first.cpus) == (0, (0, 1))
    assert (first.memory_total, first.memory_available) == (1000 << 10, 500 << 10)
    assert (second.index, second.cpus, second.memory_available) == (1, (2, 3), 1 << 10)


LONE = {
    "proc/meminfo": "MemTotal: 3000 kB\nMemAvailable: 2000 kB\n",
    "sys/devices/system/node/node1/cpulist": "1,3,5,7\n",
    "sys/devices/system/node/node1/meminfo": "Node 1 MemTotal: 1000 kB\nNode 1 MemFree: 9 kB\n",
}


def test_a_lone_node_has_neither_offline_cpus_nor_what_absent_nodes_have():
    """Node 0 is absent: its CPUs 2 and 4 are online, its memory counts in /proc/meminfo."""
    host = read_host(held(LONE | {"sys/devices/system/cpu/online": "2-5\n"}))
    (node,) = host.nodes
    assert (node.index, node.cpus) == (1, (3, 5))
    assert (node.memory_total, node.memory_available) == (1000 << 10, 9 << 10)
    assert (host.cpus, host.memory_total) == (4, 1000 << 10)
    # All of the CPUs are its own: so is all memory.
    (node,) = read_host(held(LONE | {"sys/devices/system/cpu/online": "3,5\n"})).nodes
    assert (node.cpus, node.memory_total) == ((3, 5), 3000 << 10)


def test_a_lone_node_beside_a_gpu_s_has_only_its_own_memory():
    """The kernel's total counts the GPU's memory, as on GH200."""
    gpu = {"proc/driver/nvidia/gpus/0009:01:00.0/numa_status": "Node:      0\n"}
    online = {"sys/devices/system/cpu/online": "3,5\n"}
    (node,) = read_host(held(LONE | online | gpu)).nodes
    assert (node.cpus, node.memory_total) == ((3, 5), 1000 << 10)


def test_distances_are_of_the_nodes_that_are_listed():
    """Node 1 has a GPU's memory, node 2 none."""
    rows = ("10 40 20 21", "40 10 40 40", "20 40 10 20", "22 40 20 10")
    node = "sys/devices/system/node/node{}"
    files = {f"{node}/distance".format(index): f"{row}\n" for index, row in enumerate(rows)}
    for index, size in enumerate((8, 9, 0, 8)):
        files[f"{node}/meminfo".format(index)] = f"Node {index} MemTotal: {size} kB\n"
    files["proc/driver/nvidia/gpus/0009:01:00.0/numa_status"] = "Node:      1\n"
    assert host_of(held(files)).distances == {0: (10, 21), 3: (22, 10)}
    files[f"{node}/distance".format(3)] = "22 10\n"
    assert host_of(held(files)).distances == {}


def test_without_numa_everything_is_node_0(tmp_path):
    files = {"proc/meminfo": "MemTotal: 8 kB\n", "sys/devices/system/cpu/online": "1,3\n"}
    (node,) = read_host(build(tmp_path, files)).nodes
    assert (node.index, node.cpus, node.memory_total) == (0, (1, 3), 8192)


CAPTURED = TWO_NODES | {
    "proc/sys/kernel/hostname": "far\n",
    "proc/sys/kernel/osrelease": "6.6.12\n",
    "proc/sys/kernel/ostype": "Linux\n",
    "proc/sys/kernel/arch": "riscv64\n",
    "sys/devices/system/cpu/online": "0-3,5\n",
}


def held(files: dict[str, str]) -> Captured:
    return Captured({path: text.encode() for path, text in files.items()})


def test_names_and_sizes_that_are_missing_have_a_reason(tmp_path):
    whole = {"proc/cpuinfo": "uarch: sifive,p550\n", **CAPTURED}
    assert unread(read_host(held(whole))) == ()
    assert [line.partition(":")[0] for line in unread(read_host(Disk(tmp_path)))] == [
        "processor", "architecture", "kernel", "system", "memory",
    ]  # fmt: skip
    del whole["sys/devices/system/node/node1/meminfo"]
    assert unread(read_host(held(whole))) == ("memory of nodes 1: their meminfo is not readable",)
    assert read_host(held(whole)).memory_total == 3000 << 10


ARM = "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU part\t: {:#x}\n\n"


@pytest.mark.parametrize(
    ("files", "model"),
    [
        ({"proc/cpuinfo": "processor: 0\nmodel name\t: AMD EPYC 9254\n"}, "AMD EPYC 9254"),
        ({"proc/cpuinfo": "isa: rv64\nuarch\t: sifive,p550\n"}, "sifive,p550"),
        ({"proc/cpuinfo": "cpu\t\t: POWER9, altivec supported\n"}, "POWER9, altivec supported"),
        ({"proc/cpuinfo": ARM.format(0xD87) + ARM.format(0xD85)}, "Cortex-A725 + Cortex-X925"),
        ({"proc/cpuinfo": ARM.format(0xD87) + ARM.format(0xFFF)}, None),
        ({"proc/cpuinfo": "CPU part: 1\n", "proc/device-tree/model": "Board A\0"}, "Board A"),
        ({}, None),
    ],
)
def test_the_processor_is_named_on_every_architecture(tmp_path, files, model):
    assert cpu_model(build(tmp_path, files)) == model


GROUP, FIRST = "sys/fs/cgroup/a/memory.", "sys/fs/cgroup/memory/memory."
BELOW = {
    "proc/self/cgroup": "0::/a/b\n",
    "sys/fs/cgroup/a/b/memory.max": "max\n",
    f"{GROUP}max": "1000\n",
    f"{GROUP}current": "400\n",
    "sys/fs/cgroup/memory.max": "5000\n",
}


@pytest.mark.parametrize(
    ("files", "headroom"),
    [
        (BELOW, 600),  # the tightest group counts
        # The cache of files gives way.
        ({**BELOW, f"{GROUP}stat": "anon 1\ninactive_file 250\nactive_file 50\n"}, 900),
        # Version one tells the cache of groups below apart.
        ({f"{FIRST}limit_in_bytes": "2000\n", f"{FIRST}usage_in_bytes": "1000\n",
          f"{FIRST}stat": "active_file 1\ntotal_active_file 400\ntotal_inactive_file 100\n"}, 1500),
        ({f"{FIRST}limit_in_bytes": "77\n"}, 77),
        ({f"{FIRST}limit_in_bytes": "9223372036854771712\n"}, None),
        ({}, None),
    ],
)  # fmt: skip
def test_what_control_groups_leave_of_memory(files, headroom):
    assert cgroup_headroom(held(files)) == headroom
