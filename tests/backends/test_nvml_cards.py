"""NVIDIA's cards without CUDA: their numbers must be those that CUDA gives them."""

import sys
from types import SimpleNamespace

import pytest

from fake_nvml import NOT_SUPPORTED, FakeNvml, NVMLError, address
from linkgauge.backends import cuda
from linkgauge.backends.cuda.nvml import cards as nvml_cards
from linkgauge.backends.cuda.nvml.cards import cards
from linkgauge.backends.protocol import Glance
from linkgauge.machine.tree import Captured
from linkgauge.model.errors import Unsupported
from linkgauge.model.settings import EngineSettings

H100, H200 = "NVIDIA H100", "NVIDIA H200"
BUSES = (0x4B, 0x1B, 0x2B, 0x3B)
"""Where NVML's cards 0, 1, … are: NVML does not promise the order of PCI addresses."""


def machine(monkeypatch, *models, **answers):
    """NVML with cards of these models."""
    usual = {
        "nvmlDeviceGetCount": len(models),
        "nvmlDeviceGetName": lambda handle: models[handle],
        "nvmlDeviceGetPciInfo": lambda handle: address(bus=BUSES[handle]),
        "nvmlDeviceGetUUID": lambda handle: f"GPU-{'abcd'[handle]}0{handle}",
    }
    library = FakeNvml(**usual | answers)
    monkeypatch.setitem(sys.modules, "pynvml", library)
    return library


def buses(environment=None):
    """The PCI buses of the cards in CUDA's order, or None if only CUDA knows it."""
    found = cards(environment or {})
    if found is None:
        return None
    assert [card.index for card in found] == [*range(len(found))]
    return [int(card.pci[5:7], 16) for card in found]


class TestOrder:
    def test_of_cards_of_one_model_is_that_of_pci(self, monkeypatch):
        machine(monkeypatch, *[H200] * 4)
        assert buses() == [0x1B, 0x2B, 0x3B, 0x4B]

    def test_compares_domains_as_numbers(self, monkeypatch):
        places = [address(0x10000, 1), address(2, 1)]
        machine(monkeypatch, H200, H200, nvmlDeviceGetPciInfo=lambda handle: places[handle])
        assert [card.pci for card in cards({})] == ["0002:01:00.0", "10000:01:00.0"]

    def test_of_unlike_cards_is_cudas_unless_the_environment_sets_it(self, monkeypatch):
        machine(monkeypatch, H200, H100)
        assert buses() is None
        assert buses({"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}) is None
        assert buses({"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}) == [0x1B, 0x4B]

    def test_of_one_model_with_unlike_memory_is_cudas(self, monkeypatch):
        def memory(handle, version=1):
            return SimpleNamespace(total=(40 + 40 * handle) << 30, reserved=0)

        machine(monkeypatch, H200, H200, nvmlDeviceGetMemoryInfo=memory)
        assert buses() is None


@pytest.mark.parametrize(
    ("wanted", "seen"),
    [
        ("2", [0x3B]), ("3,0", [0x4B, 0x1B]), ("0,7,1", [0x1B]),
        ("GPU-a", [0x4B]), ("gpu-C02,GPU-b01", [0x2B, 0x1B]), ("GPU-b,GPU-e,GPU-a", [0x1B]),
        # Only CUDA knows what it makes of these.
        ("", None), ("-1", None), ("7", None), ("NoDevFiles", None), ("0,0", None),
        ("GPU-a,GPU-a00", None), ("0,GPU-b", None), ("1 2", None), ("GPU-", None),
        ("MIG-1b2c,0", None), ("MIG-GPU-a/1/0", None),
    ],
)  # fmt: skip
def test_visible_devices(monkeypatch, wanted, seen):
    machine(monkeypatch, *[H200] * 4)
    assert buses({"CUDA_VISIBLE_DEVICES": wanted}) == seen


class TestCudaIsAsked:
    @pytest.mark.parametrize(
        "function", ["nvmlInit", "nvmlDeviceGetCount", "nvmlDeviceGetHandleByIndex",
                     "nvmlDeviceGetPciInfo", "nvmlDeviceGetName", "nvmlDeviceGetUUID",
                     "nvmlDeviceGetMemoryInfo"],
    )  # fmt: skip
    def test_where_nvml_does_not_answer(self, monkeypatch, function):
        machine(monkeypatch, H200, H200).failing[function] = NOT_SUPPORTED
        assert buses() is None

    def test_where_one_of_the_cards_does_not_answer(self, monkeypatch):
        def lost(handle):
            if handle == 1:
                raise NVMLError(15)
            return H200

        machine(monkeypatch, H200, H200).answers["nvmlDeviceGetName"] = lost
        assert buses() is None

    def test_where_a_card_has_instances(self, monkeypatch):
        machine(monkeypatch, H200, H200, nvmlDeviceGetMigMode=lambda handle: [handle, 0])
        assert buses() is None

    def test_where_nvml_has_no_card_or_is_not_installed(self, monkeypatch):
        machine(monkeypatch)
        assert buses() is None
        monkeypatch.setitem(sys.modules, "pynvml", None)
        assert buses() is None


class TestGlance:
    @pytest.fixture(autouse=True)
    def _driver(self, monkeypatch):
        monkeypatch.setattr(cuda, "find_driver", lambda: None)

    def test_describes_cards_as_the_backend_would(self, monkeypatch):
        machine(monkeypatch, H200, H200)
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
        driver = Captured({"sys/module/nvidia/version": b"580.159.04"})
        monkeypatch.setattr(nvml_cards, "ROOT", driver)
        found = cuda.glance(EngineSettings(tuned=False), None)
        assert isinstance(found, Glance)
        (device,) = found.devices()
        assert (device.memory, device.model, device.pci) == ("cuda:0", H200, "0000:4b:00.0")
        assert (device.uuid, device.memory_bytes) == ("GPU-a00", 140 << 30)
        assert device.driver == "580.159.04 CUDA 13.0"
        assert device.notes == ("compute capability 9.0",)
        (facts,) = found.inventory()
        assert (facts.memory, facts.pci, facts.uuid) == ("cuda:0", device.pci, device.uuid)
        assert facts.link.width == 16
        assert facts.unknown == ()

    def test_with_an_older_driver_counts_all_memory(self, monkeypatch):
        def memory(handle, version=1):
            if version != 1:
                raise NVMLError(NOT_SUPPORTED)
            return SimpleNamespace(total=141 << 30)

        machine(monkeypatch, H200, nvmlDeviceGetMemoryInfo=memory)
        (device,) = cuda.glance(EngineSettings(), None).devices()
        assert device.memory_bytes == 141 << 30

    def test_says_what_is_missing_as_the_backend_does(self, monkeypatch):
        machine(monkeypatch, H200)
        monkeypatch.undo()
        with pytest.raises(Unsupported, match=r"libcuda\.so\.1 not found"):
            cuda.glance(EngineSettings(), None)
