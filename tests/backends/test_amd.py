"""AMD's GPUs beside what a backend measures on them: which, and what amdsmi adds."""

import sys
from types import SimpleNamespace

import pytest

from amd_tree import ADDRESSES, gpu, tree
from fakes import device
from linkgauge.backends.amd import AmdTelemetry
from linkgauge.model.hardware.inventory import PciLink
from machine_kit import captured

HERE = [
    device(0, "opencl", pci=ADDRESSES[0]),
    device(1, "opencl", pci=ADDRESSES[1]),
    device(2, "opencl", is_cpu=True),
]


@pytest.fixture(autouse=True)
def _no_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "amdsmi", None)


class TestAmdSmi:
    @pytest.fixture
    def library(self, monkeypatch):
        """Its Python package, of one GPU."""
        found = SimpleNamespace(
            amdsmi_init=lambda: None,
            amdsmi_get_processor_handles=lambda: ["handle"],
            amdsmi_get_gpu_device_bdf=lambda handle: ADDRESSES[0].upper(),
            AmdSmiClkType=SimpleNamespace(GFX=0),
            amdsmi_get_clock_info=lambda handle, kind: {"clk": 131, "max_clk": 2100},
            amdsmi_get_power_info=lambda handle: {
                "current_socket_power": "N/A", "average_socket_power": 90, "power_limit": 750,
            },
            amdsmi_get_pcie_info=lambda handle: {
                "pcie_metric": {"pcie_width": 16, "pcie_speed": 32000, "pcie_replay_count": 0},
                "pcie_static": {"max_pcie_width": 16, "max_pcie_speed": 32000},
            },
            amdsmi_get_gpu_total_ecc_count=lambda handle: {"uncorrectable_count": 1},
        )  # fmt: skip
        monkeypatch.setitem(sys.modules, "amdsmi", found)
        return found

    def one(self, *parts):
        found, *_ = AmdTelemetry(HERE[:1], captured(*parts)).inventory()
        return found

    def test_fills_what_sysfs_does_not_show(self, library):
        hidden = dict.fromkeys(
            ("current_link_speed", "max_link_speed", "pp_dpm_sclk", "pcie_replay_count",
             "ras/umc_err_count", "gpu_metrics", "hwmon/hwmon7/power1_average",
             "hwmon/hwmon7/power1_cap")
        )  # fmt: skip
        found = self.one(gpu(ADDRESSES[0], **hidden))
        assert found.link == PciLink(32.0, 16, 32.0, 16)
        assert (found.clock, found.max_clock) == (131e6, 2.1e9)
        assert (found.power, found.power_limit) == (90.0, 750.0)
        assert (found.pcie_replays, found.ecc_errors) == (0, 1)

    def test_that_fails_costs_nothing(self, library):
        def broken(*_):
            raise RuntimeError("AMDSMI_STATUS_NOT_SUPPORTED")

        library.amdsmi_get_clock_info = library.amdsmi_get_pcie_info = broken
        assert self.one(tree()).clock == 1.204e9
        library.amdsmi_init = broken
        assert self.one(tree()).clock == 1.204e9
