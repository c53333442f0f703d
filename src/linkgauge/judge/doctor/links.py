"""Checks of PCI Express: what each link trained to, and what is set on the way."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from msgspec.structs import replace

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.model.inventory import Accelerator, PciFunction, PciLink

from . import retrain

LEAST_READ_REQUEST = 512
"""Bytes. With less, requests take so many packets that reads stay below the link's rate."""


class _Way:
    """A link as its lower end sees it: the function, and the port above it, if that shows."""

    def __init__(self, name: str, function: PciFunction, port: PciFunction | None) -> None:
        self.name = name
        self.function = function
        self.port = port
        self.link = function.link
        above = port.link if port else PciLink()
        self.speed = _least(self.link.max_speed, above.max_speed)
        self.width = _least(self.link.max_width, above.max_width)

    @property
    def subject(self) -> str:
        address = self.function.address
        return address if self.name == address else f"{self.name} ({address})"


def _virtual(evidence: Evidence) -> bool:
    """Whether bridges may be a hypervisor's: what they say need not be so."""
    return evidence.inventory.host.hypervisor is not None


def _least(one: float | None, other: float | None) -> float | None:
    known = [value for value in (one, other) if value is not None]
    return min(known) if known else None


def ways(evidence: Evidence) -> Iterator[_Way]:
    """The link of each accelerator and RDMA adapter, and of each switch above one."""
    named = {address: name for name, address in evidence.addresses.items()}
    named |= {adapter.pci: adapter.name for adapter in evidence.inventory.adapters if adapter.pci}
    seen: set[str] = set()
    for address in named:
        functions = list(chain(evidence, address)) or [_hidden(evidence, address)]
        for function in functions:
            ends = function.address == address or function.port == "upstream port"
            if ends and function.address not in seen:
                seen.add(function.address)
                name = named.get(function.address, function.address)
                above = evidence.functions.get(function.parent or "")
                yield _Way(name, _completed(function, evidence.accelerators.get(name)), above)


def _hidden(evidence: Evidence, address: str) -> PciFunction:
    """What is known of a device of which PCI shows nothing."""
    return PciFunction(address=address, unknown=evidence.inventory.unknown)


def _completed(function: PciFunction, told: Accelerator | None) -> PciFunction:
    """With what the vendor's library tells of the link where PCI does not."""
    if told is None:
        return function
    missing = {
        name: value
        for name in PciLink.__struct_fields__
        if getattr(function.link, name) is None and (value := getattr(told.link, name)) is not None
    }
    return replace(function, link=replace(function.link, **missing)) if missing else function


def chain(evidence: Evidence, address: str) -> Iterator[PciFunction]:
    """A function and each bridge above it. Loops end."""
    seen: set[str] = set()
    here = evidence.functions.get(address)
    while here is not None and here.address not in seen:
        seen.add(here.address)
        yield here
        here = evidence.functions.get(here.parent or "")


def check_link_speed(evidence: Evidence) -> Iterator[Finding]:
    """Speed under load against what both ends can do; idle links may rest at a low one."""
    for way in ways(evidence):
        loaded = [r.link_speed for r in evidence.readings.get(way.name, ()) if r.link_speed]
        idle, best = way.link.speed, way.speed
        if best is None or (idle is None and not loaded):
            yield _not_told("link-speed", way, "the link's speed, or the highest it can have,")
            continue
        at = max(loaded) if loaded else idle
        if at is not None and at < best:
            yield _slow(way, at, best, bool(loaded), evidence)
        elif idle is not None and idle < best:
            yield Finding(
                check="link-speed",
                severity="note",
                subject=way.subject,
                found=f"{idle:g} GT/s while idle, {at:g} GT/s under load",
                why="the link saves power while nothing crosses it: figures are not affected",
            )


def _slow(way: _Way, at: float, best: float, loaded: bool, evidence: Evidence) -> Finding:
    when = "under load" if loaded else "while idle"
    sure = loaded or way.name not in evidence.addresses
    doubt = "" if sure else ": or it saves power and speeds up under load, which a run would show"
    return Finding(
        check="link-speed",
        severity="fail" if loaded else "warn",
        subject=way.subject,
        found=f"the link runs at {at:g} GT/s {when}; both ends can do {best:g}{doubt}",
        why=f"it moves {at / best:.0%} of what it could",
        remedy=retrain.lines(way.port, way.function, best, virtual=_virtual(evidence)),
    )


def check_link_width(evidence: Evidence) -> Iterator[Finding]:
    for way in ways(evidence):
        loaded = [r.link_width for r in evidence.readings.get(way.name, ()) if r.link_width]
        at, best = max(loaded, default=way.link.width), way.width
        if at is None or best is None:
            yield _not_told("link-width", way, "the link's width, or the most it can have,")
        elif at < best:
            yield Finding(
                check="link-width",
                severity="fail",
                subject=way.subject,
                found=f"the link has x{at} lanes of x{best:g}",
                why=f"it moves {at / best:.0%} of what it could",
                remedy=(
                    (
                        "reseat the card and its riser, clean the contacts, try another slot; "
                        "in the firmware's setup, see that the slot is not bifurcated"
                    ),
                ),
            )


def _not_told(check: str, way: _Way, what: str) -> Finding:
    told = [text for text in way.function.unknown if "link." in text]
    reasons = "; ".join(told or way.function.unknown)
    return Finding(
        check=check,
        severity="unknown",
        subject=way.subject,
        found=f"{what} cannot be read{': ' if reasons else ''}{reasons}",
        remedy=(f"sudo lspci -vv -s {way.function.address}",),
    )


def check_bridge(evidence: Evidence) -> Iterator[Finding]:
    """Each bridge above a device should be able to do what the device can."""
    for name, address in evidence.addresses.items():
        function = evidence.functions.get(address)
        own = _capacity(function.link) if function else None
        if function is None or own is None:
            continue
        for bridge in list(chain(evidence, address))[1:]:
            most = _capacity(bridge.link)
            if most is not None and most < own:
                link = bridge.link
                yield Finding(
                    check="bridge",
                    severity="note" if _virtual(evidence) else "warn",
                    subject=f"{name} ({address})",
                    found=f"{bridge.address} above it can do {link.max_speed:g} GT/s "
                    f"x{link.max_width}, the device {function.link.max_speed:g} GT/s "
                    f"x{function.link.max_width}",
                    why="no setting makes the device faster than what is above it",
                    remedy=("move the card to a slot of its own generation and width",),
                )
                break


def _capacity(link: PciLink) -> float | None:
    """GT/s of all lanes at most."""
    if link.max_speed is None or link.max_width is None:
        return None
    return link.max_speed * link.max_width


def check_target_speed(evidence: Evidence) -> Iterator[Finding]:
    """Link Control 2 of the port above says how fast the link may train."""
    for way in ways(evidence):
        port = way.port
        if port is None or port.link.target is None or way.speed is None:
            continue
        if port.link.target < way.speed:
            held = way.link.speed is None or way.link.speed <= port.link.target
            yield Finding(
                check="target-speed",
                severity="fail" if held else "note",
                subject=way.subject,
                found=f"the port above it, {port.address}, asks for {port.link.target:g} GT/s at "
                f"most (LnkCtl2); both ends can do {way.speed:g}",
                why="the link trains no faster than that at every start",
                remedy=retrain.lines(port, way.function, way.speed, virtual=_virtual(evidence)),
            )


def check_payload(evidence: Evidence) -> Iterator[Finding]:
    """MaxPayload must be the same on both ends; a larger one costs less overhead."""
    for way in ways(evidence):
        own, port = way.function.max_payload, way.port
        if own is None or port is None or port.max_payload is None:
            yield Finding(
                check="payload",
                severity="unknown",
                subject=way.subject,
                found="MaxPayload of both ends cannot be read"
                + (": no port above it shows" if port is None else ""),
                remedy=(f"sudo lspci -vv -s {way.function.address} | grep MaxPayload",),
            )
        elif own != port.max_payload:
            hidden = _virtual(evidence)
            yield Finding(
                check="payload",
                severity="unknown" if hidden else "fail" if own > port.max_payload else "warn",
                subject=way.subject,
                found=f"MaxPayload is {own} bytes, that of {port.address} {port.max_payload}"
                + (": a virtual machine's ports are made up, look on its host" if hidden else ""),
                why="a packet longer than the other end takes is an error: transfers fail or crawl",
                remedy=("boot with pci=pcie_bus_safe on the kernel's command line",),
            )


def check_read_request(evidence: Evidence) -> Iterator[Finding]:
    for way in ways(evidence):
        size = way.function.max_read_request
        if way.function.port == "upstream port" or way.link.max_speed is None:
            continue  # a switch asks for nothing itself, and what has no PCIe link, not over it
        if size is not None and size < LEAST_READ_REQUEST:
            yield Finding(
                check="read-request",
                severity="warn",
                subject=way.subject,
                found=f"MaxReadReq is {size} bytes",
                why="reads ask in small pieces and stay below the link's rate",
                remedy=(
                    (
                        f"sudo setpci -s {way.function.address} CAP_EXP+8.w=5000:7000"
                        "  # 4096 bytes; lost at the next start"
                    ),
                ),
            )


def check_acs(evidence: Evidence) -> Iterator[Finding]:
    """Redirection on a path between two devices sends their traffic through the root complex."""
    above = {
        name: [f.address for f in chain(evidence, address)][1:]
        for name, address in evidence.addresses.items()
    }
    redirecting: dict[str, list[str]] = {}
    for one, other in combinations(above, 2):
        shared = set(above[one]) & set(above[other])
        if not shared:
            continue
        for port in (p for p in above[one] + above[other] if p not in shared):
            if any("redirect" in way.lower() for way in evidence.functions[port].acs or ()):
                redirecting.setdefault(port, []).append(f"{one}-{other}")
    for port, pairs in redirecting.items():
        yield Finding(
            check="acs",
            severity="warn",
            subject=port,
            found=f"ACS redirects peer traffic of {', '.join(pairs[:4])}: "
            f"{', '.join(evidence.functions[port].acs or ())}",
            why="copies between devices below one switch go up to the root complex and back",
            remedy=(
                (
                    f"sudo setpci -s {port} ECAP_ACS+6.w=0:1c  # not where devices are passed to "
                    "VMs: there it isolates them"
                ),
            ),
        )


def check_counters(evidence: Evidence) -> Iterator[Finding]:
    """Error counters that rose while the run measured."""
    if evidence.after is None:
        return
    now = {function.address: function.errors for function in evidence.after.pci}
    named = {address: name for name, address in evidence.addresses.items()}
    for address, function in evidence.functions.items():
        before, after = function.errors, now.get(address)
        if before is None or after is None:
            continue
        rose = {kind: n - before.get(kind, 0) for kind, n in after.items()}
        rose = {kind: n for kind, n in rose.items() if n > 0}
        if rose:
            name = named.get(address)
            yield Finding(
                check="link-errors",
                severity="warn" if set(rose) == {"correctable"} else "fail",
                subject=f"{name} ({address})" if name else address,
                found="AER counters rose during the run: "
                + ", ".join(f"{kind} +{count}" for kind, count in rose.items()),
                why="packets that arrive broken are sent again: the link or its contacts are bad",
                remedy=("reseat the card and its riser or cable; sudo dmesg | grep -i aer",),
            )


def check_replays(evidence: Evidence) -> Iterator[Finding]:
    if evidence.after is None:
        return
    for after in evidence.after.accelerators:
        before = evidence.accelerators.get(after.memory)
        if before is None or before.pcie_replays is None or after.pcie_replays is None:
            continue
        if after.pcie_replays > before.pcie_replays:
            yield Finding(
                check="link-errors",
                severity="warn",
                subject=after.memory,
                found=f"{after.pcie_replays - before.pcie_replays} packets were sent again over "
                "PCIe during the run",
                why="the link or its contacts are bad",
                remedy=("reseat the card and its riser or cable",),
            )


CHECKS = (
    check_link_speed,
    check_link_width,
    check_bridge,
    check_target_speed,
    check_payload,
    check_read_request,
    check_acs,
    check_counters,
    check_replays,
)
