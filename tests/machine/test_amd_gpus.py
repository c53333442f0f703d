"""AMD's GPUs as sysfs shows them: faked trees, in the formats that the kernel documents."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amd_tree import ADDRESSES, gpu, metrics_1_3, node, tree
from fuzz_kit import mutated
from linkgauge.machine.amd_gpus import describe, is_amd, sense, with_gaps
from linkgauge.model.inventory import Accelerator, PciLink
from machine_kit import captured

PEERS = dict(zip(ADDRESSES, ("torch:cuda:0", "torch:cuda:1"), strict=True))


def described(*parts, address=ADDRESSES[0]):
    known = Accelerator(memory="torch:cuda:0", model="AMD Instinct MI300X", pci=address)
    return with_gaps(describe(captured(*parts), known, PEERS))


def test_everything_that_the_driver_shows_is_read():
    found = described(tree())
    assert found.link == PciLink(32.0, 16, 32.0, 16)
    assert (found.clock, found.max_clock) == (1.204e9, 2.1e9)
    assert (found.memory_clock, found.memory_bus) == (1.3e9, 8192)
    assert (found.power, found.power_limit, found.temperature) == (158.0, 750.0, 47.0)
    assert (found.ecc, found.ecc_errors, found.pcie_replays) == (True, 2, 3)
    assert (found.driver, found.firmware) == ("6.12.12", "113-M3000100-102")
    assert (found.board, found.uuid) == ("102-G30211-0C", "a1b2c3d4e5f60718")
    assert found.isa == "gfx942"
    assert found.unknown == ()


def test_xgmi_links_name_the_memory_that_they_lead_to():
    (link,) = described(tree()).links
    assert (link.kind, link.remote, link.rate, link.active) == ("XGMI", "torch:cuda:1", 64e9, True)
    (other,) = described(tree(), address=ADDRESSES[1]).links
    assert other.remote == "torch:cuda:0"


def test_a_gpu_of_a_virtual_machine_shows_little_and_says_so():
    hidden = dict.fromkeys(
        ("pp_dpm_sclk", "pp_dpm_mclk", "pcie_replay_count", "ras/umc_err_count", "gpu_metrics",
         "hwmon/hwmon7/power1_average", "hwmon/hwmon7/temp1_input", "hwmon/hwmon7/temp2_input")
    )  # fmt: skip
    found = described(gpu(ADDRESSES[0], current_link_speed="Unknown\n", **hidden))
    assert (found.clock, found.power, found.ecc, found.links) == (None, None, None, ())
    said, no_driver = found.unknown
    assert said.startswith("link, clock, power, temperature, PCIe replays, ECC errors: amdgpu does")
    assert "load amdgpu with KFD" in no_driver


def test_the_state_while_it_is_measured():
    now = sense(captured(tree()), "opencl:3", ADDRESSES[1])
    assert (now.memory, now.link_speed, now.link_width, now.clock) == (
        "opencl:3",
        32.0,
        16,
        1.204e9,
    )
    assert (now.power, now.temperature, now.pcie_replays) == (158.0, 47.0, 3)


def test_the_drivers_table_has_what_files_lack():
    lacking = dict.fromkeys(("current_link_speed", "current_link_width", "pp_dpm_sclk",
                             "hwmon/hwmon7/power1_average"))  # fmt: skip
    throttled = 1 << 1 | 1 << 36  # PPT1, hot spot
    files = gpu(ADDRESSES[0], **lacking, gpu_metrics=metrics_1_3(throttled=throttled))
    now = sense(captured(files), "opencl:0", ADDRESSES[0])
    assert (now.link_speed, now.link_width, now.clock, now.power) == (16.0, 16, 1.7e9, 300.0)
    assert now.throttled == ("power cap", "hardware thermal slowdown")


@given(st.binary(max_size=300))
def test_any_table_is_read_without_an_error(table):
    for header in (b"", b"\x78\x00\x01\x03", b"\xd4\x00\x01\x04"):
        files = gpu(ADDRESSES[0], gpu_metrics=header + table)
        assert sense(captured(files), "opencl:0", ADDRESSES[0]).memory == "opencl:0"


@given(st.sampled_from(sorted(tree())), st.integers(0, 1 << 32))
def test_whatever_a_file_holds_both_gpus_are_described(path, seed):
    content = captured(tree()).files[path]
    for address in ADDRESSES:
        described(tree(), {path: mutated(content, Random(seed))}, address=address)


@pytest.mark.parametrize(
    ("version", "isa"),
    [(90402, "gfx942"), (90500, "gfx950"), (90010, "gfx90a"), (110001, "gfx1101")],
)
def test_the_instruction_set_is_named_as_compilers_do(version, isa):
    assert described(gpu(ADDRESSES[0]), node(1, 0x0500, version=version)).isa == isa


def test_other_vendors_are_told_apart():
    root = captured(gpu(ADDRESSES[0]), gpu(ADDRESSES[1], vendor="0x10de\n"))
    assert [is_amd(root, one) for one in (*ADDRESSES, "0000:ff:00.0")] == [True, False, False]
