"""Finds error counters that rose during a run, and device clocks that were throttled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache

from linkgauge.judge.findings import Evidence
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Accelerator, FabricLink, Reading
from linkgauge.model.hardware.part import Part

from .cases import Case, cases_of

_HARMLESS = ("idle", "display clock")
"""Reasons for low clocks that are harmless."""
_LIMITS = ("power cap", "current limit", "clocks set by the user", "sync boost")
"""Reasons for low clocks that are limits by design, or set by a person: every device that
multiplies matrices draws the power that it is allowed. All other reasons are faults, or heat."""


def pci_errors(evidence: Evidence) -> dict[str, dict[str, int]]:
    """Returns the AER errors that rose, by the function's PCI address and by severity."""
    rose: dict[str, dict[str, int]] = {}
    for after in evidence.after.pci if evidence.after else ():
        function = evidence.machine.functions.get(after.address)
        before = function.errors if function else None
        if before is not None and after.errors is not None:
            rose[after.address] = Counter(after.errors) - Counter(before)  # only what is above 0
    return {address: more for address, more in rose.items() if more}


def _before_and_after(evidence: Evidence) -> Iterator[tuple[Accelerator, Accelerator]]:
    for after in evidence.after.accelerators if evidence.after else ():
        if (before := evidence.machine.accelerators.get(after.memory)) is not None:
            yield before, after


def replays(evidence: Evidence) -> dict[str, int]:
    """Returns how many PCIe packets each device sent again, by the name of its memory."""
    rose = {
        after.memory: (after.pcie_replays or 0) - before.pcie_replays
        for before, after in _before_and_after(evidence) if before.pcie_replays is not None
    }  # fmt: skip
    return {memory: more for memory, more in rose.items() if more > 0}


def bundles(device: Accelerator) -> dict[Part, list[FabricLink]]:
    """Groups a device's fabric links by the part to which they lead, or the device if unknown."""
    return grouped(
        (Part.link(device.memory, link.remote) if link.remote else device.part, link)
        for link in device.links
    )


def fabric_errors(evidence: Evidence) -> dict[Part, int]:
    rose: dict[Part, int] = {}
    for before, after in _before_and_after(evidence):
        # Libraries number the links of each kind from 0.
        was = {(link.kind, link.index): link.errors for link in before.links}
        for part, links in bundles(after).items():
            counted = sum(
                link.errors - earlier
                for link in links
                if link.errors is not None
                and (earlier := was.get((link.kind, link.index))) is not None
            )
            rose[part] = max(rose.get(part, 0), counted)  # both ends may count the same
    return {part: more for part, more in rose.items() if more > 0}


def troubled(evidence: Evidence, used: Iterable[Part]) -> frozenset[Part]:
    """Returns links that counted errors, and switches whose `used` links all counted errors."""
    found = {*fabric_errors(evidence), *map(Part.pcie_link, replays(evidence)), *_pcie(evidence)}
    if any(cell.rises for cell in evidence.cells()):
        from linkgauge.judge.network_counters import network_errors

        found |= {*network_errors(evidence)}
    joints = evidence.machine.wiring.joints().items()
    meeting = ((joint, links & set(used)) for joint, links in joints)
    return frozenset(
        found | {joint for joint, links in meeting if len(links) > 1 and links <= found}
    )


def _pcie(evidence: Evidence) -> Iterator[Part]:
    counted = pci_errors(evidence)
    names = evidence.machine.named
    for address, function in evidence.machine.functions.items():
        is_lower_end = function.port != "downstream port"  # above it is only its own switch
        if is_lower_end and not counted.keys().isdisjoint({address, function.parent}):
            yield Part.pcie_link(names.get(address, address), address)


Held = tuple[str, Case, Reading]
"""A reason why clocks were low under load, with the cell and the reading that show it."""


@lru_cache(maxsize=1)
def held_under_load(evidence: Evidence) -> dict[str, list[Held]]:
    return grouped(
        (reading.memory, (reason, case, reading))
        for case in cases_of(evidence)
        for reading in case.cell.readings
        for reason in reading.throttled
        if not any(word in reason.lower() for word in _HARMLESS)
    )


def is_limit(reason: str) -> bool:
    return reason.lower() in _LIMITS


def why_throttled(device: Accelerator, loaded: Iterable[Held]) -> list[str]:
    reasons = [reason for reason, *_ in loaded] or device.throttled
    return sorted({r for r in reasons if not any(word in r.lower() for word in _HARMLESS)})


def slowed(evidence: Evidence) -> frozenset[Part]:
    """Returns throttled devices. Limits such as the power cap do not count in matrix products."""
    latest = (evidence.after or evidence.machine.known).accelerators
    loaded = {
        memory: [one for one in held if not (one[1].cell.does.product and is_limit(one[0]))]
        for memory, held in held_under_load(evidence).items()
    }
    return frozenset(one.part for one in latest if why_throttled(one, loaded.get(one.memory, ())))
