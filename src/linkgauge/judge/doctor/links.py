"""Checks PCIe links, and writes the commands that retrain a link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from linkgauge.judge.findings import Evidence, Finding, Severity
from linkgauge.judge.pcie_chains import PcieChain, hops, share_of_peers, shown
from linkgauge.judge.remedies import (
    DEVICE,
    DEVICE_LOST,
    PORT_ABOVE,
    POWER_CYCLE,
    RESEAT,
    kernel_log,
    link_state,
)
from linkgauge.machine.tree import ADDRESS
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.inventory import PciFunction, PciLink
from linkgauge.model.hardware.part import Part
from linkgauge.model.hardware.pcie import generation, link_rate

LEAST_READ_REQUEST = 512
"""Smaller requests, in bytes, need so many packets that reads stay below the link's rate."""
UNDER_LOAD = ("linkgauge run --profile quick  # reads the speed under load",)
LEAST_WORN = 3
"""The fewest links with errors that point to their switch: two may have two faults."""


def check_silent(evidence: Evidence) -> Iterator[Finding]:
    named = evidence.machine.named
    found = "it does not answer: every register reads as ones"
    why = "it fell off the bus, lost power or was removed, so nothing reaches it"
    for at, function in evidence.machine.functions.items():
        if function.silent:
            look = f"cat /sys/bus/pci/devices/{at}/power_state  # D3cold means asleep, not lost"
            part, remedy = Part.device(named.get(at, at), at), (look, *DEVICE_LOST)
            yield Finding("silent", "fail", part, found, why, remedy)


def check_switches(evidence: Evidence) -> Iterator[Finding]:
    """Reports a switch or bridge with two slow links or more and no fast one, or with three links
    or more that are all slow or counted errors."""
    joined = grouped((joint, hop) for hop in hops(evidence) for joint in _joins(hop))
    for joint, beside in joined.items():
        slow = [hop for hop in beside if hop.is_slow]
        worn = [hop for hop in beside if hop.is_slow or hop.rose or hop.again]
        if len(slow) > 1 and not any(hop.is_slow is False for hop in beside):
            what, of = "that was used is slow", slow
        elif len(worn) >= LEAST_WORN and len(worn) == len(beside):
            what, of = "is slow or counted errors", worn
        else:
            continue
        links = ", ".join(hop.part.name for hop in of[:6])
        found = f"every link {what} ({len(of)}): {links}"
        why = "a fault in the shared part is likelier than one in each link"
        remedy = (
            link_state(of[0].function.address),
            "# In the firmware's setup, look for a limit on the speed or width of its links.",
            f"# Update its firmware. {POWER_CYCLE.removeprefix('# ')}",
        )
        yield Finding("switch", "fail", joint, found, why, remedy)


def _joins(hop: PcieChain) -> Iterator[Part]:
    if hop.function.port == "upstream port":
        yield Part.pcie_switch(hop.function.address)
    if hop.port is not None and hop.port.port == "downstream port" and hop.port.parent:
        yield Part.pcie_switch(hop.port.parent)
    if hop.port is not None and hop.port.port == "root port":
        yield Part.host_bridge(hop.port.address)


def check_target_speed(evidence: Evidence) -> Iterator[Finding]:
    """Reports a port whose target speed limits its link."""
    virtual = evidence.machine.is_virtual
    for hop in hops(evidence):
        port = _asking(hop, evidence)
        if port is not None and hop.speed is not None:
            target = port.link.target or 0.0
            held = hop.link.speed is None or hop.link.speed <= target
            found = f"the port above it, {port.address}, limits the link to {target:g} GT/s"
            why = "the link trains to no more than that at every boot"
            if virtual:
                found = f"the emulated port above it, {port.address}, asks for {target:g} GT/s"
                why = "the host's real port, which a guest cannot read, is probably limited, too: "
                why += "its firmware may set that limit at each boot"
            runs = ", and the card's link runs at that speed" if held and virtual else ""
            found += f" (LnkCtl2){runs}; {_able(hop.both_speeds, f'{hop.speed:g} GT/s', evidence)}"
            remedy = retraining(port, hop.function, hop.speed, virtual=virtual)
            yield Finding("target-speed", "fail" if held else "note", hop.part, found, why, remedy)


def _asking(hop: PcieChain, evidence: Evidence) -> PciFunction | None:
    virtual = evidence.machine.is_virtual
    port = evidence.machine.functions.get(hop.function.parent or "") if virtual else hop.port
    if port is None or port.link.target is None or hop.speed is None:
        return None
    asks_most = virtual and port.link.target == port.link.max_speed
    return port if port.link.target < hop.speed and not asks_most else None


def check_link_speed(evidence: Evidence) -> Iterator[Finding]:
    for hop in hops(evidence):
        idle, best, at = hop.link.speed, hop.speed, hop.loaded_speed or hop.link.speed
        if best is None or at is None:
            yield _unread(hop, "speed", evidence)
        elif at < best:
            yield _slow(hop, at, best, evidence)
        elif idle is not None and idle < best:
            found = f"{idle:g} GT/s while idle, {at:g} GT/s under load"
            why = "the link saves power while idle, which does not affect the figures"
            yield Finding("link-speed", "note", hop.part, found, why)


def _slow(hop: PcieChain, at: float, best: float, evidence: Evidence) -> Finding:
    loaded = hop.loaded_speed is not None or hop.is_confirmed
    port = _asking(hop, evidence)
    held = port is not None and at <= (port.link.target or 0.0)
    when = "" if loaded else " while idle"
    if hop.loaded_speed is not None:
        when = " under load"
    if hop.fastest and hop.fastest > at:
        when = f" under load, after {hop.fastest:g} earlier"
    why = f"that is {link_rate(at, 1) / link_rate(best, 1):.0%} of its possible rate"
    able = _able(hop.both_speeds, f"{best:g} GT/s", evidence)
    if not (loaded or held):
        found = f"{at:g} GT/s{when}; {able}"
        why = "it may only be saving power: a run under load shows whether it is faster then"
        return Finding("link-speed", "note", hop.part, found, why, UNDER_LOAD)
    severity: Severity = "fail" if loaded and hop.both_speeds else "warn"
    found = f"the link runs at {at:g} GT/s{when}; {able}"
    remedy = retraining(hop.port, hop.function, best, virtual=evidence.machine.is_virtual)
    return Finding("link-speed", severity, hop.part, found, why, remedy, value=at)


def _able(both: bool, most: str, evidence: Evidence) -> str:
    if evidence.machine.is_virtual:  # the upper end is a port of the host
        return f"the device supports {most}"
    if both:
        return f"both ends support {most}"
    return f"its lower end supports {most}, the upper end is unknown"


def check_link_width(evidence: Evidence) -> Iterator[Finding]:
    remedy = (
        f"{RESEAT} Clean the contacts, or try another slot.",
        "# In the firmware's setup, check that the slot is not bifurcated.",
    )
    for hop in hops(evidence):
        at, best = hop.loaded_width or hop.link.width, hop.width
        if at is None or best is None:
            yield _unread(hop, "width", evidence)
        elif at < best:
            severity: Severity = "fail" if hop.both_widths else "warn"
            found = f"the link runs at x{at}; {_able(hop.both_widths, f'x{best:g}', evidence)}"
            why = f"that is {at / best:.0%} of its possible rate"
            yield Finding("link-width", severity, hop.part, found, why, remedy, value=at)


def _unread(hop: PcieChain, what: str, evidence: Evidence) -> Finding:
    fields = {f"link.{what}", f"link.max_{what}"}
    gaps = (one for one in hop.function.unknown if not one.fields or fields & {*one.fields})
    reasons = "; ".join(one.why for one in gaps)
    found = f"cannot read the link's {what} or its maximum{f': {reasons}' if reasons else ''}"
    remedy = () if evidence.machine.simulated else (link_state(hop.function.address),)
    return Finding(f"link-{what}", "unknown", hop.part, found, remedy=remedy)


def check_bridge(evidence: Evidence) -> Iterator[Finding]:
    """Reports a device below a slower bridge; if all devices of its model are, only as a note."""
    why = "the device cannot be faster than the bridge above it"
    remedy = ("# Move the card to a slot of its own generation and width.",)
    devices = [(part, one, _slower(one, evidence)) for part, one in shown(evidence)]
    for part, function, bridge in devices:
        if bridge is None:
            continue
        able, link = bridge.link, function.link
        found = f"supports {able.max_speed:g} GT/s x{able.max_width}, the device"
        found = f"above it {found} {link.max_speed:g} GT/s x{link.max_width}"
        model = function.vendor, function.device
        equivalent = [
            above and _capacity(above.link)
            for _, one, above in devices
            if (one.vendor, one.device) == model
        ]
        if len(equivalent) > 1 and set(equivalent) == {_capacity(able)}:
            built = f"{why}; so it is for all {len(equivalent)} of them, as the machine is built"
            yield Finding("bridge", "note", part, f"the bridge {found}", built)
        else:
            yield Finding("bridge", "warn", part, f"{bridge.address} {found}", why, remedy)


def _slower(function: PciFunction, evidence: Evidence) -> PciFunction | None:
    own = _capacity(function.link) or 0.0
    above = evidence.machine.pci_line(function.address)[1:]
    return next((one for one in above if (_capacity(one.link) or own) < own), None)


def _capacity(link: PciLink) -> float | None:
    if link.max_speed is None or link.max_width is None:
        return None
    return link.max_speed * link.max_width


def check_payload(evidence: Evidence) -> Iterator[Finding]:
    for hop in hops(evidence):
        own, port = hop.function.max_payload, hop.port
        if own is None or port is None or port.max_payload is None:
            found = "cannot read MaxPayload of both ends"
            virtual = evidence.machine.is_virtual
            above = "is emulated, and hides the host's own" if virtual else "is not visible"
            found += f": the port above it {above}" if port is None else ""
            look = "sudo lspci -vv | grep -E '^([0-9a-f])|MaxPayload'  # both must be equal"
            where = ("# On the host, which shows the real port:",) if virtual else ()
            yield Finding("payload", "unknown", hop.part, found, remedy=(*where, look))
        elif own != port.max_payload:
            found = f"MaxPayload is {own} bytes here and {port.max_payload} at {port.address}"
            why = "the other end rejects longer packets, so transfers fail or crawl"
            remedy = ("# Boot with pci=pcie_bus_safe on the kernel's command line.",)
            severity: Severity = "fail" if own > port.max_payload else "warn"
            yield Finding("payload", severity, hop.part, found, why, remedy)


def check_read_request(evidence: Evidence) -> Iterator[Finding]:
    for hop in hops(evidence):
        size = hop.function.max_read_request
        # A switch requests nothing itself; a device without a PCIe link uses none.
        asks = hop.function.port != "upstream port" and hop.link.max_speed is not None
        if asks and size is not None and size < LEAST_READ_REQUEST:
            found = f"MaxReadReq is {size} bytes"
            why = "small read requests keep reads below the link's rate"
            remedy = f"sudo setpci -s {hop.function.address} CAP_EXP+8.w=5000:7000"
            remedy += "  # 4096 bytes, until the next boot"
            yield Finding("read-request", "warn", hop.part, found, why, (remedy,))


def redirecting(evidence: Evidence) -> dict[str, list[tuple[str, str]]]:
    """Returns, by port, device pairs whose traffic the port redirects through the root complex."""
    functions, devices = evidence.machine.functions, evidence.machine.addresses
    redirect = {at for at, one in functions.items() if "redirect" in f"{one.acs}".lower()}
    if not redirect:
        return {}
    above = {
        name: {f.address for f in evidence.machine.pci_line(address)[1:]}
        for name, address in evidence.machine.endpoints.items()
    }
    return grouped(
        (port, (one, other))
        for one, other in combinations(above, 2)
        if above[one] & above[other] and not devices.keys().isdisjoint((one, other))
        for port in sorted(redirect & (above[one] ^ above[other]))
    )  # fmt: skip


def check_acs(evidence: Evidence) -> Iterator[Finding]:
    functions, devices = evidence.machine.functions, evidence.machine.addresses
    for port, pairs in redirecting(evidence).items():
        pairs.sort(key=lambda pair: not devices.keys() >= {*pair})
        how = ", ".join(functions[port].acs or ())
        found = f"ACS redirects the peer traffic of {', '.join(map('-'.join, pairs[:4]))}: {how}"
        why = "copies between devices below one switch go up to the root complex and back"
        if not devices.keys() >= {*pairs[0]}:
            why = "what an adapter reads and writes in a device's memory (GPUDirect) goes up to "
            why += "the root complex and back"
        remedy = f"sudo setpci -s {port} ECAP_ACS+6.w=0:1c"
        remedy += "  # not if devices are passed to VMs, which ACS isolates"
        yield Finding("acs", "warn", Part.function(port), found, why, (remedy,))


def check_counters(evidence: Evidence) -> Iterator[Finding]:
    why = "broken packets are sent again: the link or its contacts are bad"
    remedy = (kernel_log("aer"), RESEAT)
    for hop in hops(evidence):
        if hop.rose or hop.again:
            texts = [
                f"{end}: {', '.join(f'{kind} +{count}' for kind, count in counts.items())}"
                for end, counts in hop.rose.items()
            ]
            texts += [f"{hop.again} packets sent again"] if hop.again else []
            found = f"counters rose during the run: {'; '.join(texts)}"
            grave = any(set(counts) != {"correctable"} for counts in hop.rose.values())
            slow = share_of_peers(evidence, Part.pcie_link(hop.name, hop.function.address))
            if slow is not None:
                found += f"; no copy over it reaches more than {slow:.0%} of its peers"
            severity: Severity = "fail" if grave or slow is not None else "warn"
            yield Finding("link-errors", severity, hop.part, found, why, remedy)


OF_LINKS = (check_silent, check_link_speed, check_link_width, check_target_speed)
"""The checks of devices passed through to virtual machines, on the host and in the guest."""


_STOP = (
    "# First stop the virtual machines and programs that use the device: the link goes down while "
    "it trains, and what still uses it may crash or hang."
)
_ON_THE_HOST = (
    (
        "# On the virtual machine's host. Addresses differ there: take ADDRESS from `virsh dumpxml "
        "NAME`, <hostdev>, <source>."
    ),
    _STOP,
    f"{DEVICE}  # such as 0000:41:00.0",
    PORT_ABOVE,
)
_PORT, _DEVICE = '"${PORT:?}"', '"$DEVICE"'
"""If PORT is empty, `:?` stops the command: setpci would write to all functions."""


_STEPS = ("setpci -s {} CAP_EXP+30.w={:x}:f", "setpci -s {} CAP_EXP+10.w=20:20")
"""Sets the target speed, and starts the training."""


def retraining(
    port: PciFunction | None, function: PciFunction, speed: float, *, virtual: bool
) -> tuple[str, ...]:
    """Returns commands for the host that retrain a link to `speed` (GT/s), and a systemd unit that
    repeats them at boot. If `virtual` is true, placeholders stand for the host's addresses."""
    code = generation(speed)  # the encoding of the target speed field
    place = port.address if port and re.fullmatch(ADDRESS, port.address) else None
    above, device = (_PORT, _DEVICE) if virtual else (place, function.address)
    if code is None or above is None:
        hidden = f"# The port above {function.address} is not visible here. On the host, find it "
        return f"{hidden}with `lspci -tv`, then:", link_state("PORT")
    return (
        *(_ON_THE_HOST if virtual else (_STOP,)),
        f"sudo {_STEPS[0].format(above, code)}  # target speed {speed:g} GT/s",
        f"sudo {_STEPS[1].format(above)}  # retrain",
        link_state(device, "LnkSta:"),
        *(_unit("PORT", "DEVICE", code) if virtual else _unit(above, device, code)),
    )


def _unit(above: str, device: str, code: int) -> tuple[str, ...]:
    is_named = device == "DEVICE"
    service = f"pcie-retrain{'' if is_named else '-' + device.replace(':', '-')}.service"
    values = ", with the addresses in place of PORT and DEVICE" if is_named else ""
    return (
        f"# To repeat this at each boot, write /etc/systemd/system/{service}{values}:",
        "[Unit]",
        f"Description=Retrain the PCIe link of {device}",
        "Before=libvirtd.service virtqemud.service",
        "",
        "[Service]",
        "Type=oneshot",
        # Some distributions have setpci in /usr/sbin.
        f"ExecStart=/usr/bin/env {_STEPS[0].format(above, code)}",
        f"ExecStart=/usr/bin/env {_STEPS[1].format(above)}",
        "RemainAfterExit=yes",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
        "# Then enable it:",
        f"sudo systemctl enable {service}",
        (
            "# Do not copy the unit found on the web that writes 0x0060 to LnkCtl2 of the card: "
            "that sets target speed 0, which no link has, and does not start the training."
        ),
    )
