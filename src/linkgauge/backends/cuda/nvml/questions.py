"""Asks NVML about a device. Any call may fail."""

from __future__ import annotations

from typing import Any

from linkgauge.model.hardware.gaps import Gap

GPU_IS_LOST = 15
"""NVML_ERRORGPU_IS_LOST: "the GPU has fallen off the bus or has otherwise become inaccessible"."""


class Questions:
    """Asks NVML about one device. Unanswered values are None; `unknown` has the reasons."""

    def __init__(self, library: Any, handle: Any) -> None:
        self.library = library
        self.handle = handle
        self.unknown: dict[Gap, None] = {}

    def ask(self, what: str, name: str, *arguments: Any) -> Any:
        """Returns the answer of the NVML function `name` for the device, or None if it fails: then
        `unknown` has the reason, under the name `what`."""
        return self.system(what, name, self.handle, *arguments)

    def system(self, what: str, name: str, *arguments: Any) -> Any:
        """Calls an NVML function that is not about a device. `what` names the fact in `unknown`."""
        try:
            return getattr(self.library, name)(*arguments)
        except AttributeError:
            self.miss(what, f"{name}: not in this nvidia-ml-py: install a newer one")
        except Exception as error:  # noqa: BLE001  # the binding's errors share no base class
            self.miss(what, f"{name}: {error}{self._remedy(error)}")
        return None

    def miss(self, what: str, why: str) -> None:
        self.unknown[Gap(why, what)] = None

    def _remedy(self, error: Exception) -> str:
        library = self.library
        remedies = {
            library.NVML_ERROR_NO_PERMISSION: ": run as root",
            library.NVML_ERROR_FUNCTION_NOT_FOUND: ": needs a newer driver",
            library.NVML_ERROR_NOT_SUPPORTED: " by this device, or not in a virtual machine",
            GPU_IS_LOST: ": reset it, or power the machine off and on",
        }
        return remedies.get(getattr(error, "value", None), "")

    def scaled(self, scale: float, what: str, name: str, *arguments: Any) -> float | None:
        value = self.ask(what, name, *arguments)
        return None if value is None else value * scale

    def switch(self, what: str, name: str) -> bool | None:
        value = self.ask(what, name)
        return None if value is None else bool(value)
