"""Reads the current state of NVIDIA's GPUs through NVML only. This process then uses no memory on a
GPU, and does not disturb measurements."""

from __future__ import annotations

from linkgauge.machine.numa import near_node
from linkgauge.machine.tree import ROOT
from linkgauge.model.hardware.gaps import Gap
from linkgauge.model.hardware.inventory import Accelerator, LinkTraffic, LiveDevice

from .library import Questions, describe, is_lost, open_library
from .nvlink import pci_address, text, traffic_fields

_KB, _MHZ = 1e3, 1e6


class LiveGpus:
    """All GPUs that NVML knows, by number. Raises Unsupported if NVML is not available."""

    def __init__(self) -> None:
        self._library = open_library()
        try:
            self.count = int(self._library.nvmlDeviceGetCount())
        except Exception:  # noqa: BLE001  # the binding's errors share no base class
            self.count = 0

    def read(self, number: int) -> LiveDevice:
        """Returns the current state of a GPU. Facts that NVML does not report are null. If the GPU
        does not answer, `up` is false."""
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
    """Returns the PCIe traffic in bytes/s, counted for 20 ms."""
    counter = getattr(asked.library, f"NVML_PCIE_UTIL_{direction}_BYTES")
    return asked.scaled(_KB, "PCIe throughput", "nvmlDeviceGetPcieThroughput", counter)
