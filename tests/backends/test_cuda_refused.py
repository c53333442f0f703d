"""Why CUDA cannot be used, and what to type, in one line: old and new drivers, MIG mode."""

import sys
from enum import IntEnum
from types import ModuleType

import pytest
from msgspec.structs import replace

from fake_nvml import FakeNvml
from fakes import machine
from linkgauge.backends.cuda import driver
from linkgauge.judge.doctor.backends import check_driver
from linkgauge.judge.findings import Evidence
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.inventory import Accelerator, Inventory
from linkgauge.report.blocks import text_of
from linkgauge.report.sections.machine import machine_blocks


class Status(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_STUB_LIBRARY = 34
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46
    CUDA_ERROR_NO_DEVICE = 100
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222
    CUDA_ERROR_SYSTEM_NOT_READY = 802
    CUDA_ERROR_SYSTEM_DRIVER_MISMATCH = 803
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804


@pytest.fixture
def cuda(monkeypatch):
    """Opens a driver whose calls answer this, on a machine whose NVML has these answers."""

    def opened(init=Status.CUDA_SUCCESS, version=13000, count=1, **nvml):
        bindings = ModuleType("cuda.bindings.driver")
        bindings.CUresult = Status
        bindings.cuInit = lambda flags: (init,)
        bindings.cuDriverGetVersion = lambda: (Status.CUDA_SUCCESS, version)
        bindings.cuDeviceGetCount = lambda: (Status.CUDA_SUCCESS, count)
        monkeypatch.setitem(sys.modules, "pynvml", FakeNvml(**nvml))
        monkeypatch.setattr(driver, "find_driver", lambda: None)
        monkeypatch.setattr(driver, "import_module", lambda name: bindings)
        return driver.open_driver()

    return opened


@pytest.mark.parametrize(
    ("answers", "says", "finding"),
    [
        ({"init": Status.CUDA_ERROR_SYSTEM_DRIVER_MISMATCH}, "reboot, or load the", True),
        ({"init": Status.CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE}, "update the driver, or", True),
        ({"init": Status.CUDA_ERROR_STUB_LIBRARY}, "take it out of LD_LIBRARY_PATH", False),
        ({"init": Status.CUDA_ERROR_SYSTEM_NOT_READY}, "start nvidia-fabricmanager", False),
        ({"version": 11080}, "of CUDA 11.8, older than CUDA 12, the oldest that", True),
        ({"version": 9020}, "of CUDA 9.2, older than CUDA 12, the oldest that", True),
        ({"count": 0}, "visible: CUDA_VISIBLE_DEVICES may hide them", False),
        ({"init": Status.CUDA_ERROR_NO_DEVICE}, "CUDA_VISIBLE_DEVICES may hide them", False),
        (
            {"init": Status.CUDA_ERROR_NO_DEVICE, "nvmlDeviceGetMigMode": [1, 1]},
            "in MIG mode without instances: 0000:1b:00.0, 0000:1c:00.0: sudo nvidia-smi -mig 0",
            False,
        ),
    ],
)  # fmt: skip
def test_why_no_device_can_be_used_is_one_line_with_the_remedy(cuda, answers, says, finding):
    with pytest.raises(Unsupported) as caught:
        cuda(**answers)
    why = str(caught.value)
    assert says in why
    assert "\n" not in why
    here = machine([], unavailable={"cuda": why})
    assert any(f"cuda: none: {why}" in line for line in shown(here))
    assert [one.check for one in check_driver(Evidence(here))] == ["driver"] * finding


def test_a_driver_that_lacks_a_function_is_called_old(cuda):
    opened = cuda()

    def lacking():
        raise RuntimeError('Function "cuNew" not found')

    opened.enums.cuNew = lacking
    with pytest.raises(BackendError, match="older than cuda-bindings: update the driver, or"):
        opened.call("cuNew")
    told = opened.error("cuModuleLoadData", Status.CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    assert "the driver is older than NVRTC: update the driver, or" in str(told)


def shown(found):
    return [
        text_of(line) for block in machine_blocks(found) for line in getattr(block, "lines", ())
    ]


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"mig": True}, "in MIG mode (sudo nvidia-smi -mig 0 ends it)"),
        (
            {"compute_mode": "exclusive process"},
            "compute mode exclusive process (sudo nvidia-smi -c DEFAULT ends it)",
        ),
        ({"mig": False, "compute_mode": "default"}, ""),
    ],
)
def test_devices_shows_what_mode_a_card_is_in(state, says):
    card = Accelerator(memory="cuda:0", model="NVIDIA H200", driver="580", **state)
    found = replace(machine(), inventory=Inventory(accelerators=(card,)))
    (row,) = [row for row in str([*machine_blocks(found)]).split("Entry(") if "580" in row]
    assert says in row
    assert ("ends it" in row) is bool(says)
