"""Finds error counters that rose during a run, and device clocks that were throttled."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from operator import itemgetter

from linkgauge.judge.findings import Evidence
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import Accelerator, FabricLink, Reading
from linkgauge.model.hardware.part import Part

from .cases import Case, cases_of

_HARMLESS = re.compile("idle|display clock", re.IGNORECASE)
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
        more = Counter(after.errors) - Counter(before)  # only what is above 0
        if before is not None and after.errors is not None and more:
            rose[after.address] = more
    return rose


def _before_and_after(evidence: Evidence) -> Iterator[tuple[Accelerator, Accelerator]]:
    for after in evidence.after.accelerators if evidence.after else ():
        if (before := evidence.machine.accelerators.get(after.memory)) is not None:
            yield before, after


def replays(evidence: Evidence) -> dict[str, int]:
    """Returns how many PCIe packets each device sent again, by the name of its memory."""
    rose: dict[str, int] = {}
    for before, after in _before_and_after(evidence):
        was, now = before.pcie_replays, after.pcie_replays or 0
        if was is not None and now > was:
            rose[after.memory] = now - was
    return rose


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
            counted = 0
            for link in links:
                earlier = was.get((link.kind, link.index))
                if link.errors is not None and earlier is not None:
                    counted += link.errors - earlier
            rose[part] = max(rose.get(part, 0), counted)  # both ends may count the same
    return {part: more for part, more in rose.items() if more > 0}


def troubled(evidence: Evidence, used: Iterable[Part]) -> frozenset[Part]:
    """Returns links that counted errors, and switches whose `used` links all counted errors."""
    again = map(Part.pcie_link, replays(evidence))
    found = frozenset((*fabric_errors(evidence), *again, *_pcie(evidence)))
    if any(cell.rises for cell in evidence.cells()):
        from linkgauge.judge.network_counters import network_errors

        found |= {*network_errors(evidence)}
    if not found:
        return frozenset()
    joints = evidence.machine.wiring.joints().items()
    meeting = ((joint, links & set(used)) for joint, links in joints)
    return found.union(joint for joint, links in meeting if len(links) > 1 and links <= found)


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
        if not _HARMLESS.search(reason)
    )


def is_limit(reason: str) -> bool:
    return reason.lower() in _LIMITS


def why_throttled(device: Accelerator, loaded: Iterable[Held]) -> list[str]:
    reasons = list(map(itemgetter(0), loaded)) or device.throttled
    return sorted({reason for reason in reasons if not _HARMLESS.search(reason)})


def slowed(evidence: Evidence) -> frozenset[Part]:
    """Returns throttled devices. Limits such as the power cap do not count in matrix products."""
    latest = (evidence.after or evidence.machine.known).accelerators
    held, found = held_under_load(evidence), set[Part]()
    for device in latest:
        loaded = [one for one in held.get(device.memory, ())
                  if not (one[1].cell.does.product and is_limit(one[0]))]  # fmt: skip
        if why_throttled(device, loaded):
            found.add(device.part)
    return frozenset(found)
