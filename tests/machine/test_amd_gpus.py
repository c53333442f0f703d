"""AMD's GPUs as sysfs shows them: faked trees, in the formats that the kernel documents."""

import sys
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amd_tree import ADDRESSES, DEVICES, gpu, metrics_1_3, node, tree
from fakes import device
from fuzz_kit import mutated
from linkgauge.backends.amd import AmdTelemetry
from linkgauge.machine.tree import Captured
from linkgauge.model.memory import Memory
from machine_kit import captured

HERE = [device(n, "opencl", pci=address) for n, address in enumerate(ADDRESSES)]


@pytest.fixture(autouse=True)
def _no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "amdsmi", None)


def all_described(*parts):
    return AmdTelemetry(HERE, captured(*parts)).inventory()


def described(*parts):
    return all_described(*parts)[0]


def sensed(files, number=0):
    (now,) = AmdTelemetry(HERE, captured(files)).sense([Memory("opencl", number)])
    return now


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
    now = sensed(tree(), 1)
    assert (now.memory, now.link_speed, now.link_width) == ("opencl:1", 32.0, 16)
    assert now.clock == 1.204e9
    assert (now.power, now.temperature, now.pcie_replays) == (158.0, 47.0, 3)


@pytest.mark.parametrize(
    ("version", "rate"), [(90402, 5.3248e12), (90010, 2.6624e12), (110003, None)]
)
def test_the_peak_of_the_memory_follows_clock_bus_and_generation(version, rate):
    """MI300X: 8192 bits at 1.3 GHz, of which HBM3 makes four transfers: 5.3 TB/s."""
    found = described(gpu(ADDRESSES[0]), node(1, 0x0500, version=version))
    assert found.memory_rate == (None if rate is None else pytest.approx(rate))


def test_the_link_is_that_of_the_slot_above_the_cards_own_switch():
    where, at = f"{DEVICES}/{ADDRESSES[0]}", f"sys/devices/pci0000:00/0000:04:00.0/{ADDRESSES[0]}"
    card = {path.replace(where, at): text for path, text in gpu(ADDRESSES[0]).items()}
    slot = gpu("0000:04:00.0", current_link_speed="2.5 GT/s PCIe", max_link_width="8")
    root = Captured(captured(card, slot).files, {where: f"/{at}"})
    (found,) = AmdTelemetry(HERE, root).inventory()
    assert (found.link.speed, found.link.max_width) == (2.5, 8)


@pytest.mark.parametrize("clock", [" 619Mhz", ""])
def test_where_no_register_tells_the_drivers_level_does(clock):
    levels = f"0: 2.5GT/s, x1 310Mhz\n1: 8.0GT/s, x8{clock} *\n"
    hidden = dict.fromkeys(("current_link_speed", "current_link_width"))
    now = sensed(gpu(ADDRESSES[0], **hidden, pp_dpm_pcie=levels))
    assert (now.link_speed, now.link_width) == (8.0, 8)


def test_the_drivers_table_has_what_files_lack():
    lacking = dict.fromkeys(("current_link_speed", "current_link_width", "pp_dpm_sclk",
                             "hwmon/hwmon7/power1_average"))  # fmt: skip
    throttled = 1 << 1 | 1 << 36  # PPT1, hot spot
    files = gpu(ADDRESSES[0], **lacking, gpu_metrics=metrics_1_3(throttled=throttled))
    now = sensed(files)
    assert (now.link_speed, now.link_width, now.clock, now.power) == (16.0, 16, 1.7e9, 300.0)
    assert now.throttled == ("power cap", "hardware thermal slowdown")


@given(st.binary(max_size=300))
def test_any_table_is_read_without_an_error(table):
    for header in (b"", b"\x78\x00\x01\x03", b"\xd4\x00\x01\x04"):
        files = gpu(ADDRESSES[0], gpu_metrics=header + table)
        assert sensed(files).memory == "opencl:0"


@given(st.sampled_from(sorted(tree())), st.integers(0, 1 << 32))
def test_whatever_a_file_holds_both_gpus_are_described(path, seed):
    content = captured(tree()).files[path]
    all_described(tree(), {path: mutated(content, Random(seed))})


@pytest.mark.parametrize(
    ("version", "isa"),
    [(90402, "gfx942"), (90500, "gfx950"), (90010, "gfx90a"), (110001, "gfx1101")],
)
def test_the_instruction_set_is_named_as_compilers_do(version, isa):
    assert described(gpu(ADDRESSES[0]), node(1, 0x0500, version=version)).isa == isa


def test_other_vendors_are_told_apart():
    files = {**gpu(ADDRESSES[0]), **gpu(ADDRESSES[1], vendor="0x10de\n")}
    assert [found.pci for found in all_described(files)] == [ADDRESSES[0]]
