"""What devices report now: PCIe by sysfs, GPUs by NVML alone, simulated machines."""

import threading
import time

from hypothesis import given
from hypothesis import strategies as st

from exporter_kit import PATIENT, families, nvml, page, samples, value
from fake_nvml import H200

GPU = {"device": "1", "pci": "0000:1c:00.0"}


def text(**answers):
    with nvml(**answers) as library:
        return page().text(PATIENT), library


def test_a_gpu_has_its_clocks_power_temperature_and_errors():
    found, _ = text()
    for name, wanted, labels in (
        ("gpu_up", 1, {}),
        ("gpu_info", 1, {"model": "NVIDIA H200", "uuid": "GPU-1", "driver": "580.95.05"}),
        ("gpu_temperature_celsius", 41, {}),
        ("gpu_power_watts", 118.25, {}),
        ("gpu_power_limit_watts", 700, {}),
        ("gpu_clock_hertz", 1980e6, {"clock": "sm"}),
        ("gpu_clock_hertz", 3201e6, {"clock": "memory"}),
        ("gpu_clock_max_hertz", 3201e6, {"clock": "memory"}),
        ("gpu_ecc_enabled", 1, {}),
        ("gpu_ecc_errors_total", 3, {"kind": "corrected"}),
        ("gpu_ecc_errors_total", 0, {"kind": "uncorrected"}),
        ("gpu_row_remap_pending", 1, {}),
        ("gpu_pcie_replays_total", 7, {}),
        ("gpu_pcie_throughput_bytes_per_second", 2e6, {"direction": "sent"}),
        ("gpu_pcie_throughput_bytes_per_second", 1e6, {"direction": "received"}),
        ("gpu_throttled", 0, {"reason": "power cap"}),
    ):
        assert value(found, f"linkgauge_{name}", **GPU, **labels) == wanted, name


def test_counters_in_bytes_come_before_those_in_kib():
    with nvml() as library:
        library.fields |= {"NVLINK_COUNT_XMIT_BYTES": 5, "NVLINK_COUNT_RCV_BYTES": None}
        found = page().text(PATIENT)
    link = {**GPU, "link": "0"}
    assert value(found, "linkgauge_fabric_link_bytes_total", direction="sent", **link) == 5
    assert value(found, "linkgauge_fabric_link_bytes_total", direction="received", **link) == 2048


def test_what_holds_a_clock_down_is_1():
    found, _ = text(nvmlDeviceGetCurrentClocksThrottleReasons=0x40)
    states = {own["reason"]: on for own, on in samples(found, "linkgauge_gpu_throttled")}
    assert {reason for reason, on in states.items() if on} == {"hardware thermal slowdown"}
    assert len(states) == 8


def test_a_gpu_that_fell_off_the_bus_is_not_up():
    for call in ("nvmlDeviceGetTemperature", "nvmlDeviceGetHandleByIndex"):
        with nvml() as library:
            library.failing[call] = 15
            found = page().text(PATIENT)
        assert [up for _, up in samples(found, "linkgauge_gpu_up")] == [0, 0]
        assert samples(found, "linkgauge_gpu_power_watts") == []


@given(st.dictionaries(st.sampled_from(sorted({*H200} - {"nvmlInit"})), st.integers(1, 30)))
def test_is_a_page_whatever_fails(failing):
    with nvml() as library:
        library.failing = {**failing}
        assert "linkgauge_exporter_info" in families(page().text(PATIENT))


def test_a_gpu_that_hangs_keeps_neither_a_scrape_nor_another_gpu(monkeypatch):
    real, ahead = time.monotonic, [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: real() + ahead[0])
    hang, go_on = threading.Event(), threading.Event()

    def temperature(handle, kind):
        if handle == 1 and hang.is_set():
            go_on.wait(20)
        return 41

    with nvml(nvmlDeviceGetTemperature=temperature):
        shown = page()
        shown.text(PATIENT)
        hang.set()
        shown.text(0.05)
        ahead[0] = 6.0
        began = time.monotonic()
        found = shown.text(0.05)
        assert time.monotonic() - began < 2
        stale = {own["source"]: on for own, on in samples(found, "linkgauge_source_stale")}
        assert stale == {
            "results": 0, "pci": 0, "network": 0, "nvml": 0, "gpu 0": 0, "gpu 1": 1,
        }  # fmt: skip
        assert value(found, "linkgauge_gpu_temperature_celsius", device="1") == 41
        assert value(found, "linkgauge_source_age_seconds", source="gpu 1") > 6
        go_on.set()
