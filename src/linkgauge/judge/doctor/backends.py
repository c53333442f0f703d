"""Checks for backends that do not answer, or that do not fit the installed driver."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.model.hardware.pcie import is_accelerator

_DRIVER = re.compile(r"\b(\d{3})\.(\d+)(?:\.\d+)*\b")
_MISMATCH = re.compile(r"version mismatch", re.IGNORECASE)
_OLD = re.compile(r"insufficient driver|driver.*(?:older than|too old)", re.IGNORECASE)


def check_answers(evidence: Evidence) -> Iterator[Finding]:
    """Reports backends that do not answer, unless other backends reach all accelerators."""
    machine = evidence.machine
    if not machine.unanswered:
        return
    reached = {device.pci for device in machine.all_devices}
    if all(one.address in reached for one in machine.known.pci if is_accelerator(one)):
        return
    why = "its driver is slow or hangs; the devices that it may reach are not judged"
    for backend in machine.unanswered:
        remedy = (f"linkgauge devices --backend {backend}  # waits for it",)
        yield Finding("answer", "warn", backend, machine.unavailable[backend], why, remedy)


def check_driver(evidence: Evidence) -> Iterator[Finding]:
    why = "calls fail, or behave as neither version does"
    remedy = (
        "# After a driver update, reboot, or unload the kernel module and load it again.",
        "# In a container, use the host's libraries.",
    )
    unavailable = evidence.machine.unavailable.items()
    for backend, reason in unavailable:
        if _MISMATCH.search(reason):
            yield Finding("driver", "fail", backend, reason, why, remedy)
    for device in evidence.machine.accelerators.values():
        driver, library = _DRIVER.search(device.driver or ""), _DRIVER.search(device.library or "")
        if driver and library and driver.groups() != library.groups():
            found = f"the kernel driver is version {device.driver}, the library {device.library}"
            yield Finding("driver", "fail", device.part, found, why, remedy)
    why = "calls that the driver lacks fail"
    update = ("# Update the driver, or install packages that fit the CUDA of nvidia-smi.",)
    for backend, reason in unavailable:
        if _OLD.search(reason) and not _MISMATCH.search(reason):
            yield Finding("driver", "fail", backend, reason, why, update)
