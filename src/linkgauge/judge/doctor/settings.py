"""Checks for devices with settings other than their defaults, and for differences between the
vendor's library and PCI."""

from __future__ import annotations

import re
from collections.abc import Iterator

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.pcie_chains import hops, latest_accelerators, shown
from linkgauge.judge.remedies import DEVICE_LOST
from linkgauge.judge.vendor import nvidia_option
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import MACHINE
from linkgauge.model.units import approximate_size

_DATA_CENTRE = re.compile(r"\b(?:Tesla|Instinct|[ABHLPV]\d{1,3}S?|T4|G[BH]\d{3})\b")
"""Models for data centres, which have error correction on by default: A100, H200, L40S, GB200.
Names of cards for workstations contain RTX or Quadro."""
_SMALL_WINDOW = re.compile(r"\b(?:T4|P4|P40|M\d{1,2})\b")
"""Models for data centres whose window is small by design."""
_LEAST_MEMORY = 8 << 30
"""The least memory in bytes of all other models for data centres."""
_LESS = 0.99
"""The least share of the usual power limit that counts as equal."""
_SAVING = ("powersave", "powersupersave")


def is_of_data_centre(model: str) -> bool:
    return bool(_DATA_CENTRE.search(model)) and not re.search("RTX|Quadro|GeForce", model)


def check_relaxed_ordering(evidence: Evidence) -> Iterator[Finding]:
    """Checks for devices without relaxed ordering of writes. Devices that nobody has set up do not
    count."""
    why = (
        "its writes wait for earlier ones, and what it reads waits behind them, so that both ways "
    )
    why += "at once are slow"
    for part, function in shown(evidence):
        if function.relaxed_ordering is False:
            found = "relaxed ordering is off (DevCtl)"
            remedy = (
                f"sudo setpci -s {function.address} CAP_EXP+8.w=10:10  # until the next boot",
                "# In the firmware's setup, enable relaxed ordering (PCIe).",
            )
            yield Finding("relaxed-ordering", "warn", part, found, why, remedy)


def check_aspm(evidence: Evidence) -> Iterator[Finding]:
    """Checks for links on a device's path that may sleep (ASPM), and for a kernel policy that
    allows it."""
    policy = evidence.machine.known.host.aspm_policy
    why = "a link that rests wakes up before each transfer: latencies grow, and small copies vary"
    remedy = (
        "echo performance | sudo tee /sys/module/pcie_aspm/parameters/policy",
        "# For good, boot with pcie_aspm.policy=performance on the kernel's command line.",
    )
    if policy in _SAVING and evidence.machine.addresses:
        found = f"the kernel saves power on PCIe links: its policy of ASPM is {policy}"
        yield Finding("aspm", "warn", MACHINE, found, why, remedy)
    models = {device.model for device in evidence.machine.all_devices}
    models |= {device.model for device in evidence.machine.accelerators.values()}
    severity: Severity = "warn" if any(map(is_of_data_centre, models)) else "note"
    for hop in () if evidence.machine.is_virtual else hops(evidence):
        above = hop.port.aspm if hop.port is not None else ()
        states = sorted({*(hop.function.aspm or ()), *(above or ())})
        if states:
            found = f"its link may rest while idle (ASPM {' and '.join(states)})"
            yield Finding("aspm", severity, hop.part, found, why, remedy)


def check_window(evidence: Evidence) -> Iterator[Finding]:
    """Checks for devices whose memory others can reach only through a small window (BAR1)."""
    sizes = {device.memory: device.memory_bytes for device in evidence.machine.all_devices}
    why = "adapters and other devices reach its memory through that window only, and map it again "
    why += "and again"
    for device in evidence.machine.accelerators.values():
        own, size = device.bar1_bytes, sizes.get(device.memory)
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


def check_error_correction(evidence: Evidence) -> Iterator[Finding]:
    why = "bits of its memory that flip stay unseen: programs compute wrong results"
    for device in evidence.machine.accelerators.values():
        if device.ecc is False and is_of_data_centre(device.model):
            found = "the error correction of its memory is off (ECC)"
            on = nvidia_option(evidence, device, "-e 1  # takes effect when it is reset")
            remedy = (*on, "# Switch it on, and reset the device.")
            yield Finding("ecc-off", "warn", device.part, found, why, remedy)


def check_power_limit(evidence: Evidence) -> Iterator[Finding]:
    """Checks for a power limit below the board's default, or below that of other boards of the
    model."""
    devices = latest_accelerators(evidence).values()
    why = "clocks fall under load to keep within it: kernels, and copies by them, are slower"
    limits = grouped((device.model, device.power_limit or 0.0) for device in devices)
    most = {model: max(alike) for model, alike in limits.items()}
    for device in devices:
        limit = device.power_limit
        usual, whose = device.power_default, "by default"
        if usual is None:
            usual, whose = most[device.model], "on others of its model"
        if limit and limit < _LESS * usual:
            found = f"its power is limited to {limit:.0f} W, {usual:.0f} W {whose}"
            again = nvidia_option(evidence, device, f"-pl {usual:.0f}")
            remedy = (*again, "# If the rack's power allows it, set the board's own limit again.")
            yield Finding("power-limit", "warn", device.part, found, why, remedy)


def check_gone(evidence: Evidence) -> Iterator[Finding]:
    """Checks for devices that their vendor's library lists but PCI does not."""
    inventory = evidence.machine.known
    listed = {function.address for function in inventory.pci}
    for device in inventory.accelerators if listed else ():
        if device.pci is not None and device.pci not in listed:
            found = f"its vendor's library lists it at {device.pci}, where the kernel shows no "
            found += "PCI function"
            why = "it fell off the bus or was removed while its driver was loaded"
            yield Finding("gone", "fail", device.part, found, why, DEVICE_LOST)
