"""Checks of accelerators, as their vendor's library describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.vendor import nvidia, tools
from linkgauge.model.inventory import Accelerator

from .ways import latest_accelerators

_HARMLESS = ("idle", "display clock")
"""Reasons for low clocks that are none for concern."""
_ECC = "nvidia-smi -q -d ECC,ROW_REMAPPER"


def check_persistence(evidence: Evidence) -> Iterator[Finding]:
    for device in evidence.accelerators.values():
        if device.persistence is False:
            yield Finding(
                check="persistence",
                severity="note",
                subject=device.memory,
                found="persistence mode is off",
                why="the driver is loaded anew for each program: it starts late, settings are lost",
                remedy=nvidia(evidence, device.memory, "sudo nvidia-smi -pm 1"),
            )


def check_clocks(evidence: Evidence) -> Iterator[Finding]:
    """Throttled under load, else as they were last found; a clock locked low."""
    for device in latest_accelerators(evidence).values():
        loaded = [
            (reason, reading)
            for reading in evidence.readings.get(device.memory, ())
            for reason in reading.throttled
        ]
        reasons = [reason for reason, _ in loaded] or list(device.throttled)
        shown = sorted({r for r in reasons if not any(word in r.lower() for word in _HARMLESS)})
        if shown:
            hottest = max(
                (r.temperature_max for _, r in loaded if r.temperature_max is not None),
                default=device.temperature,
            )
            yield Finding(
                check="clocks",
                severity="warn",
                subject=device.memory,
                found=f"clocks are held down: {', '.join(shown)}"
                + (f" (at {hottest:.0f} °C)" if hottest is not None else ""),
                why="kernels, and copies by them, are slower",
                remedy=(*tools(evidence, "state"), "see to power and cooling"),
            )
        if device.locked_clock and device.max_clock and device.locked_clock < device.max_clock:
            yield Finding(
                check="locked-clock",
                severity="warn",
                subject=device.memory,
                found=f"clocks are locked at {device.locked_clock / 1e6:.0f} MHz of "
                f"{device.max_clock / 1e6:.0f}",
                why="kernels, and copies by them, are slower",
                remedy=_set(evidence, device, "-rgc"),
            )


def _set(evidence: Evidence, device: Accelerator, option: str) -> tuple[str, ...]:
    """The command that sets something of this device."""
    which = device.pci or device.memory.rpartition(":")[2]
    return nvidia(evidence, device.memory, f"sudo nvidia-smi -i {which} {option}")


def check_ecc(evidence: Evidence) -> Iterator[Finding]:
    after = {a.memory: a for a in evidence.after.accelerators} if evidence.after else {}
    for device in evidence.accelerators.values():
        now = after.get(device.memory, device)
        if now.remap_pending or device.remap_pending:
            yield Finding(
                check="row-remap",
                severity="fail",
                subject=device.memory,
                found="rows of its memory wait to be remapped",
                why="the broken rows are in use until it is reset",
                remedy=_set(evidence, device, "--gpu-reset  # nothing may use it"),
            )
        if (now.ecc_errors or 0) > (device.ecc_errors or 0):
            yield Finding(
                check="ecc",
                severity="fail",
                subject=device.memory,
                found=f"{(now.ecc_errors or 0) - (device.ecc_errors or 0)} memory errors that ECC "
                "cannot correct, during the run",
                why="its memory returns wrong bytes",
                remedy=(
                    *nvidia(evidence, device.memory, _ECC),
                    "have the card replaced if they recur",
                ),
            )
        elif device.ecc_errors:
            yield Finding(
                check="ecc",
                severity="warn",
                subject=device.memory,
                found=f"{device.ecc_errors} memory errors that ECC cannot correct, before the run",
                why="its memory may return wrong bytes",
                remedy=nvidia(evidence, device.memory, _ECC),
            )


def check_compute_mode(evidence: Evidence) -> Iterator[Finding]:
    for device in evidence.accelerators.values():
        mode = (device.compute_mode or "").lower()
        if "exclusive" in mode or "prohibited" in mode:
            yield Finding(
                check="compute-mode",
                severity="fail" if "prohibited" in mode else "warn",
                subject=device.memory,
                found=f"its compute mode is {device.compute_mode}",
                why="a second process is refused; peers and workers cannot open it",
                remedy=_set(evidence, device, "-c DEFAULT"),
            )


def check_processes(evidence: Evidence) -> Iterator[Finding]:
    for device in evidence.accelerators.values():
        if device.processes:
            listed = " ".join(map(str, device.processes[:8]))
            yield Finding(
                check="processes",
                severity="warn",
                subject=device.memory,
                found=f"other processes use it: {listed}",
                why="they share its links, memory and engines: figures fall and scatter",
                remedy=(f"ps -fp {','.join(map(str, device.processes[:8]))}",),
            )


def check_mig(evidence: Evidence) -> Iterator[Finding]:
    for device in evidence.accelerators.values():
        if device.mig:
            yield Finding(
                check="mig",
                severity="note",
                subject=device.memory,
                found="it is partitioned (MIG)",
                why="an instance has its part of the memory's bandwidth and engines, and no peers",
                remedy=_set(evidence, device, "-mig 0  # nothing may use it"),
            )


_DRIVER = re.compile(r"\b(\d{3})\.(\d+)(?:\.\d+)*\b")
_MISMATCH = re.compile(r"version mismatch|insufficient driver|driver.*older than", re.IGNORECASE)


def check_driver(evidence: Evidence) -> Iterator[Finding]:
    """The library in user space must be of the driver in the kernel."""
    for backend, reason in evidence.before.unavailable.items():
        if _MISMATCH.search(reason):
            yield _mismatch(backend, reason)
    for device in evidence.accelerators.values():
        driver = _DRIVER.search(device.driver or "")
        library = _DRIVER.search(device.library or "")
        if driver and library and driver.groups() != library.groups():
            found = f"the kernel's driver is {device.driver}, the library {device.library}"
            yield _mismatch(device.memory, found)


def _mismatch(subject: str, found: str) -> Finding:
    return Finding(
        check="driver",
        severity="fail",
        subject=subject,
        found=found,
        why="calls fail, or behave otherwise than either version does",
        remedy=(
            (
                "reboot after a driver update (or unload and load the module); in a container, use "
                "the host's libraries"
            ),
        ),
    )


CHECKS = (
    check_persistence,
    check_clocks,
    check_ecc,
    check_compute_mode,
    check_processes,
    check_mig,
    check_driver,
)
