"""What the kernel says of a host is read on every architecture, and from any tree."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.backends.sim import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.hardware import build
from linkgauge.machine.details import read_details
from linkgauge.machine.host import cpu_model
from linkgauge.machine.tree import Captured, parse_cpu_list
from linkgauge.model.host_details import Cache
from machine_kit import (
    CPU,
    DMI,
    GROUPS,
    HUGE,
    LIMITS,
    NODE,
    OF_HOSTS,
    X86_FLAGS,
    captured,
    dimm,
    processors,
    reason,
    subjects,
    table,
)  # fmt: skip
from sim_tree import tree_of

# The server: two sockets of two cores of two threads.
X86 = processors(
    sockets=2, cores=2, threads=2, extra=[("cpufreq/scaling_governor", "powersave\n")]
) | {
    "proc/cpuinfo": f"processor\t: 0\nmodel name\t: Intel(R) Xeon(R)\nflags\t\t: {X86_FLAGS}\n\n",
    "proc/cmdline": "BOOT_IMAGE=/vmlinuz root=/dev/sda2 intel_iommu=on\n",
    "proc/stat": "cpu  100 0 100 700 50 0 10 40 0 0\ncpu0 1 2 3\n",
    "proc/self/status": "Name:\tpython\nCpus_allowed_list:\t0-3,5\nMems_allowed_list:\t1\n",
    "proc/self/limits": LIMITS.format("8388608"),
    "proc/self/cgroup": "0::/user.slice/user-1000.slice\n",
    "sys/fs/cgroup/user.slice/memory.max": "17179869184\n",
    "sys/fs/cgroup/user.slice/user-1000.slice/memory.max": "max\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always madvise [never]\n",
    "sys/class/dmi/id/sys_vendor": "Dell Inc.\n",
    "sys/class/dmi/id/product_name": "PowerEdge R760\n",
    f"{HUGE}/hugepages-2048kB/nr_hugepages": "512\n",
    f"{HUGE}/hugepages-2048kB/free_hugepages": "500\n",
    f"{HUGE}/hugepages-1048576kB/nr_hugepages": "0\n",
    f"{HUGE}/hugepages-1048576kB/free_hugepages": "0\n",
    f"{GROUPS}/0/type": "identity\n",
    f"{GROUPS}/1/type": "DMA-FQ\n",
    f"{NODE}/node0/cpulist": "0-1,4-5\n",
    f"{NODE}/node0/distance": "10 21\n",
    f"{NODE}/node1/cpulist": "2-3,6-7\n",
    f"{NODE}/node1/distance": "21 10\n",
    f"{CPU}/cpu0/cache/index0/level": "1\n",
    f"{CPU}/cpu0/cache/index0/type": "Data\n",
    f"{CPU}/cpu0/cache/index0/size": "48K\n",
    f"{CPU}/cpu0/cache/index0/shared_cpu_list": "0,4\n",
    f"{CPU}/cpu0/cache/index3/level": "3\n",
    f"{CPU}/cpu0/cache/index3/type": "Unified\n",
    f"{CPU}/cpu0/cache/index3/size": "105M\n",
    f"{CPU}/cpu0/cache/index3/shared_cpu_map": "00000000,00000033\n",
}


def test_an_x86_server_is_read_completely():
    details = read_details(captured(X86, {DMI: table(dimm("A1", bank="CHANNEL A"))}))
    assert (details.sockets, details.cores, details.threads_per_core) == (2, 4, 2)
    assert details.isa == "x86-64-v3"
    assert details.caches == (Cache(1, "data", 48 << 10, 2), Cache(3, "unified", 105 << 20, 4))
    assert details.distances == {0: (10, 21), 1: (21, 10)}
    assert details.node_cpus == {0: (0, 1, 4, 5), 1: (2, 3, 6, 7)}
    assert details.huge_pages == {2 << 20: (512, 500), 1 << 30: (0, 0)}
    assert (details.transparent_huge_pages, details.governor) == ("never", "powersave")
    assert details.command_line.startswith("BOOT_IMAGE=")
    assert (details.iommu, details.hypervisor, details.container) == ("translating", None, None)
    assert (details.allowed_cpus, details.allowed_nodes) == ((0, 1, 2, 3, 5), (1,))
    assert (details.memory_limit, details.memlock_limit) == (16 << 30, 8 << 20)
    assert (details.steal, details.cpu_ticks) == (0.04, 1000.0)
    assert details.memory_rate == 8 * 4800e6
    assert details.unknown == ()


GRACE = processors(sockets=1, cores=72, threads=1) | {
    "proc/cpuinfo": (
        "processor\t: 0\nBogoMIPS\t: 2000.00\nFeatures\t: fp asimd sve sve2 i8mm bf16\n"
        "CPU implementer\t: 0x41\nCPU architecture: 8\nCPU variant\t: 0x0\n"
        "CPU part\t: 0xd4f\nCPU revision\t: 0\n\n"
    ),
    "sys/class/dmi/id/sys_vendor": "NVIDIA\n",
    "sys/class/dmi/id/product_name": "GH200 P5042\n",
    f"{NODE}/node0/cpulist": "0-71\n",
    f"{NODE}/node0/distance": "10 80\n",
    f"{NODE}/node1/cpulist": "\n",
    f"{NODE}/node1/distance": "80 10\n",
    f"{HUGE}/hugepages-524288kB/nr_hugepages": "4\n",
    f"{HUGE}/hugepages-524288kB/free_hugepages": "4\n",
}


def test_an_arm_processor_is_known_by_its_parts_number():
    machine = captured(GRACE)
    details = read_details(machine)
    assert cpu_model(machine) == "Neoverse-V2"
    assert details.isa == "armv8-a+sve2"
    assert (details.sockets, details.cores, details.threads_per_core) == (1, 72, 1)
    # The GPU's memory is a node without CPUs.
    assert details.node_cpus[1] == ()
    assert details.distances[1] == (80, 10)
    assert details.huge_pages == {512 << 20: (4, 4)}
    assert details.hypervisor is None
    assert "hypervisor" not in subjects(details)


RISCV = {
    f"{CPU}/online": "0-1\n",
    f"{CPU}/cpu0/topology/physical_package_id": "-1\n",
    f"{CPU}/cpu0/topology/core_id": "0\n",
    f"{CPU}/cpu1/topology/physical_package_id": "-1\n",
    f"{CPU}/cpu1/topology/core_id": "1\n",
    "proc/cpuinfo": "processor\t: 0\nisa\t\t: rv64imafdcv_zba\nuarch\t\t: sifive,p550\n",
    "proc/device-tree/compatible": b"sifive,hifive-premier-p550\0eswin,eic7700\0",
    "proc/device-tree/model": b"HiFive Premier P550\0",
}


def test_a_riscv_board_has_its_isa_and_no_sockets():
    details = read_details(captured(RISCV))
    assert details.isa == "rv64imafdcv_zba"
    assert (details.sockets, details.cores, details.threads_per_core) == (None, 2, 1)
    assert "usual without ACPI" in reason(details, "sockets")
    assert "hypervisor" not in subjects(details)
    assert "board with a device tree" in reason(details, "DIMM rate")


def test_a_machine_with_nothing_says_what_it_could_not_read_and_why(tmp_path):
    details = read_details(tmp_path)
    assert details == read_details(Captured({}))
    values = {name: getattr(details, name) for name in details.__struct_fields__}
    assert {name for name, value in values.items() if value} == {"unknown"}
    assert subjects(details) == {
        "sockets", "cores", "instruction set", "caches", "NUMA distances", "huge pages",
        "transparent huge pages", "frequency governor", "kernel command line", "allowed CPUs",
        "allowed nodes", "CPU steal", "hypervisor", "memory limit", "locked memory limit", "IOMMU",
        "DIMM rate",
    }  # fmt: skip


@pytest.mark.parametrize("name", OF_HOSTS)
def test_simulated_machines_show_what_shapes_a_measurement(name):
    description = parse_description(load(name)[1])
    hardware = build(description)
    details = read_details(tree_of(SimBackend(description)))
    about = description.host
    cpus = sum(node.group.cpus for node in hardware.nodes)
    assert details.sockets == about.sockets
    assert details.cores == cpus // about.threads_per_core
    assert details.threads_per_core == about.threads_per_core
    assert details.node_cpus == {node.index: tuple(node.cpus) for node in hardware.nodes}
    assert set(details.distances) == set(details.node_cpus)
    assert details.hypervisor == about.hypervisor
    assert details.governor == (None if about.hypervisor else "performance")
    assert details.iommu == (None if about.hypervisor else "passthrough")
    assert details.huge_pages[2 << 20][0] > 0
    assert details.allowed_cpus == tuple(range(cpus))
    assert details.allowed_nodes == tuple(details.node_cpus)
    assert (details.steal, details.container, details.memlock_limit) == (0, None, None)
    assert subjects(details) <= {"frequency governor", "IOMMU", "DIMM rate"}


def test_this_machine_is_read():
    details = read_details()
    assert details.cores is None or details.cores >= 1
    assert details.isa
    assert details.steal is None or 0 <= details.steal <= 1


PLACES = sorted(
    {*X86, *GRACE, *RISCV, DMI, "proc/self/cpuset", "proc/1/cgroup", "proc/1/environ",
     f"{HUGE}/hugepages-99999999999999kB/nr_hugepages", f"{NODE}/node99999/distance",
     "sys/firmware/dmi/entries/17-0/raw", "sys/devices/system/edac/mc/mc0/dimm0/dimm_location"}
)  # fmt: skip
GARBLED = st.one_of(
    st.binary(max_size=60),
    st.text(alphabet="0123456789-,. :/\n\0kKMabcx[]", max_size=60).map(str.encode),
    st.sampled_from([b"9" * 5000, b"-1", b"0::/\0x", b"0::/" + b"a/" * 3000, b"isa:", b"cpu"]),
)


@settings(max_examples=200)
@given(st.dictionaries(st.sampled_from(PLACES), GARBLED, max_size=12))
def test_garbled_files_never_raise(files):
    details = read_details(captured(X86, files))
    assert details.steal is None or 0 <= details.steal <= 1
    assert details.memory_rate is None or details.memory_rate > 0


@settings(max_examples=25)
@given(st.dictionaries(st.sampled_from(PLACES), GARBLED, max_size=6))
def test_a_garbled_folder_reads_like_garbled_files_in_memory(tmp_path_factory, files):
    root = tmp_path_factory.mktemp("garbled")
    for path, content in files.items():
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(content)
    assert read_details(root) == read_details(captured(files))


ARCHIVES = ("32em64t-2n8c+dax+nvme+mic+dimms", "40intel64-2g2n4c+pcilocality")


@pytest.fixture(scope="module", params=ARCHIVES)
def real(request, unpacked):
    return unpacked(request.param)


def texts(root, pattern):
    return {path.parent.name: path.read_text().strip() for path in root.glob(pattern)}


def test_a_captured_host_is_exact_against_its_files(real):
    details = read_details(real)
    cpus = parse_cpu_list((real / CPU / "online").read_text())
    packages = [(real / f"{CPU}/cpu{cpu}/topology/physical_package_id").read_text() for cpu in cpus]
    threads = {(real / f"{CPU}/cpu{cpu}/topology/thread_siblings_list").read_text() for cpu in cpus}
    assert details.sockets == len(set(packages))
    assert details.cores == len(threads)
    assert details.threads_per_core == len(cpus) // len(threads)
    assert details.isa == "x86-64-v2"
    distances = texts(real, f"{NODE}/node*/distance")
    assert details.distances == {
        int(node.removeprefix("node")): tuple(map(int, row.split()))
        for node, row in distances.items()
    }
    assert details.node_cpus == {
        int(node.removeprefix("node")): parse_cpu_list(text)
        for node, text in texts(real, f"{NODE}/node*/cpulist").items()
    }
    sizes = texts(real, f"{CPU}/cpu0/cache/index*/size")
    assert [f"{cache.size >> 10}K" for cache in details.caches] == [
        sizes[index] for index in sorted(sizes)
    ]
    shared = texts(real, f"{CPU}/cpu0/cache/index*/shared_cpu_list")
    assert [cache.shared_by for cache in details.caches] == [
        len(parse_cpu_list(shared[index])) for index in sorted(shared)
    ]
    assert details.huge_pages == {2 << 20: (0, 0)}
    governors = {
        path.read_text().strip() for path in real.glob(f"{CPU}/cpu*/cpufreq/scaling_governor")
    }
    assert details.governor == (governors.pop() if governors else None)
    ticks = [int(word) for word in (real / "proc/stat").read_text().split("\n")[0].split()[1:9]]
    assert (details.cpu_ticks, details.steal) == (sum(ticks), ticks[7] / sum(ticks))
    assert (details.hypervisor, details.container) == (None, None)
    # Neither tree holds these.
    assert (details.command_line, details.iommu, details.memlock_limit) == (None, None, None)
    assert {"kernel command line", "IOMMU", "locked memory limit"} <= subjects(details)


def test_the_dimms_of_a_captured_host_give_its_rate(real):
    entries = sorted(real.glob("sys/firmware/dmi/entries/17-*/raw"))
    details = read_details(real)
    if not entries:
        assert details.memory_rate is None
        assert "DIMM rate" in subjects(details)
        return
    # Two sockets of four channels of DDR3-1600, one DIMM each: 12 of 24 slots' sizes are 0.
    sizes = [int.from_bytes(entry.read_bytes()[0x0C:0x0E], "little") for entry in entries]
    assert details.memory_rate == sum(size > 0 for size in sizes) * 8 * 1600e6 == 102.4e9


def test_the_jobs_cpuset_of_a_captured_host_counts(real):
    group = (real / "proc/self/cpuset").read_text().strip()
    folder = real / f"dev/cpuset{group}"
    if not (folder / "cpus").exists():
        assert read_details(real).allowed_cpus is None
        return
    details = read_details(real)
    assert details.allowed_cpus == parse_cpu_list((folder / "cpus").read_text())
    assert details.allowed_nodes == parse_cpu_list((folder / "mems").read_text())
