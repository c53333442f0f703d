"""Reads lspci -vv, -vvv and -t (-tv). Accelerators are numbered by address, as nvidia-smi does."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any, NamedTuple

from msgspec.structs import replace

from linkgauge.machine.tree import ADDRESS
from linkgauge.model.grouped import grouped

from ..facts import Bridge, NarrowLink, ReportedCard, ReportedGpu, ReportedNic
from ..lines import DECIMAL
from ..nics import NAMELESS
from ..products import model_of, product_of
from ..scan import TextScan

_AT = rf"({ADDRESS}|[0-9a-f]{{2}}:[0-9a-f]{{2}}\.[0-7])"
_HEAD = re.compile(
    rf"{_AT} (.{{3,60}}?): (.{{1,200}})|(?:.{{0,60}}\blspci\b.{{0,40}} -\w{{0,6}}s ?[\"']?)?{_AT}"
    r"(?=[\"']?\s*(?:$|-\w|\||\d?>))"
)
"""A function's address, class and name, or its address alone, before lines that grep left."""
_OWN = re.compile(r"[\s.]|\[\.|$|\w{3,12}: ")
"""What a line of a function begins with; grep and pages leave some without their indent, and
people leave lines out."""
_GPU = re.compile("3D controller|VGA compatible|Processing accelerators|Display controller")
_MAKERS = re.compile("NVIDIA|Advanced Micro|AMD/ATI|Intel|Rebellions|Graphcore|T-Head|Alibaba")
_NIC = re.compile("Infiniband controller|Ethernet controller|Fabric controller|Network controller")
_RDMA = re.compile(
    r"Mellanox|ConnectX|BlueField|Elastic Fabric|BCM57[45678]|Pollara|Pensando|DSC Ethernet"
    r"|E8[13]\d|Omni-Path|Cornelis"
)
"""Adapters that reach an accelerator's memory."""
_VIRTUAL = re.compile("Virtual Function")
_ONBOARD = re.compile("ASPEED|Matrox|Cirrus|QXL|Virtio|VMware|Hyper-V|Integrated|UHD Graphics")
_MODEL = re.compile(r"\[(?!AMD\]|AMD/ATI\])([^\]]{2,80})\](?!.*\[[^\]]*[A-Za-z]{3})")
_LINK = re.compile(rf"(LnkCap|LnkSta):.*?Speed ({DECIMAL})GT/s.{{0,20}}?, Width x(\d{{1,2}})")
_NODE = re.compile(r"NUMA node: (\d{1,3})")
_ACS = re.compile(r"ACSCtl:.*?ReqRedir([+-]).*?CmpltRedir([+-])")
_ORDER = re.compile(r"RlxdOrd([+-])")
_OWN_SWITCH = re.compile(
    r"AMD/ATI|\[AMD\] Vega|DG2|Battlemage|\[Arc|Device (?:4fa\d|e2f[0-9a-f])\b"
)
_BUSES = re.compile("Bus: primary=.., secondary=([0-9a-f]{2}), subordinate=([0-9a-f]{2})")
_EMPTY = re.compile(r"LLActRep-|PresDet-|LnkSta:.*?Width x0\b")
"""What a port says that reports no state of its link, or has no card."""
_TRAINS = re.compile(r"\bTrain\+.{0,40}\bDLActive-")
_TARGET = re.compile(rf"LnkCtl2:.*?Target Link Speed: ({DECIMAL})GT/s")
_PORT = re.compile(r"Express .{0,12}?(Upstream Port|Downstream Port|Root Port)")


class _Function(NamedTuple):
    address: str
    kind: str
    name: str
    body: str

    @property
    def is_accelerator(self) -> bool:
        makes = _MAKERS.search(self.name) and not _ONBOARD.search(self.name)
        is_of_cpu = "Intel" in self.name and self.address[5:] == "00:02.0"
        return bool(_GPU.search(self.kind) and makes and not is_of_cpu)

    @property
    def is_adapter(self) -> bool:
        return bool(_NIC.search(self.kind) and _RDMA.search(self.name))

    @property
    def bridge(self) -> Bridge:
        acs, port = _ACS.search(self.body), _PORT.search(self.body)
        return Bridge(acs and acs[1] == "+", port is not None and "Root" not in port[1])


def _listed(seen: TextScan) -> None:
    lines, found = seen.lines, list[_Function]()
    is_long = any("LnkSta:" in line or "ACSCtl:" in line or "RlxdOrd" in line for line in lines)
    for number, head, end in seen.sections(_HEAD):
        address, kind, name = head[1] or head[4], head[2] or "", head[3] or ""
        if not is_long and not _GPU.search(kind) and not _RDMA.search(name):
            continue
        last = next((n for n in range(number + 1, end) if not _OWN.match(lines[n])), end)
        address = address if address.count(":") == 2 else f"0000:{address}"
        body = "\n".join(lines[number + 1 : last])
        found.append(_Function(address[-12:], kind, name, body))
        seen.used.update(range(number, last))
    bridges = {one.address: one for one in found if "bridge" in one.kind.lower()}
    accelerators = sorted((one for one in found if one.is_accelerator), key=lambda one: one.address)
    seen.gpus = {n: ReportedGpu(**_card(one, bridges)) for n, one in enumerate(accelerators)}
    adapters = [one for one in found if one.is_adapter]
    real = [one for one in adapters if not _VIRTUAL.search(one.name)]  # else a guest's
    nics = {
        one.address: ReportedNic(**_card(one, bridges), ethernet="Ethernet" in one.kind)
        for one in real or adapters
    }
    known = {address: one.bridge for address, one in bridges.items() if one.body}
    ordered = [match[1] == "+" for one in accelerators if (match := _ORDER.search(one.body))]
    links = {one: ReportedGpu(**_card(one, bridges)) for one in found}
    cards = [*accelerators, *adapters]
    others = [one for one in found if one.kind and one.address not in bridges]
    asked = others if not cards and len(others) == 1 else cards
    narrow = grouped(
        (link.narrow, one.address)
        for one, link in links.items()
        if one.address.endswith("0") and (one in asked or not (one.kind or _is_port(link, links)))
    )
    warned = [f"{one.address} does not answer (rev ff): lost, or powered down"
              for one in found if "(rev ff)" in one.name]  # fmt: skip
    for one in found:
        if _TRAINS.search(one.body) and not _EMPTY.search(one.body):
            warned.append(
                f"the link below {one.address} trains and never comes up (Train+, DLActive-)"
            )
        target, most = _TARGET.search(one.body), links[one].max_speed or 0.0
        # Only of a function that somebody asked for is it known that a fast card is below.
        if target is not None and not one.kind and float(target[1]) < most / 2:
            warned.append(
                f"{one.address} is set to {target[1]} GT/s (Target Link Speed) of {most:g}"
            )
    is_hidden = any("Arc" in (one.model or "") and not one.width for one in seen.gpus.values())
    seen.facts(
        bridges=known, relaxed=all(ordered) if ordered else None, nics=nics,
        settings={"slot of Arc": "not shown"} if is_hidden else {},
        warnings=frozenset(warned),
        narrow=frozenset(NarrowLink(tuple(at), said) for said, at in narrow.items() if said),
    )  # fmt: skip


def _is_port(link: ReportedGpu, links: Mapping[_Function, ReportedGpu]) -> bool:
    """Whether a function without a name may be the port above a card that takes no more lanes."""
    bus = str(link.pci)[:7]
    below = (other for one, other in links.items() if one.address[:7] > bus)
    return any(other.max_width == link.width for other in below)


def _card(one: _Function, bridges: Mapping[str, _Function]) -> dict[str, Any]:
    above = _above(one, bridges)
    shown = _LINK.finditer(_slot(one, [bridges[address] for address in above]))
    links = {match[1]: (float(match[2]), int(match[3])) for match in shown}
    (speed, width), (most, widest) = (links.get(k, (None, None)) for k in ("LnkSta", "LnkCap"))
    node, number = _NODE.search(one.body), re.search(r"Device ([0-9a-f]{4})\b", one.name)
    model = _model(one.name) or (model_of(number[1]) if number else None)
    return {
        "model": model, "pci": one.address, "node": int(node[1]) if node else None, "speed": speed,
        "width": width, "max_speed": most, "max_width": widest, "above": above,
    }  # fmt: skip


def _slot(card: _Function, above: Sequence[_Function]) -> str:
    """Returns the text of the port in the slot: of AMD's and Intel's cards, that of the upper port
    of their own switch."""
    if not _OWN_SWITCH.search(card.name):
        return card.body
    own = [*takewhile(lambda port: _OWN_SWITCH.search(port.name), above)]
    is_plain = above and "Intel" not in card.name  # whose own end always says 2.5 GT/s x1
    return own[-1].body if own else card.body if is_plain else ""


def _model(name: str) -> str | None:
    match = _MODEL.search(name.partition(" (prog-if ")[0])
    return match[1] if match is not None else None


def _above(one: _Function, bridges: Mapping[str, _Function]) -> tuple[str, ...]:
    buses = ((at, found) for at, b in bridges.items() if (found := _BUSES.search(b.body)))
    ranges = (
        (int(match[2], 16) - int(match[1], 16), -int(match[1], 16), address)
        for address, match in buses
        if address[:4] == one.address[:4] and match[1] <= one.address[5:7] <= match[2]
    )
    return tuple(address for _, _, address in sorted(ranges))


_BARE = re.compile(rf"[\s#]*{_LINK.pattern}")


def _without_head(seen: TextScan) -> None:
    """Reads lines that grep left of one function, without its address."""
    shown = {match.groups() for _, match in seen.each(_BARE)}
    if any(map(_HEAD.match, seen.lines)) or len(shown) != len({kind for kind, *_ in shown}):
        return
    nic = ReportedNic(**_card(_Function("", "", "", "\n".join(seen.lines)), {}))
    if shown and any(map(_RDMA.search, seen.lines)):
        seen.facts(nics={NAMELESS: replace(nic, pci=None)})
    elif nic.narrow:
        seen.facts(narrow=frozenset([NarrowLink((), nic.narrow)]))


# -t and -tv.

_ROOT = re.compile(r"\s*[-+\\|]*[-+]-?\[([0-9a-f]{4,8}):([0-9a-f]{2})(?:-[0-9a-f]{2})?\]-")
_BRANCH = re.compile(r"\s*[|+\\ ]+-")
_PIECE = re.compile(r"([0-9a-f]{2}\.[0-7])(?:-\[([0-9a-f]{2})(?:-[0-9a-f]{2})?\])?")


def _tree(seen: TextScan) -> None:
    gpus, nics = dict[str, ReportedGpu](), dict[str, ReportedNic]()
    stack: list[tuple[int, str, str]] = []
    domain, bus = "0000", "00"
    for number, match in seen.each(_ROOT, _BRANCH):
        if match.re is _ROOT:
            domain, bus, stack = match[1][-4:], match[2], []
        line, last, end = seen.lines[number], "", 0
        for piece in _PIECE.finditer(line):
            at, end = piece.span()
            stack = [one for one in stack if one[0] < at]
            own = stack[-1][2] if stack else bus
            last = f"{domain}:{own}:{piece[1]}"
            if piece[2]:
                stack.append((at, last, piece[2]))
        text = line[end:].strip()
        above = tuple(address for _, address, _ in reversed(stack))
        if last and _is_gpu_name(text):
            gpus[last] = ReportedGpu(model=_model(text), pci=last, above=above)
        elif last and _RDMA.search(text) and not _VIRTUAL.search(text):
            nics[last] = ReportedNic(model=_model(text), pci=last, above=above)
    seen.gpus = {index: gpus[address] for index, address in enumerate(sorted(gpus))}
    switches = sorted({at for one in (*gpus.values(), *nics.values()) for at in one.above[:-1]})
    seen.facts(bridges=dict.fromkeys(switches, Bridge(is_switch=True)), nics=nics)


def _is_gpu_name(text: str) -> bool:
    is_other = re.search(r"Audio|USB|UCSI|NVSwitch|Bridge|Switch", text)
    model = _model(text)
    is_maker = re.search(r"NVIDIA|AMD/ATI", text) or (_MAKERS.search(text) and product_of(model))
    return bool(model and is_maker and not is_other and "Device" not in text[:7])


_FILE = re.compile(
    rf"==> /sys/bus/pci/devices/({ADDRESS})/(current|max)_link_(speed|width) <=="
    r"|(\d{1,3}(?:\.\d)?)(?= GT/s|$)"
)


def _link_files(seen: TextScan) -> None:
    """Reads what tail prints of the kernel's files on a function's link."""
    links, at, what = dict[str, dict[str, float]](), "", ""
    for _, own in seen.each(_FILE):
        if own[1]:
            at, what = own[1], f"{own[2]} {own[3]}"
        elif at:
            links.setdefault(at, {})[what], at = float(own[4]), ""
    narrow = set[NarrowLink]()
    for pci, of in links.items():
        width, most = (int(of.get(f"{which} width", 0)) for which in ("current", "max"))
        speeds = of.get("current speed"), of.get("max speed")
        card = ReportedCard(None, pci, None, speeds[0], width, speeds[1], most)
        # A port offers what the card below it may not have; root ports lie on bus 00.
        below = {int(o.get("max width", 0)) for at, o in links.items() if at[:7] > pci[:7]}
        is_port = pci[5:7] == "00" or width in below
        narrow |= {NarrowLink((pci,), card.narrow)} if card.narrow and not is_port else set()
    seen.facts(narrow=frozenset(narrow))


READERS = {
    _listed: ("controller", "accelerators", "PCI bridge", "LnkSta:"), _tree: ("-[",),
    _without_head: ("LnkSta:",), _link_files: ("_link_width <==",),
}  # fmt: skip
