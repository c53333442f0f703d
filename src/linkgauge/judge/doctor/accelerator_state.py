"""Checks accelerators, as their vendor's library describes them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.judge.blame.cases import named
from linkgauge.judge.blame.counters import held_down, held_under_load, is_limit
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.neighbours import at_work
from linkgauge.judge.pcie_chains import latest_accelerators
from linkgauge.judge.vendor import nvidia, nvidia_option, tools
from linkgauge.model.grouped import grouped

_STOP_FIRST = "stop the programs that use it first"


def check_persistence(evidence: Evidence) -> Iterator[Finding]:
    why = "the driver is loaded again for each program: programs start late, and settings are lost"
    for device in evidence.machine.accelerators.values():
        if device.persistence is False:
            remedy = nvidia(evidence, device.memory, "sudo nvidia-smi -pm 1")
            found = "persistence mode is off"
            yield Finding("persistence", "note", device.part, found, why, remedy)


def check_clocks(evidence: Evidence) -> Iterator[Finding]:
    """Checks for clocks that are throttled under load or locked. If no throttling was seen under
    load, the device's latest state counts. A limit by design is told apart from a fault or heat."""
    why = "kernels, and copies by them, are slower"
    throttled = held_under_load(evidence)
    for device in latest_accelerators(evidence).values():
        loaded = throttled.get(device.memory, [])
        shown = held_down(device, loaded)
        for is_capped, reasons in grouped((is_limit(one), one) for one in shown).items():
            own = [(case, reading) for reason, case, reading in loaded if reason in reasons]
            degrees = [r.temperature_max for _, r in own if r.temperature_max is not None]
            hottest = max(degrees, default=device.temperature)
            found = f"clocks are held down: {', '.join(reasons)}"
            found += f" (at {hottest:.0f} °C)" if hottest is not None else ""
            remedy = (*tools(evidence, "state"), "# Check the device's power supply and cooling.")
            cells = named(dict.fromkeys(case for case, _ in own))
            if is_capped:
                yield Finding("capped-clock", "warn", device.part, found, why, remedy, cells)
            else:
                yield Finding("clocks", "warn", device.part, found, why, remedy)
        locked, most = device.locked_clock, device.max_clock
        if locked and most and locked < most:
            found = f"clocks are locked at {locked / 1e6:.0f} MHz of {most / 1e6:.0f}"
            remedy = nvidia_option(evidence, device, "-rgc")
            yield Finding("locked-clock", "warn", device.part, found, why, remedy)


def check_ecc(evidence: Evidence) -> Iterator[Finding]:
    latest = latest_accelerators(evidence)
    for device in evidence.machine.accelerators.values():
        now = latest[device.memory]
        if now.remap_pending or device.remap_pending:
            found = "rows of its memory are waiting to be remapped"
            why = "the broken rows stay in use until the device is reset"
            remedy = nvidia_option(evidence, device, f"--gpu-reset  # {_STOP_FIRST}")
            yield Finding("row-remap", "fail", device.part, found, why, remedy)
        before, rose = device.ecc_errors or 0, (now.ecc_errors or 0) - (device.ecc_errors or 0)
        shown = nvidia(evidence, device.memory, "nvidia-smi -q -d ECC,ROW_REMAPPER")
        if rose > 0:
            found = f"ECC could not correct {rose} memory errors during the run"
            why = "its memory returns wrong bytes"
            remedy = (*shown, "# If the errors recur, replace the card.")
            yield Finding("ecc", "fail", device.part, found, why, remedy)
        elif before:
            found = f"ECC could not correct {before} memory errors before the run"
            why = "its memory may return wrong bytes"
            yield Finding("ecc", "warn", device.part, found, why, shown)


def check_compute_mode(evidence: Evidence) -> Iterator[Finding]:
    why = "a second process cannot open the device, so workers and peers fail"
    for device in evidence.machine.accelerators.values():
        mode = (device.compute_mode or "").lower()
        if "exclusive" in mode or "prohibited" in mode:
            severity: Severity = "fail" if "prohibited" in mode else "warn"
            found = f"its compute mode is {device.compute_mode}"
            remedy = nvidia_option(evidence, device, "-c DEFAULT")
            yield Finding("compute-mode", severity, device.part, found, why, remedy)


def check_processes(evidence: Evidence) -> Iterator[Finding]:
    """Checks for other processes on a device. Those that were seen to use it are a warning; one
    that only has it open slows nothing."""
    latest = latest_accelerators(evidence)
    using = at_work(evidence.machine.inventory, evidence.after, evidence.results)
    for memory, device in evidence.machine.accelerators.items():
        pids = dict.fromkeys((*(device.processes or ()), *(latest[memory].processes or ())))
        severity: Severity = "note"
        found = "other processes have it open, and were not seen to use it"
        why = "if they begin to use it, figures fall and scatter"
        if memory in using:
            pids, severity = dict.fromkeys(using[memory]), "warn"
            found = "other processes use it"
            why = "they share its links, memory and engines, so figures fall and scatter"
        listed = [str(pid) for pid in pids][:8]
        if listed:
            remedy = (f"ps -fp {','.join(listed)}",)
            found += f": {' '.join(listed)}"
            yield Finding("processes", severity, device.part, found, why, remedy)


def check_mig(evidence: Evidence) -> Iterator[Finding]:
    why = "each instance gets part of the memory bandwidth and engines, and no peer access"
    for device in evidence.machine.accelerators.values():
        if device.mig:
            remedy = nvidia_option(evidence, device, f"-mig 0  # {_STOP_FIRST}")
            yield Finding("mig", "note", device.part, "it is partitioned (MIG)", why, remedy)


_OLDEST_ROCM = {"gfx950": (7, 0)}
"""The first ROCm whose libraries have kernels for an instruction set. Source: AMD's compatibility
matrix; "ROCm 7.0+ PyTorch wheels are required for MI350X" (vCPU benchmark suite)."""
_ROCM = re.compile(r"ROCm (\d+)\.(\d+)")


def check_runtime(evidence: Evidence) -> Iterator[Finding]:
    """Checks whether the library of a backend has kernels for the device, and whether its ROCm
    knows the device."""
    why = "kernels fail or end the process, although copies may work"
    for device in evidence.machine.accelerators.values():
        isa = (device.isa or "").partition(":")[0]
        oldest, runtime = _OLDEST_ROCM.get(isa), _ROCM.search(device.runtime or "")
        found, wanted = None, "whose list of architectures has it"
        if oldest and runtime and tuple(map(int, runtime.groups())) < oldest:
            wanted = f"of ROCm {oldest[0]}.{oldest[1]} or newer"
            found = f"{isa} needs a torch {wanted}: this one is of {device.runtime}"
        elif (
            isa and device.built_for and isa not in {a.partition(":")[0] for a in device.built_for}
        ):
            found = f"torch has kernels for {', '.join(device.built_for)}, not for {isa}"
        if found is not None:
            remedy = (f"# Install a torch for {isa}, {wanted}, from the index that AMD names.",)
            yield Finding("runtime", "fail", device.part, found, why, remedy)
