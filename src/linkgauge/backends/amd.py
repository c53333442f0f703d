"""How facts about AMD's GPUs are read from sysfs, and from amdsmi (ROCm) if it is installed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import msgspec

from linkgauge.machine.amd_gpus import describe, is_amd, sense, with_gaps
from linkgauge.machine.tree import ROOT, Root
from linkgauge.model.by_name import by_name
from linkgauge.model.hardware.inventory import Accelerator, PciLink, Telemetry
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory

_MEGA, _MEGATRANSFERS = 1e6, 1e-3
Answer = Mapping[str, Any]


class AmdTelemetry:
    """Reads facts about the AMD GPUs among `devices`. A GPU without a PCI address is left out."""

    def __init__(self, devices: Sequence[Device], root: Root = ROOT) -> None:
        self._root = root
        self._devices = {
            device.memory: device
            for device in devices
            if device.pci is not None and is_amd(root, device.pci)
        }
        self._library = AmdSmi() if self._devices else None

    def inventory(self) -> tuple[Accelerator, ...]:
        peers = {str(device.pci): memory for memory, device in self._devices.items()}
        return tuple(self._describe(device, peers) for device in self._devices.values())

    def _describe(self, device: Device, peers: Mapping[str, str]) -> Accelerator:
        known = by_name(Accelerator, device, driver=device.driver or None)
        found = describe(self._root, known, peers)
        return with_gaps(found if self._library is None else self._library.add_to(found))

    def sense(self, memories: Sequence[Memory]) -> tuple[Telemetry, ...]:
        known = (self._devices.get(str(memory)) for memory in memories)
        return tuple(
            sense(self._root, device.memory, str(device.pci)) for device in known if device
        )


class AmdSmi:
    """Facts from ROCm's Python package amdsmi. Without the package or a driver, there are none."""

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}
        try:
            self._library = import_module("amdsmi")
            self._library.amdsmi_init()
            for handle in self._library.amdsmi_get_processor_handles():
                address = str(self._library.amdsmi_get_gpu_device_bdf(handle)).lower()
                self._handles[address] = handle
        except Exception:  # noqa: BLE001  # absent, or without a driver: sysfs says what it can
            self._handles.clear()

    def add_to(self, found: Accelerator) -> Accelerator:
        handle = self._handles.get(found.pci or "")
        if handle is None:
            return found
        pcie = self._ask("amdsmi_get_pcie_info", handle)
        now, static = _part(pcie, "pcie_metric"), _part(pcie, "pcie_static")
        clock = self._ask("amdsmi_get_clock_info", handle, self._kind("AmdSmiClkType", "GFX"))
        power = self._ask("amdsmi_get_power_info", handle)
        errors = _number(self._ask("amdsmi_get_gpu_total_ecc_count", handle), "uncorrectable_count")
        link = PciLink(
            found.link.speed or _number(now, "pcie_speed", _MEGATRANSFERS),
            found.link.width or _whole(now, "pcie_width"),
            found.link.max_speed or _number(static, "max_pcie_speed", _MEGATRANSFERS),
            found.link.max_width or _whole(static, "max_pcie_width"),
        )
        filled = {
            "firmware": _text(self._ask("amdsmi_get_gpu_vbios_info", handle), "version"),
            "board": _text(self._ask("amdsmi_get_gpu_board_info", handle), "model_number"),
            "clock": _number(clock, "clk", _MEGA),
            "max_clock": _number(clock, "max_clk", _MEGA),
            "power": _first(power, "current_socket_power", "average_socket_power"),
            "power_limit": _number(power, "power_limit"),
            "pcie_replays": _whole(now, "pcie_replay_count"),
            "ecc_errors": None if errors is None else int(errors),
        }
        lacking = {name: value for name, value in filled.items() if getattr(found, name) is None}
        return msgspec.structs.replace(found, link=link, **lacking)

    def _kind(self, enumeration: str, name: str) -> Any:
        return getattr(getattr(self._library, enumeration, None), name, None)

    def _ask(self, name: str, *arguments: Any) -> Answer:
        # Errors differ between versions of amdsmi, so any failure means no answer.
        function: Callable[..., Any] | None = getattr(self._library, name, None)
        try:
            found = function(*arguments) if function else None
        except Exception:  # noqa: BLE001
            return {}
        return found if isinstance(found, Mapping) else {}


def _part(answer: Answer, name: str) -> Answer:
    found = answer.get(name)
    return found if isinstance(found, Mapping) else {}


def _number(answer: Answer, name: str, scale: float = 1.0) -> float | None:
    found = answer.get(name)
    return found * scale if isinstance(found, int | float) and found >= 0 else None


def _whole(answer: Answer, name: str) -> int | None:
    found = _number(answer, name)
    return None if found is None else int(found)


def _first(answer: Answer, *names: str) -> float | None:
    return next((value for name in names if (value := _number(answer, name)) is not None), None)


def _text(answer: Answer, name: str) -> str | None:
    found = answer.get(name)
    return found if isinstance(found, str) and found not in ("", "N/A") else None
