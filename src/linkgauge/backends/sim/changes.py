"""How a machine's description is changed in parts, as by `fabric=none gpus=8` (docs/what-if.md)."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import combinations
from typing import Any, Literal, get_args

import yaml

from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.pcie import SPEEDS, WIDTHS
from linkgauge.model.names import hint

from .description import load, parse_description
from .hardware import SimLink, build, expand

Changeable = Literal["gpus", "fabric", "pcie", "nodes"]
MOST = 64
"""The most accelerators or NUMA nodes that a change may ask for."""
_NONE = "none"
_PCIE = re.compile(r"(?:gen)?([0-9]{1,2})(?:x([0-9]{1,2}))?", re.IGNORECASE)
_OF_FABRIC = ("nvlink", "fabric_state")
"""The properties of an accelerator that its fabric determines."""
_IDENTITY = ("count", "pci", "uuids", "numa_node")
_Tree = dict[str, Any]
_Ends = tuple[str, str, str]
"""The kind of a link, and its two ends."""


class _Machine:
    def __init__(self, text: str) -> None:
        self.hardware = build(parse_description(text))
        self.tree: _Tree = yaml.safe_load(text)
        self.gpus, self.nodes = len(self.hardware.devices), len(self.hardware.nodes)

    @cached_property
    def cards(self) -> list[_Tree]:
        return [
            {name: value for name, value in group.items() if name not in _IDENTITY}
            for group in self.tree.get("devices") or ()
            for _ in range(group.get("count", 1))
        ]

    def links(self, part: Changeable) -> list[SimLink]:
        return [link for link in self.hardware.links if _part_of(link) == part]

    def share(self, link: SimLink, gpus: int) -> None:
        """Sets a full mesh's rates so that each of `gpus` accelerators keeps its total rate."""
        rate = link.rate * (self.gpus - 1) / max(gpus - 1, 1)
        about = self.tree["link_kinds"][link.kind_name]
        self.tree["link_kinds"][link.kind_name] = about | {"rate": f"{rate:.0f} B/s", "count": 1}


def _part_of(link: SimLink) -> Changeable:
    ends = [end.partition(":")[0] for end in (link.a, link.b)]
    if link.kind == "fabric" or ends == ["sim", "sim"]:
        return "fabric"
    return "nodes" if ends == ["host", "host"] else "pcie"


def changed(text: str, change: str) -> str:
    """Returns the changed description. Raises InputError for an impossible change."""
    asked, base = _asked(change), _Machine(text)
    if any(device.group.node for device in base.hardware.devices):
        raise InputError("--change: only a single machine can be changed, not a cluster")
    of = _sources(asked, base)
    gpus, nodes = (_count(asked, part, of[part]) for part in ("gpus", "nodes"))
    fabric = None if asked.get("fabric") == _NONE else of["fabric"]
    ends: dict[Changeable, list[_Ends]] = {
        "fabric": [] if fabric is None else [*_up(fabric, "fabric", gpus), *_peers(fabric, gpus)],
        "pcie": _on_nodes([*_up(of["pcie"], "pcie", gpus)], of["pcie"].nodes, nodes),
        "nodes": [*_sockets(of["nodes"], nodes)],
    }
    tree = base.tree | {"source": f"{base.tree['source']}; changed: {change}"}
    tree.pop("known", None)  # of a changed machine, nothing was measured
    tree |= _linked(of, ends) | {"host": _host(base, of["nodes"], nodes)}
    is_moved = any(part in asked for part in ("gpus", "nodes")) or of["pcie"] is not base
    cards = of["gpus"].cards
    groups = [cards[n * len(cards) // gpus] for n in range(gpus)] if is_moved else tree["devices"]
    tree["devices"] = [_with_fabric(one, fabric) for one in groups]
    for name in ("collectives", "routing") if fabric is not base else ():
        tree.pop(name, None)
        tree |= {} if fabric is None or name not in fabric.tree else {name: fabric.tree[name]}
    if of["pcie"] is base and "pcie" in asked:
        tree["link_kinds"] = _at_speed(tree["link_kinds"], asked["pcie"])
    made = yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
    build(parse_description(made))
    return made


def _asked(change: str) -> dict[Changeable, str]:
    try:
        words = [word.partition("=") for word in shlex.split(change)]
    except ValueError as error:
        raise InputError(f"--change {change}: {error}") from None
    example = "such as 'fabric=none gpus=8'"
    for name, equals, value in words:
        if name not in get_args(Changeable):
            raise InputError(f"--change: unknown part {name!r}{hint(name, get_args(Changeable))}")
        if not (equals and value):
            raise InputError(f"--change: {name} of what? Give PART=VALUE, {example}")
    if not words:
        raise InputError(f"--change: give PART=VALUE, {example}")
    given = {name: value for name, _, value in words}
    return {part: given[part] for part in get_args(Changeable) if part in given}


def _sources(asked: Mapping[Changeable, str], base: _Machine) -> dict[Changeable, _Machine]:
    # New accelerators bring their links if the machine had none.
    taken = {
        part: _Machine(load(value)[1]) for part, value in asked.items() if not _is_own(part, value)
    }
    if "gpus" in asked and not (base.gpus or "gpus" in taken):
        number = asked["gpus"]
        raise InputError(
            f"--change gpus={number}: this machine has no accelerator to repeat: name one, such as "
            f"gpus={number}xH100"
        )
    links = base if base.gpus else taken.get("gpus", base)
    known: dict[Changeable, _Machine] = {"gpus": base, "fabric": links, "pcie": links}
    return known | {"nodes": base} | taken


def _is_own(part: Changeable, value: str) -> bool:
    if part == "fabric":
        return value == _NONE
    return value.isdecimal() if part != "pcie" else _PCIE.fullmatch(value) is not None


def _count(asked: Mapping[Changeable, str], part: Changeable, source: _Machine) -> int:
    value = asked.get(part, "")
    if not value.isdecimal():
        return source.gpus if part == "gpus" else source.nodes
    if not 1 <= (count := int(value)) <= MOST:
        raise InputError(f"--change {part}={value}: give 1 to {MOST}")
    return count


def _up(source: _Machine, part: Changeable, gpus: int) -> Iterator[_Ends]:
    links = [one for one in source.links(part) if len(_cards(one)) < 2]
    up = grouped((_cards(one)[0], one) for one in links if _cards(one))
    for number in range(gpus if up else 0):
        for one in up.get(number * source.gpus // gpus, ()):
            yield one.kind_name, f"sim:{number}", one.b if one.a.startswith("sim:") else one.a
    for one in links:
        if not _cards(one):
            a, b = sorted((one.a, one.b), key=lambda end: end.startswith("host:"))
            yield one.kind_name, a, b


def _cards(link: SimLink) -> list[int]:
    return [int(end[4:]) for end in (link.a, link.b) if end.startswith("sim:")]


def _peers(source: _Machine, gpus: int) -> Iterator[_Ends]:
    # The shape stays: a ring, or full meshes. In a single mesh, each accelerator keeps its total
    # rate.
    found = {
        (min(of), max(of)): one for one in source.links("fabric") if len(of := _cards(one)) == 2
    }
    pairs: Iterable[tuple[int, int]] = found
    if found and gpus != source.gpus:
        each = len(found) * 2 // source.gpus + 1
        if len({one.kind_name for one in found.values()}) > 1:
            pairs = ()
        elif source.gpus > 3 and found.keys() == _ring(source.gpus):
            pairs = sorted(_ring(gpus))
        elif found.keys() == {*combinations(range(source.gpus), 2)}:
            pairs = [*combinations(range(gpus), 2)]
            source.share(next(iter(found.values())), gpus)
        elif gpus % each == 0 and all(a // each == b // each for a, b in found):
            pairs = [(a, b) for a, b in combinations(range(gpus), 2) if a // each == b // each]
        else:
            pairs = ()
        if not pairs and gpus > 1:
            raise InputError(
                f"--change: the links between these {source.gpus} accelerators have no shape that "
                f"fits {gpus}: also give fabric=none, or fabric=MACHINE"
            )
    first = next(iter(found.values()), None)
    for a, b in pairs:
        yield found.get((a, b), first).kind_name, f"sim:{a}", f"sim:{b}"  # type: ignore[union-attr]


def _ring(count: int) -> set[tuple[int, int]]:
    following = ((number, (number + 1) % count) for number in range(count))
    return {(min(pair), max(pair)) for pair in following if pair[0] != pair[1]}


def _on_nodes(links: Sequence[_Ends], before: int, nodes: int) -> list[_Ends]:
    if before == nodes:
        return [*links]
    tops = list(dict.fromkeys(a for _, a, b in links if b.startswith("host:")))
    at = {name: f"host:{number * nodes // len(tops)}" for number, name in enumerate(tops)}
    return [(kind, a, at[a] if b.startswith("host:") else b) for kind, a, b in links]


def _sockets(source: _Machine, nodes: int) -> Iterator[_Ends]:
    links = source.links("nodes")
    if nodes == source.nodes:
        yield from ((one.kind_name, one.a, one.b) for one in links)
        return
    if nodes > 1 and not links:
        raise InputError(
            f"--change nodes={nodes}: this machine has no link between nodes to repeat: take the "
            "nodes of another one, such as nodes=dgx-h200-8"
        )
    for a, b in combinations(range(nodes), 2):
        yield links[0].kind_name, f"host:{a}", f"host:{b}"


def _linked(of: Mapping[Changeable, _Machine], ends: Mapping[Changeable, list[_Ends]]) -> _Tree:
    kinds: _Tree = {}
    pairs: dict[str, list[list[str]]] = {}
    switches: list[_Tree] = []
    for part, links in ends.items():
        tree = of[part].tree
        for kind, a, b in links:
            about = tree["link_kinds"][kind]
            name = kind if kinds.setdefault(kind, about) == about else f"{kind}_{part}"
            kinds[name] = about
            pairs.setdefault(name, []).append([a, b])
        used = {end for _, *both in links for end in both}
        switches += (
            {**group, "name": name}
            for group in tree.get("switches") or ()
            for name in expand(group["name"])
            if name in used
        )
    links_of = [{"kind": name, "pairs": found} for name, found in pairs.items()]
    return {"link_kinds": kinds, "switches": switches, "links": links_of}


def _host(base: _Machine, source: _Machine, nodes: int) -> _Tree:
    named = {name: value for name, value in base.tree["host"].items() if name == "hostname"}
    host: _Tree = source.tree["host"] | named
    if nodes != source.nodes:
        first = source.tree["host"]["nodes"][0]
        host["nodes"] = [{**first, "count": nodes}]
        host["sockets"] = max(1, host.get("sockets", 1) * nodes // source.nodes)
        host.pop("distances", None)
    return host


def _with_fabric(card: _Tree, fabric: _Machine | None) -> _Tree:
    like = fabric.cards[0] if fabric is not None and fabric.cards else {}
    own = {name: value for name, value in card.items() if name != "forwards"}
    known = card.get("properties") or {}
    theirs = like.get("properties") or {}
    own["properties"] = {k: v for k, v in known.items() if k not in _OF_FABRIC}
    own["properties"] |= {k: v for k, v in theirs.items() if k in _OF_FABRIC}
    return own | ({"forwards": like["forwards"]} if "forwards" in like else {})


def _at_speed(kinds: _Tree, value: str) -> _Tree:
    match = _PCIE.fullmatch(value)
    found = [name for name, about in kinds.items() if about["kind"] == "pcie"]
    width = int(match[2]) if match and match[2] else None
    generation = int(match[1]) if match else 0
    if not 1 <= generation <= len(SPEEDS) or width not in (None, *WIDTHS):
        raise InputError(f"--change pcie={value}: give a generation and lanes, such as 5x16 or 4")
    if not found:
        raise InputError(f"--change pcie={value}: this machine has no PCIe link")
    old = ("rate", "max_speed", "max_width", "idle_speed")
    at: _Tree = {"speed": SPEEDS[generation - 1]} | ({"width": width} if width else {})
    return kinds | {
        name: {k: v for k, v in kinds[name].items() if k not in old} | at for name in found
    }
