"""Checks fabric links that are not active, and the switches to which they lead."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator

from linkgauge.judge.blame.counters import bundles
from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.pcie_chains import latest_accelerators
from linkgauge.judge.remedies import RESEAT_BRIDGE, RESET
from linkgauge.judge.vendor import tools
from linkgauge.machine.tree import ranges
from linkgauge.model.hardware.inventory import Accelerator
from linkgauge.model.hardware.part import Part, is_memory

from .fabric import fabric_manager

_HALVED = re.compile(r"\b[AH]800\b")
"""Boards that use only some of their links to switches."""


def check_switch(evidence: Evidence) -> Iterator[Finding]:
    """Reports a switch to which every device has lost links."""
    joined: dict[str, list[Accelerator]] = {}
    for device in latest_accelerators(evidence).values():
        to = {one.remote for one in device.links if one.remote and not is_memory(one.remote)}
        if to:
            name = to.pop() if len(to) == 1 else f"{device.links[0].kind} switches"
            joined.setdefault(name, []).append(device)
    for name, devices in joined.items():
        down = [_lost(evidence, device) for device in devices]
        if len(devices) > 1 and all(down):
            led = {link.remote or "" for d in devices for link in d.links if link.active is False}
            one = led.pop() if len(led) == 1 else ""
            at = Part.fabric_switch(name if not one or is_memory(one) else one)
            counts = [f"{d.memory} {n}" for d, n in zip(devices, down, strict=True)]
            found = f"each of {len(devices)} devices has lost links to it: {', '.join(counts[:8])}"
            why = "a fault in the shared part is likelier than one in each device"
            restart = "# Power the machine off and on. Check the switch board and its power supply."
            remedy = (*fabric_manager(evidence, devices[0]), restart)
            yield Finding("switch", "fail", at, found, why, remedy)


def _lost(evidence: Evidence, device: Accelerator) -> int:
    down = sum(link.active is False for link in device.links)
    # With a thousand devices, comparing each with all others takes long: only where links are down.
    return down - _unused(device).total() if down and _is_as_built(evidence, device) else down


def check_inactive(evidence: Evidence) -> Iterator[Finding]:
    reported: set[Part | str] = set()
    for device in latest_accelerators(evidence).values():
        for part, links in bundles(device).items():
            down = [link for link in links if link.active is False]
            if not down or part in reported:
                continue
            # A link that is down may not report its remote end: then all of its kind count.
            equivalent = [link for link in device.links if link.kind == down[0].kind]
            all_links = equivalent if down[0].remote is None else links
            up = [link for link in all_links if link.active]
            count = f"{len(down)} of {len(all_links)} {down[0].kind} links"
            if part == device.part and _is_as_built(evidence, device):
                if device.model not in reported:
                    why = f"each {device.model} here has as many inactive links: it was built so"
                    yield Finding("fabric-links", "note", part, f"{count} are inactive", why)
                reported.add(device.model)
                continue
            reported.add(part)
            numbers = ranges(link.index for link in down)
            noun = "number" if len(down) == 1 else "numbers"
            found = f"{count} of {device.memory} are inactive: {noun} {numbers}"
            why = "copies between devices go over PCIe"
            if up:
                why = f"the active ones carry {len(up) / len(all_links):.0%} of what all would"
            look = "linkgauge devices  # where each link leads"
            remedy = (
                *tools(evidence, "links"),
                *fabric_manager(evidence, device),
                look,
                RESET,
                RESEAT_BRIDGE,
            )
            yield Finding("fabric-links", "fail", part, found, why, remedy, value=len(down))


def _is_as_built(evidence: Evidence, device: Accelerator) -> bool:
    """Whether a device lacks links by design: all cards of its model lack equally many links before
    and after the run, and the form factor and model allow it."""
    cards, before = (
        [other for other in known.values() if other.model == device.model]
        for known in (latest_accelerators(evidence), evidence.machine.accelerators)
    )
    if any(_unused(other) != _unused(device) for other in (*cards, *before)):
        return False
    if any("switch" in (link.remote or "") for link in device.links):
        return bool(_HALVED.search(device.model))
    uses_some = any(link.active for link in device.links if link.kind in _unused(device))
    if device.form_factor == "SXM":
        return uses_some and len(cards) > 1
    return device.form_factor == "PCIe" or len(cards) > 1 or not uses_some


def _unused(device: Accelerator) -> Counter[str]:
    return Counter(
        link.kind for link in device.links if link.active is False and link.remote is None
    )
