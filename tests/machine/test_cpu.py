"""Processors are counted and named on every architecture."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import astuple

from linkgauge.machine.host import read_host
from linkgauge.machine.tree import parse_cpu_mask
from machine_kit import CPU, X86_FLAGS, captured, host_of


def test_cpus_that_differ_name_every_governor():
    files = {f"{CPU}/online": "0-2\n"} | {
        f"{CPU}/cpu{cpu}/cpufreq/scaling_governor": f"{name}\n"
        for cpu, name in enumerate(("powersave", "performance", "powersave"))
    }
    assert host_of(captured(files)).governor == "performance, powersave"


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
    details = host_of(captured(files))
    assert (details.sockets, details.cores, details.threads_per_core) == (2, 2, 2)


def test_a_cache_is_not_shared_by_cpus_that_are_offline():
    cache = {"level": "3\n", "size": "1M\n", "type": "Unified\n", "shared_cpu_list": "0-7\n"}
    files = {f"{CPU}/online": "0-4\n"}
    files |= {f"{CPU}/cpu{c}/cache/index3/{n}": t for c in range(8) for n, t in cache.items()}
    (found,) = host_of(captured(files)).caches
    assert astuple(found) == (3, "unified", 1 << 20, 5)


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
    assert host_of(captured({"proc/cpuinfo": cpuinfo})).isa == expected


@given(st.sets(st.integers(0, 200)))
def test_masks_are_read_exactly(cpus):
    mask = sum(1 << cpu for cpu in cpus)
    groups = [f"{mask >> shift & 0xFFFFFFFF:08x}" for shift in range(192, -1, -32)]
    assert set(parse_cpu_mask(",".join(groups))) == cpus


def test_cpus_that_are_offline_or_not_described_do_not_count():
    files = {f"{CPU}/online": "0-1,3-600\n"} | {
        f"{CPU}/cpu{cpu}/topology/{name}": f"{cpu}\n"
        for cpu in range(4)
        for name in ("physical_package_id", "core_id")
    }
    details = host_of(captured(files))
    assert (details.sockets, details.cores, details.threads_per_core) == (3, 3, 1)


def test_old_kernels_say_of_each_cpu_whether_it_is_online():
    files = {f"{CPU}/cpu{cpu}/online": f"{int(cpu != 2)}\n" for cpu in range(1, 4)}
    (node,) = read_host(captured(files, {f"{CPU}/cpu0/topology/core_id": "0\n"})).nodes
    assert node.cpus == (0, 1, 3)


def test_the_versions_of_the_bios_and_of_the_microcode_are_read():
    files = {
        "sys/class/dmi/id/bios_version": "2.5.4\n",
        "sys/class/dmi/id/bios_date": "06/01/2026\n",
        "proc/cpuinfo": "microcode\t: 0x2b000571\n\nmicrocode\t: 0x2b000571\nmicrocode : 0x2b\n",
    }
    details = host_of(captured(files))
    assert details.firmware == "2.5.4 of 06/01/2026"
    assert details.microcode == "0x2b000571, 0x2b"
    assert host_of(captured({})).firmware is None
    assert host_of(captured({})).microcode is None


@pytest.mark.parametrize(
    ("cpuinfo", "code"),
    [
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 207\nmodel name\t: Xeon 1\n",
         "GenuineIntel 6 207"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "0x41 0xd0c"),
        ("vendor_id\t: GenuineIntel\ncpu family\t: 6\n", None),
        ("uarch : sifive,u74\n", None),
    ],
)  # fmt: skip
def test_a_family_is_known_by_vendor_and_numbers(cpuinfo, code):
    assert host_of(captured({"proc/cpuinfo": cpuinfo})).cpu_code == code
