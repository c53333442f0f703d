"""Lists NVIDIA GPUs by NVML, because starting CUDA's driver would take 1 to 2 s."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from typing import Any

import msgspec

from linkgauge.backends.cuda.settings import cuda_version, load_tuned, tuned_notes
from linkgauge.machine.numa import near_node
from linkgauge.machine.tree import ROOT
from linkgauge.model.by_name import by_name
from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.live import LinkTraffic, LiveDevice
from linkgauge.model.hardware.machine import Device

from .library import NvmlTelemetry, describe, is_lost, open_library
from .nvlink import pci_address, text, traffic_fields
from .questions import Questions

_NUMBER = re.compile(r"[0-9]{1,4}")
_UUID = re.compile(r"GPU-[0-9a-f-]+", re.IGNORECASE)


class Card(msgspec.Struct, frozen=True):
    """A GPU as NVML lists it. `index` is its number in CUDA, `memory` is in bytes, and `place` is
    the PCI domain, bus and device."""

    place: tuple[int, int, int]
    model: str
    memory: int
    pci: str
    id: str
    driver: str = ""
    capability: tuple[int, int] | None = None
    index: int = 0
    is_instance: bool = False

    @property
    def near(self) -> int:
        return near_node(ROOT, self.pci)

    def pci_address(self) -> str:
        return self.pci

    def uuid(self) -> str:
        return self.id

    def describe(self, *, tuned: bool) -> Device:
        capability = [] if self.capability is None else [
            f"compute capability {'.'.join(map(str, self.capability))}"
        ]  # fmt: skip
        return by_name(
            Device,
            self,
            memory=f"cuda:{self.index}",
            memory_bytes=self.memory,
            largest_buffer=self.memory,
            near=self.near,
            uuid=self.id,
            notes=(*capability, *(tuned_notes(load_tuned(self.model)) if tuned else ())),
        )


class CardsGlance:
    def __init__(self, cards: Sequence[Card], *, tuned: bool) -> None:
        self._cards, self._tuned = cards, tuned

    def devices(self) -> tuple[Device, ...]:
        return tuple(card.describe(tuned=self._tuned) for card in self._cards)

    def inventory(self) -> tuple[Accelerator, ...]:
        with closing(NvmlTelemetry(self._cards)) as sensors:
            return sensors.inventory()


def cards(environment: Mapping[str, str]) -> tuple[Card, ...] | None:
    """Returns the GPUs in CUDA's order, or None if only CUDA can tell: NVML does not answer, a GPU
    has MIG instances or uses the host's memory, models differ and CUDA_DEVICE_ORDER is not
    PCI_BUS_ID, or CUDA_VISIBLE_DEVICES selects no GPU or has another form."""
    try:
        library = open_library()
        count = int(library.nvmlDeviceGetCount())
        found = [_card(library, library.nvmlDeviceGetHandleByIndex(at)) for at in range(count)]
    except Exception:  # noqa: BLE001  # the binding's errors share no base class
        return None
    known = [card for card in found if card is not None]
    if len(known) < len(found):
        return None
    ordered = _ordered(known, environment.get("CUDA_DEVICE_ORDER"))
    seen = ordered and _visible(ordered, environment.get("CUDA_VISIBLE_DEVICES"))
    if not seen:  # CUDA says why there is none
        return None
    return tuple(msgspec.structs.replace(card, index=at) for at, card in enumerate(seen))


def why_none() -> str:
    """Returns why CUDA shows no device: MIG mode (if NVML reports it) or the environment."""
    found = []
    with suppress(Exception):  # the binding's errors share no base class
        library = open_library()
        for at in range(int(library.nvmlDeviceGetCount())):
            handle = library.nvmlDeviceGetHandleByIndex(at)
            mig = Questions(library, handle).ask("MIG", "nvmlDeviceGetMigMode")
            if mig is not None and mig[0]:
                found.append(pci_address(library.nvmlDeviceGetPciInfo(handle)) or f"GPU {at}")
    if not found:
        return "CUDA_VISIBLE_DEVICES may hide them"
    return f"in MIG mode without instances: {', '.join(found)}: sudo nvidia-smi -mig 0 ends it"


def _card(library: Any, handle: Any) -> Card | None:
    # CUDA alone knows the devices of a GPU with MIG instances, or without its own memory.
    asked = Questions(library, handle)
    mig = asked.ask("MIG", "nvmlDeviceGetMigMode")
    memory = _memory(asked)
    info = library.nvmlDeviceGetPciInfo(handle)
    pci = pci_address(info)
    if memory is None or pci is None or (mig is not None and mig[0]):
        return None
    capability = asked.ask("compute capability", "nvmlDeviceGetCudaComputeCapability")
    module = ROOT.text("sys/module/nvidia/version")
    number = asked.system("CUDA version", "nvmlSystemGetCudaDriverVersion_v2")
    return Card(
        (info.domain, info.bus, info.device),
        text(library.nvmlDeviceGetName(handle)) or "",
        memory,
        pci,
        text(library.nvmlDeviceGetUUID(handle)) or "",
        " ".join(filter(None, (module, number and f"CUDA {cuda_version(number)}"))),
        None if capability is None else (capability[0], capability[1]),
    )


def _memory(asked: Questions) -> int | None:
    # The total, less the driver's reserve if this NVML reports it.
    second = getattr(asked.library, "nvmlMemory_v2", None)
    if second is not None:
        found = asked.ask("memory", "nvmlDeviceGetMemoryInfo", second)
        if found is not None:
            return int(found.total - found.reserved)
    found = asked.ask("memory", "nvmlDeviceGetMemoryInfo")
    return None if found is None else int(found.total)


def _ordered(cards: Sequence[Card], order: str | None) -> list[Card] | None:
    # PCI_BUS_ID orders by PCI address. The default FASTEST_FIRST is undocumented (CUDA Programming
    # Guide, "CUDA Environment Variables"), but has ordered GPUs of one model by PCI address in all
    # recorded runs.
    if order != "PCI_BUS_ID" and len({(card.model, card.memory) for card in cards}) > 1:
        return None
    return sorted(cards, key=lambda card: card.place)


def _visible(cards: Sequence[Card], wanted: str | None) -> list[Card] | None:
    """Returns the GPUs that CUDA_VISIBLE_DEVICES selects, or None if only CUDA can tell."""
    if wanted is None:
        return [*cards]
    words = wanted.split(",")
    by_number = all(map(_NUMBER.fullmatch, words))
    if not by_number and not all(map(_UUID.fullmatch, words)):
        return None
    chosen: list[Card] = []
    for word in words:
        fitting = (
            cards[int(word) :][:1]
            if by_number
            else [card for card in cards if card.id.lower().startswith(word.lower())]
        )
        if len(fitting) > 1 or any(card in chosen for card in fitting):
            return None
        if not fitting:
            break
        chosen += fitting
    return chosen


def glance(*, tuned: bool) -> CardsGlance | None:
    found = cards(os.environ)
    return None if found is None else CardsGlance(found, tuned=tuned)


_KB, _MHZ = 1e3, 1e6


class LiveGpus:
    """All GPUs that NVML lists, by their number in NVML. Raises Unsupported without NVML."""

    def __init__(self) -> None:
        self._library = open_library()
        try:
            self.count = int(self._library.nvmlDeviceGetCount())
        except Exception:  # noqa: BLE001  # the binding's errors share no base class
            self.count = 0

    def read(self, number: int) -> LiveDevice:
        """Reads a GPU. Unreported values are None. `up` is false if the GPU does not answer."""
        library = self._library
        try:
            handle = library.nvmlDeviceGetHandleByIndex(number)
        except Exception as error:  # noqa: BLE001  # the binding's errors share no base class
            unknown = Accelerator(memory=str(number), model="", unknown=(Gap(str(error)),))
            return LiveDevice(number=number, accelerator=unknown, up=False)
        return _read(Questions(library, handle), number)


def _read(asked: Questions, number: int) -> LiveDevice:
    library = asked.library
    info = asked.ask("PCI address", "nvmlDeviceGetPciInfo")
    pci = None if info is None else pci_address(info)
    known = Accelerator(
        memory=pci or str(number),
        model=text(asked.ask("model", "nvmlDeviceGetName")) or "",
        pci=pci,
        uuid=text(asked.ask("UUID", "nvmlDeviceGetUUID")),
    )
    accelerator = describe(asked, known, near_node(ROOT, pci) if pci else 0, {})
    corrected = library.NVML_MEMORY_ERROR_TYPE_CORRECTED, library.NVML_VOLATILE_ECC
    memory = library.NVML_CLOCK_MEM
    return LiveDevice(
        number=number,
        accelerator=accelerator,
        up=not is_lost(asked),
        clock_memory=asked.scaled(_MHZ, "memory clock now", "nvmlDeviceGetClockInfo", memory),
        pcie_sent=_pcie_rate(asked, "TX"),
        pcie_received=_pcie_rate(asked, "RX"),
        ecc_corrected=asked.ask("ECC errors", "nvmlDeviceGetTotalEccErrors", *corrected),
        traffic=tuple(
            LinkTraffic(link.index, link.kind, *traffic_fields(asked, link.index))
            for link in accelerator.links
            if link.kind == "nvlink" and link.active
        ),
    )


def _pcie_rate(asked: Questions, direction: str) -> float | None:
    # NVML counts for 20 ms.
    counter = getattr(asked.library, f"NVML_PCIE_UTIL_{direction}_BYTES")
    return asked.scaled(_KB, "PCIe throughput", "nvmlDeviceGetPcieThroughput", counter)
