"""What NVML tells of a GPU, and that it may fail in any of its calls."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fake_nvml import (
    FIELDS,
    GPU,
    H200,
    NOT_FOUND,
    NOT_SUPPORTED,
    Device,
    FakeNvml,
    NVMLError,
    address,
)  # fmt: skip
from linkgauge.backends.cuda.nvml.library import NvmlTelemetry
from linkgauge.model.errors import BackendError
from linkgauge.model.hardware.inventory import PciLink, Telemetry


@pytest.fixture
def nvml(monkeypatch):
    library = FakeNvml()
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def only(*devices):
    (found,) = NvmlTelemetry(devices or [Device()]).inventory()
    return found


class TestInventory:
    def test_is_complete_on_a_healthy_gpu(self, nvml):
        found = only()
        assert found.unknown == ()
        assert (found.memory, found.model) == ("cuda:0", "NVIDIA H200")
        assert (found.pci, found.uuid) == ("0000:1b:00.0", "GPU-0")
        assert (found.driver, found.library) == ("580.95.05", "13.580.95.05")
        assert found.firmware == "96.00.A5.00.01"
        assert found.link == PciLink(32.0, 16, 32.0, 16)
        assert (found.clock, found.max_clock, found.locked_clock) == (1980e6, 1980e6, None)
        assert (found.temperature, found.power, found.power_limit) == (41, 118.25, 700)
        assert (found.ecc, found.ecc_errors, found.remap_pending) == (True, 0, True)
        assert (found.mig, found.persistence) == (False, True)
        assert (found.compute_mode, found.fabric_state) == ("exclusive process", "completed")
        assert (found.bar1_bytes, found.pcie_replays) == (1 << 38, 7)
        assert found.processes == ()
        assert (found.memory_clock, found.memory_bus) == (3201e6, 6144)
        assert found.memory_rate == pytest.approx(4.917e12, rel=1e-4)

    def test_says_where_the_binding_is_too_old(self, nvml):
        del nvml.answers["nvmlDeviceGetRemappedRows"]
        nvml.c_nvmlGpuFabricInfoV_t = None
        found = only()
        assert (found.remap_pending, found.fabric_state) == (None, None)
        assert all("not in this nvidia-ml-py: install a newer one" in why for why in found.unknown)
        assert len(found.unknown) == 2

    def test_survives_exceptions_that_are_not_nvmls_own(self, nvml):
        def mismatch(handle):
            raise ValueError("binding and library differ")

        nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = mismatch
        nvml.answers["nvmlDeviceGetGraphicsRunningProcesses"] = mismatch
        found = only()
        assert found.processes is None
        assert "binding and library differ" in found.unknown[0]

    @given(
        st.dictionaries(
            st.sampled_from(sorted({*H200, "nvmlDeviceGetFieldValues"} - {"nvmlInit"})),
            st.integers(1, 30),
        )
    )
    def test_never_raises_whatever_fails(self, failing):
        with pytest.MonkeyPatch.context() as patch:
            library = FakeNvml()
            library.failing = {**failing}
            library.failing.pop("nvmlShutdown", None)
            patch.setitem(sys.modules, "pynvml", library)
            sensors = NvmlTelemetry([Device(0), Device(1)])
            first, second = sensors.inventory()
            sensors.sense([0, 1])
            sensors.close()
        asked = {*failing} & {*library.calls, "nvmlDeviceGetFieldValues"} - {"nvmlShutdown"}
        assert bool(first.unknown) == bool(second.unknown) == bool(asked)

    @pytest.mark.parametrize(
        ("state", "status", "word"),
        [
            (0, 0, "not supported"),
            (2, 0, "in progress"),
            (3, 3, "failed: Not Supported"),
            (9, 0, "9"),
        ],
    )
    def test_tells_how_far_the_fabric_is(self, nvml, state, status, word):
        nvml.fabric = (state, status)
        assert only().fabric_state == word

    @pytest.mark.parametrize(
        ("reasons", "words"),
        [
            (0x0, ()),
            (0x1, ()),
            (0x5, ("power cap",)),
            (0x4A, ("clocks set by the user", "hardware slowdown", "hardware thermal slowdown")),
            (1 << 40, ()),
        ],
    )
    def test_words_what_throttles_and_leaves_out_that_it_is_idle(self, nvml, reasons, words):
        nvml.answers["nvmlDeviceGetCurrentClocksThrottleReasons"] = reasons
        assert only().throttled == words

    def test_of_a_mig_instance_is_its_gpus(self, nvml):
        nvml.answers["nvmlDeviceGetHandleByUUID"] = lambda uuid: f"instance {uuid}"
        nvml.answers["nvmlDeviceGetDeviceHandleFromMigDeviceHandle"] = lambda instance: instance
        nvml.answers["nvmlDeviceGetMigMode"] = [1, 1]
        nvml.answers["nvmlDeviceGetVbiosVersion"] = lambda handle: f"of {handle}"
        found = only(Device(instance=True))
        assert (found.firmware, found.mig) == ("of instance MIG-0", True)


class TestLinks:
    def test_are_counted_with_rate_version_and_errors(self, nvml):
        nvml.fields["NVLINK_ERROR_DL_CRC"] = lambda link: 3 if link == 5 else 0
        nvml.fields["NVLINK_ERROR_DL_REPLAY"] = lambda link: 4 if link == 5 else 0
        links = only().links
        assert [link.index for link in links] == list(range(18))
        assert {(one.kind, one.version, one.active, one.rate) for one in links} == {
            ("nvlink", "4.0", True, 26.562e9)
        }
        assert [one.errors for one in links] == [7 if n == 5 else 0 for n in range(18)]
        assert links[0].remote == "nvswitch 0000:07:00.0"

    def test_lead_to_peers_by_their_notation(self, nvml):
        nvml.answers["nvmlDeviceGetNvLinkRemoteDeviceType"] = GPU
        nvml.answers["nvmlDeviceGetNvLinkRemotePciInfo"] = lambda handle, link: (
            address(bus=0x1C) if link else address(domain=0x10000, bus=0xAA, device=1)
        )
        first, _ = NvmlTelemetry([Device(0), Device(1)]).inventory()
        assert first.links[0].remote == "gpu 10000:aa:01.0"
        assert {link.remote for link in first.links[1:]} == {"cuda:1"}

    @pytest.mark.parametrize("none", [address(), address(domain=0xFFFFFFFF, bus=0xFF)])
    def test_lead_to_switches_without_an_address(self, nvml, none):
        nvml.answers["nvmlDeviceGetNvLinkRemotePciInfo"] = none
        assert only().links[0].remote == "nvswitch"

    @pytest.mark.parametrize(
        ("number", "version", "rate"),
        [(1, "1.0", 20e9), (2, "2.0", 25e9), (4, "3.0", 25e9), (6, "4.0", 26.5625e9),
         (7, "5.0", 50e9), (99, None, None)],
    )  # fmt: skip
    def test_have_their_versions_rate_where_the_driver_tells_none(
        self, nvml, number, version, rate
    ):
        nvml.answers["nvmlDeviceGetArchitecture"] = 10
        nvml.answers["nvmlDeviceGetNvLinkVersion"] = number
        nvml.fields["NVLINK_GET_SPEED"] = 0
        link = only().links[0]
        assert (link.version, link.rate) == (version, rate)
        nvml.fields["NVLINK_SPEED_MBPS_COMMON"] = 25781
        assert only().links[0].rate == 25.781e9

    def test_without_a_counter_have_no_number_of_errors(self, nvml):
        for name in FIELDS:
            if "ERROR" in name:
                nvml.fields[name] = None
        found = only()
        assert found.links[0].errors is None
        assert found.unknown == ("NVLink errors: no counter can be read on this device",)
        nvml.fields["NVLINK_COUNT_RCV_ERRORS"] = 2
        assert only().links[0].errors == 2

    def test_to_the_cpu_lead_to_the_near_node(self, nvml):
        nvml.fields |= {
            "NVLINK_LINK_COUNT": None,
            "C2C_LINK_COUNT": 2,
            "C2C_LINK_GET_STATUS": lambda link: 1 - link,
            "C2C_LINK_GET_MAX_BW": 44712,
        }
        _, found = NvmlTelemetry([Device(0), Device(1)]).inventory()
        assert [(one.index, one.kind, one.active, one.rate, one.remote) for one in found.links] == [
            (0, "c2c", True, 44.712e9, "host:1"),
            (1, "c2c", False, 44.712e9, "host:1"),
        ]


class TestSense:
    def test_is_the_device_at_this_moment(self, nvml):
        nvml.answers["nvmlDeviceGetCurrPcieLinkGeneration"] = 1
        nvml.answers["nvmlDeviceGetCurrentClocksThrottleReasons"] = 0x80
        sensors = NvmlTelemetry([Device(0), Device(1)])
        assert sensors.sense([1]) == (
            Telemetry(
                memory="cuda:1",
                link_speed=2.5,
                link_width=16,
                clock=1980e6, temperature=41.0, power=118.25,
                throttled=("power brake",),
                pcie_replays=7,
            ),
        )  # fmt: skip


class TestWithoutNvml:
    def test_says_why_the_library_does_not_open(self, nvml):
        nvml.failing["nvmlInit"] = 12
        assert only().unknown == ("NVML: nvmlInit: 12: check that nvidia-smi works here",)

    def test_says_what_the_driver_refuses_to_tell(self, nvml):
        device = Device()
        device.failure = BackendError("cuDeviceGetPCIBusId", "CUDA_ERROR_UNKNOWN")
        sensors = NvmlTelemetry([device, Device(1)])
        first, second = sensors.inventory()
        assert first.unknown == ("cuDeviceGetPCIBusId: CUDA_ERROR_UNKNOWN",)
        assert second.unknown == ()
        assert len(sensors.sense([0, 1])) == 1

    def test_knows_nothing_once_it_is_closed(self, nvml):
        sensors = NvmlTelemetry([Device()])
        sensors.close()
        sensors.close()
        assert nvml.calls.count("nvmlShutdown") == 1
        assert sensors.inventory()[0].unknown == ("NVML: NVML is closed",)
        assert sensors.sense([0]) == ()


class TestProcesses:
    def test_are_others_than_this_one_and_workers_of_its_controller(self, nvml):
        with subprocess.Popen(["sleep", "60"]) as other:
            pids = [SimpleNamespace(pid=pid) for pid in (other.pid, os.getpid())]
            nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = pids
            found = only()
            other.kill()
        assert found.processes == (other.pid,)
        assert found.process_use is None  # this library does not count by process

    @pytest.mark.parametrize(
        ("answer", "use"),
        [
            ([SimpleNamespace(pid=1, smUtil=98), SimpleNamespace(pid=2, smUtil=40)], (0.98,)),
            ([SimpleNamespace(pid=2, smUtil=40)], (0.0,)),
            (NVMLError(NOT_FOUND), (0.0,)),
            (NVMLError(NOT_SUPPORTED), None),
            (ValueError("binding and library differ"), None),
        ],
    )
    def test_have_each_its_share_of_the_device(self, nvml, answer, use):
        def asked(handle, since):
            if isinstance(answer, Exception):
                raise answer
            return answer

        nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = [SimpleNamespace(pid=1)]
        nvml.answers["nvmlDeviceGetProcessUtilization"] = asked
        found = only()
        assert (found.processes, found.process_use) == ((1,), use)
        assert found.unknown == ()
        nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = []
        nvml.calls.clear()
        assert only().process_use is None
        assert "nvmlDeviceGetProcessUtilization" not in nvml.calls

    def test_of_another_namespace_are_said_to_be(self, nvml):
        pids = [SimpleNamespace(pid=999_999_999)]
        nvml.answers["nvmlDeviceGetComputeRunningProcesses"] = pids
        found = only()
        assert found.processes is None
        assert "another PID namespace" in found.unknown[0]
