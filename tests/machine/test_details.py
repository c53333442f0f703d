"""What the kernel says of a host is read on every architecture, and from any tree."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import astuple

from linkgauge.machine.host import cpu_model
from linkgauge.machine.tree import Captured
from machine_kit import (
    CPU,
    DMI,
    GROUPS,
    HUGE,
    LIMITS,
    NODE,
    X86_FLAGS,
    captured,
    dimm,
    host_of,
    processors,
    reason,
    subjects,
    table,
)  # fmt: skip

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
    details = host_of(captured(X86, {DMI: table(dimm("A1", bank="CHANNEL A"))}))
    assert (details.sockets, details.cores, details.threads_per_core) == (2, 4, 2)
    assert details.isa == "x86-64-v3"
    assert [astuple(cache) for cache in details.caches] == [
        (1, "data", 48 << 10, 2), (3, "unified", 105 << 20, 4)
    ]  # fmt: skip
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
    assert not subjects(details) & {"sockets", "caches", "IOMMU", "DIMM rate", "CPU steal"}


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
    details = host_of(machine)
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
    details = host_of(captured(RISCV))
    assert details.isa == "rv64imafdcv_zba"
    assert (details.sockets, details.cores, details.threads_per_core) == (None, 2, 1)
    assert "usual without ACPI" in reason(details, "sockets")
    assert "board with a device tree" in reason(details, "DIMM rate")


def test_a_machine_with_nothing_says_what_it_could_not_read_and_why(tmp_path):
    details = host_of(tmp_path)
    assert details == host_of(Captured({}))
    values = {name: getattr(details, name) for name in details.__struct_fields__}
    assert {name for name, value in values.items() if value} == {"unknown"}
    assert subjects(details) == {
        "sockets", "cores", "instruction set", "caches", "NUMA distances", "huge pages",
        "transparent huge pages", "frequency governor", "kernel command line", "allowed CPUs",
        "allowed nodes", "CPU steal", "hypervisor", "memory limit", "locked memory limit", "IOMMU",
        "DIMM rate", "kernel", "system", "processor", "architecture", "memory",
    }  # fmt: skip


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
    details = host_of(captured(X86, files))
    assert details.steal is None or 0 <= details.steal <= 1
    assert details.memory_rate is None or details.memory_rate > 0
