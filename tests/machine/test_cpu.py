"""Processors are counted and named on every architecture."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.machine.cpu import cpu_vendor, isa, one_a_core, online_cpus
from linkgauge.machine.details import read_details
from linkgauge.machine.tree import parse_cpu_mask
from linkgauge.model.host_details import Cache
from machine_kit import CPU, X86_FLAGS, captured, processors


@pytest.mark.parametrize(
    ("usable", "cores"),
    [
        (range(8), (0, 1, 2, 3)),
        ((7, 5, 1), (1, 7)),  # 1 and 5 are threads of one core
        ((), ()),
    ],
)
def test_one_cpu_stands_for_each_core(usable, cores):
    assert one_a_core(captured(processors(sockets=2, cores=2, threads=2)), usable) == cores


def test_where_nothing_says_what_cpus_share_each_is_a_core():
    assert one_a_core(captured({f"{CPU}/online": "0-2\n"}), (2, 0)) == (0, 2)


def test_cpus_that_differ_name_every_governor():
    files = {f"{CPU}/online": "0-2\n"} | {
        f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": f"{name}\n"
        for cpu, name in enumerate(("powersave", "performance", "powersave"))
    }
    assert read_details(captured(files)).governor == "performance, powersave"


def test_cores_and_sockets_follow_the_kernels_own_masks():
    """Newer kernels' masks, CPUs whose numbers repeat."""
    files = {f"{CPU}/online": "0-3\n"}
    for cpu in range(4):
        files |= {
            f"{CPU}/cpu{cpu}/topology/{name}": text
            for name, text in {
                "core_id": "0\n", "core_cpus": f"{3 << cpu // 2 * 2:08x}\n",
                "physical_package_id": "512\n", "core_siblings": f"{3 << cpu // 2 * 2:08x}\n",
            }.items()
        }  # fmt: skip
    details = read_details(captured(files))
    assert (details.sockets, details.cores, details.threads_per_core) == (2, 2, 2)


def test_a_cache_is_not_shared_by_cpus_that_are_offline():
    cache = {"level": "3\n", "size": "1M\n", "type": "Unified\n", "shared_cpu_list": "0-7\n"}
    files = {f"{CPU}/online": "0-4\n"}
    files |= {f"{CPU}/cpu{c}/cache/index3/{n}": t for c in range(8) for n, t in cache.items()}
    assert read_details(captured(files)).caches == (Cache(3, "unified", 1 << 20, 5),)


def test_the_driver_that_sets_the_frequency_is_named():
    files = {f"{CPU}/online": "0-1\n", f"{CPU}/cpu0/cpufreq/scaling_driver": "intel_pstate\n"}
    files |= {f"{CPU}/cpu1/topology/core_id": "1\n"}
    assert read_details(captured(files)).frequency_driver == "intel_pstate"
    assert read_details(captured({})).frequency_driver is None


def test_x86_without_sysfs_counts_in_cpuinfo():
    cpuinfo = "\n".join(
        f"processor\t: {cpu}\nphysical id\t: {cpu // 4}\ncore id\t\t: {cpu // 2 % 2}\n"
        for cpu in range(8)
    )
    details = read_details(captured({"proc/cpuinfo": cpuinfo}))
    assert (details.sockets, details.cores, details.threads_per_core) == (2, 4, 2)


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("flags\t\t: lm sse2\n", "x86-64"),
        # A level holds only with the ones below it.
        ("flags\t\t: lm avx512bw avx512cd avx512dq avx512f avx512vl\n", "x86-64"),
        (f"flags\t\t: {X86_FLAGS} avx512bw avx512cd avx512dq avx512f avx512vl\n", "x86-64-v4"),
        ("Features\t: fp asimd\nCPU architecture: 8\n", "armv8-a"),
        ("Features\t: fp sve\nCPU architecture: 8\n", "armv8-a+sve"),
        ("isa\t\t: rv64imafdcv\n\nisa\t\t: rv64imac\n", "rv64imafdcv + rv64imac"),
        ("isa\t\t: rv64imac\n\nisa\t\t: rv64imac\n", "rv64imac"),
        ("flags\t\t: pae\n", None),
        ("", None),
    ],
)
def test_the_instruction_set_has_its_level(cpuinfo, expected):
    assert isa(cpuinfo) == expected


@given(st.sets(st.integers(0, 200)))
def test_masks_are_read_exactly(cpus):
    mask = sum(1 << cpu for cpu in cpus)
    groups = [f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in range(192, -1, -32)]
    assert set(parse_cpu_mask(",".join(groups))) == cpus


@given(st.text(alphabet="0123456789abcdef,x \n", max_size=40))
def test_garbled_masks_never_raise(text):
    assert list(parse_cpu_mask(text)) == sorted(set(parse_cpu_mask(text)))


def test_cpus_that_are_offline_or_not_described_do_not_count():
    files = {f"{CPU}/online": "0-1,3-60000\n"} | {
        f"{CPU}/cpu{cpu}/topology/{name}": f"{cpu}\n"
        for cpu in range(4)
        for name in ("physical_package_id", "core_id")
    }
    details = read_details(captured(files))
    assert (details.sockets, details.cores, details.threads_per_core) == (3, 3, 1)


@pytest.mark.parametrize(
    ("cpuinfo", "expected"),
    [
        ("processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\n", "AuthenticAMD"),
        ("vendor_id\t: \nmodel\t: 1\n", None),
        ("processor\t: 0\nCPU implementer\t: 0x41\n", None),
        ("", None),
    ],
)
def test_x86_names_its_maker(cpuinfo, expected):
    assert cpu_vendor(cpuinfo) == expected


def test_old_kernels_say_of_each_cpu_whether_it_is_online():
    files = {f"{CPU}/cpu{cpu}/online": f"{int(cpu != 2)}\n" for cpu in range(1, 4)}
    assert online_cpus(captured(files, {f"{CPU}/cpu0/topology/core_id": "0\n"})) == (0, 1, 3)


def test_the_versions_of_the_bios_and_of_the_microcode_are_read():
    files = {
        "sys/class/dmi/id/bios_version": "2.5.4\n",
        "sys/class/dmi/id/bios_date": "06/01/2026\n",
        "proc/cpuinfo": "microcode\t: 0x2b000571\n\nmicrocode\t: 0x2b000571\nmicrocode : 0x2b\n",
    }
    details = read_details(captured(files))
    assert details.firmware == "2.5.4 of 06/01/2026"
    assert details.microcode == "0x2b000571, 0x2b"
    assert read_details(captured({})).firmware is None
    assert read_details(captured({})).microcode is None
