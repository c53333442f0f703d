"""CUDA's and NVML's own statuses become kinds of outcomes, which the doctor goes by."""

import sys
from types import SimpleNamespace

import pytest

from cuda_kit import Status, backend_of, gpu
from fake_nvml import FakeNvml
from kinds_kit import CHECKS, found_by_the_doctor, outcome
from linkgauge.backends.cuda.driver import Driver
from linkgauge.model.errors import AllocationError, BackendError, DeviceLost, TookTooLong

GPU_IS_LOST = 15


@pytest.fixture(autouse=True)
def nvml(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    library = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def card():
    """Bindings of one device that is described in full."""
    uuid = SimpleNamespace(bytes=bytes(16))
    return gpu(cuDeviceGetUuid_v2=[uuid], cuDeviceTotalMem=[1 << 37], cuDriverGetVersion=[13010])


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (Status.CUDA_ERROR_OUT_OF_MEMORY, AllocationError),
        (Status.CUDA_ERROR_DEVICE_UNAVAILABLE, DeviceLost),
        (Status.CUDA_ERROR_NO_DEVICE, DeviceLost), (Status.CUDA_ERROR_LAUNCH_TIMEOUT, TookTooLong),
        (Status.CUDA_ERROR_TIMEOUT, TookTooLong),
        (Status.CUDA_ERROR_ECC_UNCORRECTABLE, BackendError),
        (Status.CUDA_ERROR_ILLEGAL_ADDRESS, BackendError),
        (Status.CUDA_ERROR_LAUNCH_FAILED, BackendError), (Status.CUDA_ERROR_UNKNOWN, BackendError),
    ],
)  # fmt: skip
def test_a_status_is_followed_to_the_doctor(status, kind):
    bindings = card()
    bindings.failing["cuMemAlloc"] = status
    with pytest.raises(BackendError) as caught:
        Driver(bindings).call("cuMemAlloc", 1)
    assert type(caught.value) is kind
    cell = outcome(backend_of(bindings), "cuda:0 -> cuda:0 by ce")
    status_of_cell = "timeout" if kind is TookTooLong else "error"
    assert (cell.status, cell.kind) == (status_of_cell, kind.kind)
    assert f"cuMemAlloc: {status.name}" in cell.reason
    assert found_by_the_doctor(cell) == CHECKS[kind.kind]


def test_a_device_that_another_process_has_for_itself_is_not_lost():
    bindings = card()
    bindings.failing["cuDevicePrimaryCtxRetain"] = Status.CUDA_ERROR_DEVICE_UNAVAILABLE
    cell = outcome(backend_of(bindings), "cuda:0 -> cuda:0 by ce")
    assert cell.kind == "call"
    assert cell.reason.endswith("sudo nvidia-smi -c DEFAULT lets all processes in)")
    assert "\n" not in cell.reason


@pytest.mark.parametrize(
    "status",
    [
        Status.CUDA_ERROR_UNKNOWN, Status.CUDA_ERROR_LAUNCH_FAILED,
        Status.CUDA_ERROR_ILLEGAL_ADDRESS, Status.CUDA_ERROR_ECC_UNCORRECTABLE,
    ],
)  # fmt: skip
@pytest.mark.parametrize("where", ["nvmlDeviceGetTemperature", "nvmlDeviceGetHandleByPciBusId"])
def test_a_device_that_nvml_calls_lost_is_lost_whatever_cuda_returns(nvml, status, where):
    bindings = card()
    backend = backend_of(bindings)
    bindings.failing["cuMemAlloc"] = status
    nvml.failing[where] = GPU_IS_LOST
    cell = outcome(backend, "cuda:0 -> cuda:0 by ce")
    assert (cell.status, cell.kind) == ("error", "lost")
    assert "NVML: cuda:0 is lost" in cell.reason
    assert found_by_the_doctor(cell) == "lost"


def test_nvml_is_not_asked_for_ever_where_cuda_fails_at_its_question():
    bindings = card()
    backend = backend_of(bindings)
    for name in ("cuMemAlloc", "cuDeviceGetPCIBusId"):
        bindings.failing[name] = Status.CUDA_ERROR_UNKNOWN
    assert outcome(backend, "cuda:0 -> cuda:0 by ce").kind == "call"
