"""The topology as files of a run: what tools print, or the same facts in their form."""

import re

import msgspec
import pytest

from configurations_kit import HOST
from linkgauge.machine import topology_files as module
from linkgauge.machine.host import read_host
from linkgauge.machine.read_inventory import read_inventory
from linkgauge.machine.tools import ToolOutput
from linkgauge.machine.topology_files import topology_files
from linkgauge.machine.tree import parse_cpu_list, ranges
from linkgauge.model.host_details import Cache
from linkgauge.model.inventory import HostDetails, Inventory
from linkgauge.model.machine import Machine
from machine_kit import captured

NAMES = ("numa_topology.txt", "cpu_topology.txt", "hugepages.txt")
MEMINFO = {"proc/meminfo": "MemTotal: 8 kB\nHugePages_Total:       4\nHugepagesize:    2048 kB\n"}


@pytest.fixture
def asked(monkeypatch):
    """Tools that answer as they are told; not installed otherwise."""
    answers: dict[str, tuple[int | None, str]] = {}

    def ask(commands, seconds):
        (command,) = (" ".join(one) for one in commands)
        if command not in answers:
            return (ToolOutput(command, problem="not installed"),), {}
        code, text = answers[command]
        return (ToolOutput(command, code, file="f"),), {"f": text.encode()}

    monkeypatch.setattr(module, "ask", ask)
    return answers


def two_nodes():
    details = msgspec.structs.replace(
        HOST.inventory.host,
        node_cpus={0: (0, 1, 2, 3), 1: (4, 5, 6, 7)},
        distances={0: (10, 21), 1: (21, 10)},
        caches=(Cache(3, "unified", 32 << 20, 8),),
    )
    return msgspec.structs.replace(HOST, inventory=Inventory(host=details))


def test_a_tool_that_is_installed_speaks_for_itself(asked):
    asked["lscpu"] = 0, "Architecture: x86_64\n"
    asked["numactl --hardware"] = 0, "available: 1 nodes (0)\n"
    files = topology_files(HOST, captured(MEMINFO))
    assert tuple(files) == NAMES
    assert files["cpu_topology.txt"] == "Architecture: x86_64\n"
    assert files["numa_topology.txt"] == "available: 1 nodes (0)\n"


def test_our_own_readers_stand_in_and_say_so(asked):
    asked["lscpu"] = 1, "lscpu: failed\n"
    files = topology_files(two_nodes(), captured(MEMINFO))
    numa, cpu = files["numa_topology.txt"].splitlines(), files["cpu_topology.txt"].splitlines()
    own = "the facts below are as linkgauge reads them"
    assert numa[0] == f"# numactl --hardware: not installed; {own}"
    assert numa[1:4] == [
        "available: 2 nodes (0-1)",
        "node 0 cpus: 0 1 2 3",
        "node 0 size: 262144 MB",
    ]
    assert numa[-3:] == ["node   0   1", "   0:  10  21", "   1:  21  10"]
    assert cpu[0] == f"# lscpu: exit code 1; {own}"
    facts = dict(re.split(r":\s+", line, maxsplit=1) for line in cpu[1:])
    assert (facts["CPU(s)"], facts["Socket(s)"], facts["Core(s) per socket"]) == ("8", "2", "16")
    assert facts["L3 cache"] == "32.0 MiB (shared by 8)"
    assert facts["NUMA node1 CPU(s)"] == "4-7"


def test_huge_pages_are_the_kernels_lines_below_each_pool(asked):
    machine = msgspec.structs.replace(
        HOST,
        inventory=Inventory(
            host=HostDetails(huge_pages={2 << 20: (4, 3)}, transparent_huge_pages="never")
        ),
    )
    assert topology_files(machine, captured(MEMINFO))["hugepages.txt"].splitlines() == [
        "# transparent huge pages: never",
        "# pool of 2.0 MiB pages: 4, 3 free",
        "HugePages_Total:       4",
        "Hugepagesize:    2048 kB",
    ]


def test_a_simulated_machine_asks_no_tool_and_is_marked(asked):
    asked["lscpu"] = asked["numactl --hardware"] = 0, "of this machine\n"
    machine = msgspec.structs.replace(two_nodes(), simulated="ppu-8")
    for text in topology_files(machine).values():
        assert text.startswith("# SIMULATED ppu-8")
        assert "of this machine" not in text


def test_a_machine_that_tells_nothing_still_has_its_files(asked):
    machine = Machine(read_host(captured({"proc/version": "Linux"})))
    files = topology_files(machine, captured({}))
    assert "No distance information available." in files["numa_topology.txt"]
    assert all(text.endswith("\n") for text in files.values())


def test_this_machine(tmp_path):
    machine = Machine(read_host(), inventory=Inventory(host=read_inventory().host))
    files = topology_files(machine)
    assert re.search(r"^node \d+ cpus: ", files["numa_topology.txt"], re.MULTILINE)
    assert "CPU(s):" in files["cpu_topology.txt"]


@pytest.mark.parametrize("text", ["", "0", "0-3", "0,2-3,8"])
def test_ranges_are_the_kernels_lists(text):
    assert ranges(parse_cpu_list(text)) == text
