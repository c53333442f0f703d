"""Checks the state and the settings of accelerators and their drivers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.judge.blame.cases import named
from linkgauge.judge.blame.counters import held_under_load, is_limit, why_throttled
from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.neighbours import at_work
from linkgauge.judge.pcie_chains import hops, latest_accelerators, shown
from linkgauge.judge.remedies import DEVICE_LOST
from linkgauge.judge.vendor import nvidia, nvidia_option, tools
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import MACHINE
from linkgauge.model.units import approximate_size

_STOP_FIRST = "stop the programs that use it first"


def check_settings(evidence: Evidence) -> Iterator[Finding]:
    for device in evidence.machine.accelerators.values():
        part, mode = device.part, (device.compute_mode or "").lower()
        if device.persistence is False:
            found = "persistence mode is off"
            why = "the driver is loaded again for each program: programs start late, and settings "
            why += "are lost"
            remedy = nvidia(evidence, device.memory, "sudo nvidia-smi -pm 1")
            yield Finding("persistence", "note", part, found, why, remedy)
        if "exclusive" in mode or "prohibited" in mode:
            severity: Severity = "fail" if "prohibited" in mode else "warn"
            found = f"its compute mode is {device.compute_mode}"
            why = "a second process cannot open the device, so workers and peers fail"
            remedy = nvidia_option(evidence, device, "-c DEFAULT")
            yield Finding("compute-mode", severity, part, found, why, remedy)
        if device.mig:
            why = "each instance gets part of the memory bandwidth and engines, and no peer access"
            remedy = nvidia_option(evidence, device, f"-mig 0  # {_STOP_FIRST}")
            yield Finding("mig", "note", part, "it is partitioned (MIG)", why, remedy)
        if device.ecc is False and is_of_data_centre(device.model):
            found = "the error correction of its memory is off (ECC)"
            why = "bits of its memory that flip stay undetected: programs compute wrong results"
            on = nvidia_option(evidence, device, "-e 1  # takes effect when it is reset")
            remedy = (*on, "# Switch it on, and reset the device.")
            yield Finding("ecc-off", "warn", part, found, why, remedy)


def check_clocks(evidence: Evidence) -> Iterator[Finding]:
    """Reports clocks that are throttled (under load or else in the last state) or locked."""
    why = "kernels are slower, and so are copies by kernels"
    for device in latest_accelerators(evidence).values():
        loaded = held_under_load(evidence).get(device.memory, [])
        reasons_of = grouped((is_limit(one), one) for one in why_throttled(device, loaded))
        for is_capped, reasons in reasons_of.items():
            own = [(case, reading) for reason, case, reading in loaded if reason in reasons]
            degrees = [r.temperature_max for _, r in own if r.temperature_max is not None]
            hottest = max(degrees, default=device.temperature)
            found = f"clocks are throttled: {', '.join(reasons)}"
            found += f" (at {hottest:.0f} °C)" if hottest is not None else ""
            remedy = (*tools(evidence, "state"), "# Check the device's power supply and cooling.")
            cells = named(dict.fromkeys(case for case, _ in own))
            if is_capped:
                yield Finding("capped-clock", "warn", device.part, found, why, remedy, cells)
            else:
                yield Finding("clocks", "warn", device.part, found, why, remedy)
        locked, most = ((clock or 0.0) / 1e6 for clock in (device.locked_clock, device.max_clock))
        if 0 < locked < most:
            found = f"clocks are locked at {locked:.0f} MHz of {most:.0f}"
            remedy = nvidia_option(evidence, device, "-rgc")
            yield Finding("locked-clock", "warn", device.part, found, why, remedy, value=locked)


def check_ecc(evidence: Evidence) -> Iterator[Finding]:
    latest = latest_accelerators(evidence)
    for device in evidence.machine.accelerators.values():
        now = latest[device.memory]
        if now.remap_pending or device.remap_pending:
            found = "rows of its memory are waiting to be remapped"
            why = "the broken rows stay in use until the device is reset"
            remedy = nvidia_option(evidence, device, f"--gpu-reset  # {_STOP_FIRST}")
            yield Finding("row-remap", "fail", device.part, found, why, remedy)
        why = "the driver stops programs that read broken memory"
        before, rose = device.ecc_errors or 0, (now.ecc_errors or 0) - (device.ecc_errors or 0)
        shown = nvidia(evidence, device.memory, "nvidia-smi -q -d ECC,ROW_REMAPPER")
        if rose > 0:
            found = f"ECC could not correct {rose} memory errors during the run"
            remedy = (*shown, "# If the errors recur, replace the card.")
            yield Finding("ecc", "fail", device.part, found, why, remedy, value=rose)
        elif before:
            found = f"ECC could not correct {before} memory errors" + (
                " before the run" if evidence.results else ""
            )
            yield Finding("ecc", "warn", device.part, found, why, shown, value=before)


def check_processes(evidence: Evidence) -> Iterator[Finding]:
    """Reports other processes on a device, as a note if they only have the device open."""
    latest = latest_accelerators(evidence)
    using = at_work(evidence.machine.inventory, evidence.after, evidence.results)
    for memory, device in evidence.machine.accelerators.items():
        used = using.get(memory, ())
        pids = used or (*(device.processes or ()), *(latest[memory].processes or ()))
        listed = [*dict.fromkeys(map(str, pids))][:8]
        found = "other processes have it open, and were not seen to use it"
        why = "if they begin to use it, figures fall and scatter"
        if used:
            found = "other processes use it"
            why = "they share its links, memory and engines, so figures fall and scatter"
        if listed:
            remedy = (f"ps -fp {','.join(listed)}",)
            found += f" (PID {', '.join(listed)})"
            severity: Severity = "warn" if used else "note"
            yield Finding("processes", severity, device.part, found, why, remedy)


_OLDEST_ROCM = {"gfx950": (7, 0)}
"""The first ROCm whose libraries have kernels for an instruction set. Source: AMD's compatibility
matrix; "ROCm 7.0+ PyTorch wheels are required for MI350X" (vCPU benchmark suite)."""
_ROCM = re.compile(r"ROCm (\d+)\.(\d+)")


def check_runtime(evidence: Evidence) -> Iterator[Finding]:
    why = "kernels fail or end the process, although copies may work"
    for device in evidence.machine.accelerators.values():
        isa = (device.isa or "").partition(":")[0]
        if not isa:
            continue
        built_for = {one.partition(":")[0] for one in device.built_for or (isa,)}
        oldest, runtime = _OLDEST_ROCM.get(isa), _ROCM.search(device.runtime or "")
        found, wanted = "", "whose list of architectures has it"
        if oldest and runtime and tuple(map(int, runtime.groups())) < oldest:
            wanted = f"of ROCm {oldest[0]}.{oldest[1]} or newer"
            found = f"{isa} needs a torch {wanted}: this one is of {device.runtime}"
        elif isa not in built_for:
            found = f"torch has kernels for {', '.join(device.built_for or ())}, not for {isa}"
        if found:
            remedy = (f"# Install a torch for {isa}, {wanted}, from the index that AMD names.",)
            yield Finding("runtime", "fail", device.part, found, why, remedy)


_DATA_CENTRE = re.compile(r"\b(?:Tesla|Instinct|[ABHLPV]\d{1,3}S?|T4|G[BH]\d{3})\b")
"""Models for data centres, which have error correction on by default: A100, H200, L40S, GB200.
Names of cards for workstations contain RTX or Quadro."""
_SMALL_WINDOW = re.compile(r"\b(?:T4|P4|P40|M\d{1,2})\b")
"""Models for data centres whose window is small by design."""
_LEAST_MEMORY = 8 << 30
"""The least memory in bytes of all other models for data centres."""
_LESS = 0.99
_SAVING = ("powersave", "powersupersave")


def is_of_data_centre(model: str) -> bool:
    return bool(_DATA_CENTRE.search(model)) and not re.search("RTX|Quadro|GeForce", model)


def check_relaxed_ordering(evidence: Evidence) -> Iterator[Finding]:
    why = "its writes wait for earlier ones, and what it reads waits behind them, so that both "
    why += "ways at once are slow"
    for part, function in shown(evidence):
        if function.relaxed_ordering is False:
            found = "relaxed ordering is off (DevCtl)"
            remedy = (
                f"sudo setpci -s {function.address} CAP_EXP+8.w=10:10  # until the next boot",
                "# In the firmware's setup, enable relaxed ordering (PCIe).",
            )
            yield Finding("relaxed-ordering", "warn", part, found, why, remedy)


def check_aspm(evidence: Evidence) -> Iterator[Finding]:
    policy = evidence.machine.known.host.aspm_policy
    why = "a link that rests wakes up before each transfer: latencies grow, and small copies vary"
    remedy = (
        "echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy",
        "# For good, boot with pcie_aspm.policy=performance on the kernel's command line.",
    )
    if policy in _SAVING and evidence.machine.addresses:
        found = f"the kernel saves power on PCIe links: its policy of ASPM is {policy}"
        yield Finding("aspm", "warn", MACHINE, found, why, remedy)
    for hop in () if evidence.machine.is_virtual else hops(evidence):
        above = hop.port.aspm if hop.port is not None else ()
        states = sorted({*(hop.function.aspm or ()), *(above or ())})
        if states:
            models = [device.model for device in evidence.machine.all_devices]
            models += [device.model for device in evidence.machine.known.accelerators]
            large = any(map(is_of_data_centre, models))
            severity: Severity = "warn" if large else "note"
            found = f"its link may rest while idle (ASPM {' and '.join(states)})"
            yield Finding("aspm", severity, hop.part, found, why, remedy)


def check_window(evidence: Evidence) -> Iterator[Finding]:
    why = "adapters and other devices reach its memory through that window only, and map it again "
    why += "and again"
    for device in evidence.machine.accelerators.values():
        own, known = device.bar1_bytes, evidence.machine.by_memory.get(device.memory)
        size = known.memory_bytes if known is not None else None
        large = is_of_data_centre(device.model) and not _SMALL_WINDOW.search(device.model)
        least = size or (_LEAST_MEMORY if large else 0)
        if own is None or own >= least or device.mig:
            continue
        found = f"its window in PCI (BAR1) has {approximate_size(own)}, its memory "
        found += approximate_size(size) if size else f"at least {approximate_size(least)}"
        remedy = (
            "# In the firmware's setup, enable Above 4G Decoding and Resizable BAR.",
            "# In a virtual machine, give the guest a large 64-bit window (OVMF: X-PciMmio64Mb).",
        )
        severity: Severity = "warn" if large else "note"
        yield Finding("bar1", severity, device.part, found, why, remedy)


def check_power_limit(evidence: Evidence) -> Iterator[Finding]:
    """Reports a power limit below the default or, if unknown, the highest limit of the model."""
    devices = latest_accelerators(evidence).values()
    limits = grouped((device.model, device.power_limit or 0.0) for device in devices)
    why = "clocks fall under load to keep within it: kernels and their copies are slower"
    for device in devices:
        if not (limit := device.power_limit):
            continue
        usual, whose = device.power_default, "by default"
        if usual is None:
            usual, whose = max(limits[device.model]), "on others of its model"
        if limit < _LESS * usual:
            found = f"its power is limited to {limit:.0f} W, {usual:.0f} W {whose}"
            again = nvidia_option(evidence, device, f"-pl {usual:.0f}")
            remedy = (*again, "# If the rack's power allows it, set the board's own limit again.")
            yield Finding("power-limit", "warn", device.part, found, why, remedy, value=limit)


def check_gone(evidence: Evidence) -> Iterator[Finding]:
    listed = evidence.machine.functions
    for device in evidence.machine.known.accelerators if listed else ():
        if device.pci is not None and device.pci not in listed:
            found = f"its vendor's library lists it at {device.pci}, where the kernel shows no "
            found += "PCI function"
            why = "it fell off the bus or was removed while its driver was loaded"
            yield Finding("gone", "fail", device.part, found, why, DEVICE_LOST)
