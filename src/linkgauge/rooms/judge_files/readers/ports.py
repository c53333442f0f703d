"""Reads what ibstat, ibportstate, ethtool and others tell of adapters and their ports."""

from __future__ import annotations

import re
from collections import Counter

from linkgauge.model.names import and_all

from ..scan import TextScan

_CARD = re.compile(r"\s*(?:(?:CA|Infiniband device) '|hca_id:\s+)([\w.-]{1,40})")


def _ibstat(seen: TextScan) -> None:
    """Counts the active ports at the most frequent speed. Other speeds are of other networks."""
    speeds, states, idle = dict[str, str](), list[str](), dict[str, str]()
    layers = set[str]()
    for _, card, fields in seen.blocks(_CARD):
        said = {name.lower(): value for name, value in fields.items()}
        layer = next((text for name, text in said.items() if re.search("link.layer$", name)), "")
        for name, text in said.items():
            state = said.get(name.removesuffix("rate") + "state", "active").lower()
            if name.endswith("state"):
                states.append(f"{card[1]} {name.title()} {text}".replace("/", " "))
            rate = re.match(r"(\d{1,4})(?: Gb/sec|$)", text) if name.endswith("rate") else None
            if rate and "active" in state.split():
                speeds[card[1]] = rate[1]
                layers.add(layer)
        own = " ".join(text for name, text in said.items() if name.endswith("state")).lower()
        if re.search(r"\bdown\b|port_down", own) and not re.search("disabled|active", own):
            idle[card[1]] = layer
    if states and not any("active" in one.lower() for one in states):
        is_waiting = "initializing" in str(states).lower()
        why = " until a subnet manager sets it up" if is_waiting else ""
        seen.facts(warnings=frozenset([f"no port is active{why}: {', '.join(states[:4])}"]))
    for speed, count in Counter(speeds.values()).most_common(1):
        down = [name for name, layer in idle.items() if layer in layers]
        unused = {"ports down": and_all(down)} if down else {}
        seen.facts(adapters=count, settings={"adapter Gb/s": speed, **unused})


_PORT = re.compile(r"[\s#]*Port \d+: State: Active, .{0,80}?\bRate: (\d{1,4})\b")


def _ports(seen: TextScan) -> None:
    if rates := [match[1] for _, match in seen.each(_PORT)]:
        seen.facts(adapters=len(rates), settings={"adapter Gb/s": rates[0]})


_LANE = {"SDR": 2.5, "DDR": 5, "QDR": 10, "FDR10": 10, "FDR": 14, "EDR": 25, "HDR": 50, "NDR": 100,
         "XDR": 200}  # fmt: skip
"""The Gb/s of an InfiniBand lane."""


def _lanes(seen: TextScan) -> None:
    """Reads mlxlink and opainfo: a port's lanes, and the speed of each or of all."""
    ports = list[float]()
    for _, own, said in seen.marks(
        r"\s*(?:Port)?State\s*: +(?P<state>\w{2,20})(?P<speed>)",
        r"\s*Speed\s*: (?:IB-)?(?P<speed>[A-Z]{3}(?:10)?|\d{2,3}G)\w*\s*$",
        r"\s*LinkSpeed\s+Act: (?P<speed>\d{1,3})Gb\b",
        r"\s*(?:Width\s*:|LinkWidth\s+Act:) (?P<lanes>\d{1,2})(?:x|\s)",
    ):
        speed = said.get("speed", "")
        if "lanes" in own and said.get("state") == "Active" and speed:
            whole = speed.removesuffix("G") if speed[-1] == "G" else ""
            each = _LANE.get(speed) or float(speed if speed.isdecimal() else 0)
            ports.append(float(whole or int(own["lanes"]) * each))
    for rate, count in Counter(ports).most_common(1):
        seen.facts(adapters=count, settings={"adapter Gb/s": f"{rate:.0f}"})


_LANES = re.compile(r"\s*LinkWidth(Supported|Enabled|Active):\.*(\d{1,2}X.{0,40})")


def _port_width(seen: TextScan) -> None:
    """Reads ibportstate: the port's lanes that are supported, allowed (Enabled) and used."""
    said = list[dict[str, int]]()
    for _, own in seen.each(_LANES):
        said += [{}] if own[1] == "Supported" else []
        if said:
            said[-1][own[1]] = max(map(int, re.findall(r"\d+(?=X)", own[2])))
    lane = seen.first(re.compile(r"\s*LinkSpeedExtActive:\.*(\d{1,3})"))
    for port in said:
        able = port.get("Supported", 0)
        # Two lanes are what half of a divided port has.
        if port.get("Active") == 1 < able:
            each = f" of {lane} Gb/s each" if lane else ""
            why = ", as LinkWidthEnabled allows no more" if port.get("Enabled") == 1 else ""
            warned = f"the InfiniBand port uses 1 of {able} lanes{each}{why}"
            seen.facts(warnings=frozenset([warned]))


_ETHTOOL = re.compile(r"Settings for (\S{1,40}):|Cannot get [\w -]{3,40}: |netlink error: ")
_LEAST_USED = 0.1
"""The share of a port's highest speed that only a bad cable or an old switch leaves of it."""


def _ethtool(seen: TextScan) -> None:
    down, slow, is_up = set[str](), set[str](), False
    for (start, head, end), _ in zip(seen.sections(_ETHTOOL), seen.blocks(_ETHTOOL), strict=True):
        text = "\n".join(seen.lines[start:end])
        modes = [int(mode) for mode in re.findall(r"\b(\d{2,6})base", text)]
        speed = int(match[1]) if (match := re.search(r"\bSpeed: (\d{2,6})Mb/s", text)) else 0
        if 0 < speed <= _LEAST_USED * max(modes, default=0):
            slow.add(
                f"{head[1]} runs at {speed} Mb/s and supports {max(modes)} Mb/s: look at the "
                "cable, its plugs, and what the other end offers"
            )
        is_up |= "Link detected: yes" in text
        if why := re.search(r"Link detected: no\b(.*)", text):
            down.add(f"{head[1]} has no link{why[1]}")
    if warnings := slow if is_up else slow | down:
        seen.facts(warnings=frozenset(warnings))


_LINK_UP = re.compile(
    r".{0,120}?([\w.-]{2,20}):? (?:NIC )?[Ll]ink is [Uu]p\b[ ,at-]{1,6}(\d{2,3}) ?Gbps"
)


def _adapters(seen: TextScan) -> None:
    """Notes the adapters' speed: the most frequent one, and the highest of several. A speed with a
    decimal is in GB/s, without in Mb/s. Of the kernel's lines, only 10 Gb/s and more count: slower
    ports are a server's own."""
    _ethtool(seen)
    speeds = Counter(
        round(float(said["rate"]) * (8 if "." in said["rate"] else 1e-3))
        for said in seen.rows(
            r"\s*Speed: (?P<rate>\d{4,7})Mb/s",
            r'.{0,200}?<net name=[^>]{1,60} speed="(?P<rate>\d{4,6})"',
            r".{0,400}?\bNET\[(?P<rate>\d{1,3}\.\d)\]",
        )
    )
    up = {match[1]: int(match[2]) for _, match in seen.each(_LINK_UP)}
    speeds.update(up.values())
    if speeds:
        speed = max(speeds, key=lambda one: (speeds[one], one))
        seen.facts(settings={"adapter Gb/s": str(speed)})


READERS = {
    _ibstat: ("CA '", "device '", "hca_id:"), _ports: ("State: Active, ",),
    _port_width: ("LinkWidthActive",), _lanes: ("Operational Info", "LinkWidth "),
    _adapters: ("Settings for ", "Speed:", "<net", "NET[", "ink is "),
}  # fmt: skip
