"""Fits the rates of a machine description to a run's figures. The best figure over a link gives the
link's rate. If concurrent copies with the host are slower than single ones, adds a shared link."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain
from statistics import median

import yaml

from linkgauge.backends.sim.description import Caps
from linkgauge.backends.sim.machine import built
from linkgauge.model.grouped import grouped
from linkgauge.model.recorded import SHORT
from linkgauge.model.transfer import Access
from linkgauge.model.units import COLLECTIVE

from .run_figures import Figure, Tree, simulated

_EQUIVALENT = 0.03
"""Links whose shares differ by less are of one kind."""
_SHARED = 0.97
"""Copies at once that reach less than this share of what they reach alone share a link."""
_ACCESSES: tuple[Access, ...] = ("read", "write")
_PREFIX = {"ce": "", "sm": "sm_"}
_Shares = dict[tuple[str, Access], float]
_Copies = dict[tuple[str, Access, bool], list[float]]
"""Rates of copies with the host, by engine, access, and whether others go the other way."""


def fit(structure: Tree, figures: Sequence[Figure]) -> Tree:
    tree: Tree = yaml.safe_load(yaml.safe_dump(structure))
    tree["known"] = list(dict.fromkeys(one.known_by for one in figures))
    _Links(tree, figures).fit()
    _latencies(tree, figures)
    _startups(tree, figures)
    for number, device in enumerate(tree["devices"]):
        _device(device, [one for one in figures if one.places == {f"sim:{number}"}])
    _host(tree["host"], figures)
    _collectives(tree, figures)
    return tree


class _Links:
    def __init__(self, tree: Tree, figures: Sequence[Figure]) -> None:
        self._tree = tree
        self._parts = built(yaml.safe_dump(tree), ())
        self._one: dict[tuple[int, str, Access], list[float]] = defaultdict(list)
        self._both: dict[tuple[int, str, tuple[Access, ...], bool], list[float]] = defaultdict(list)
        self._alone: _Copies = defaultdict(list)
        self._beside: _Copies = defaultdict(list)
        for one in figures:
            if one.cell.does.is_copy and not one.cell.report.is_latency and len(one.places) > 1:
                self._sort(one)

    def _sort(self, figure: Figure) -> None:
        engine, transfers = figure.engine.kind, figure.cell.transfers
        if engine not in _PREFIX or "pageable" in figure.known_by:
            return
        legs = [leg for one in transfers for leg in one.legs()]
        both = legs[0][:2] in {(b, a) for a, b, *_ in legs}
        sums = figure.cell.report.value in ("sum", "total")
        rate = figure.value / (len(transfers) if sums else 1)
        source, target, access, _ = legs[0]
        with_host = source.is_host or target.is_host
        is_concurrent = len(figure.places) > 2
        if with_host:
            (self._beside if is_concurrent else self._alone)[engine, access, both].append(rate)
        elif is_concurrent:
            return
        route = self._parts.topology.route(str(source), str(target))
        for crossing in route.crossings if route is not None else ():
            if not with_host and crossing.link.kind != "fabric":
                continue  # what devices exchange over PCIe is no figure of a single link
            if both:
                ways = tuple(sorted({access for _, _, access, _ in legs}))
                key = crossing.number, engine, ways, is_concurrent
                self._both[key].append(rate * crossing.share)
            else:  # beside others, it reaches at most its own
                self._one[crossing.number, engine, access].append(rate * crossing.share)

    def fit(self) -> None:
        kinds: list[tuple[str, _Shares, list[list[str]]]] = []
        for number, link in enumerate(self._parts.hardware.links):
            own = {
                key: share
                for engine in _PREFIX
                for key, share in self._shares(number, engine, link.rate).items()
            }
            for name, shares, pairs in kinds:
                if name == link.kind_name and _equivalent(own, shares):
                    pairs.append([link.a, link.b])
                    break
            else:
                kinds.append((link.kind_name, own, [[link.a, link.b]]))
        before, self._tree["link_kinds"], self._tree["links"] = self._tree["link_kinds"], {}, []
        for number, (name, shares, pairs) in enumerate(kinds):
            again = sum(name == other for other, *_ in kinds[:number])
            own_name, about = f"{name}-{again + 1}" if again else name, dict(before[name])
            for (field, access), share in shares.items():
                about[field] = about[field] if field in about and shares else {}
                about[field] = {**about[field], access: round(share, 4)}
            if shares:
                about.pop("assumed", None)
            self._tree["link_kinds"][own_name] = about
            self._tree["links"].append({"kind": own_name, "pairs": pairs})
        self._share()

    def _shares(self, number: int, engine: str, rate: float) -> _Shares:
        """Returns a link's efficiency, and the cost of opposite traffic, for reads and for writes.
        If only reads or only writes were measured, the others get the same efficiency."""
        one = {a: max(self._one.get((number, engine, a), (0.0,))) / rate for a in _ACCESSES}
        both = {
            ways: (max(some) if beside else _middle(some)) / rate
            for (link, kind, ways, beside), some in sorted(self._both.items(), reverse=True)
            if (link, kind) == (number, engine)  # beside others first: alone counts more
        }
        best = max((*one.values(), *both.values()))
        if not best:
            return {}
        shares = {access: share or max(one.values()) or best for access, share in one.items()}
        reverse = dict.fromkeys(_ACCESSES, 0.0)
        for ways, share in both.items():
            for way, other in ((ways[0], ways[-1]), (ways[-1], ways[0])):
                reverse[way] = max(0.0, 1 / share - 1 / shares[other])
        prefix = _PREFIX[engine]
        return {
            (f"{prefix}{field}", access): values[access]
            for field, values in (("efficiency", shares), ("reverse", reverse))
            for access in _ACCESSES
        }

    def _share(self) -> None:
        limits = {
            key: _middle(some)
            for key, some in self._beside.items()
            if key in self._alone and _middle(some) < _SHARED * median(self._alone[key])
        }
        units = self._parts.hardware.devices
        nodes = grouped((self._parts.topology.nearest_node(one.name), one) for one in units)
        for node, below in nodes.items() if limits else ():
            root, host, count = f"root{node}", f"host:{node}", len(below)
            most = max(chain(*self._alone.values())) * count
            about: Tree = {"kind": "internal", "rate": _rate(most)}
            for engine, prefix in _PREFIX.items():
                own = {(a, both): limits.get((engine, a, both), most / count) * count
                       for a in _ACCESSES for both in (False, True)}  # fmt: skip
                about[f"{prefix}efficiency"] = {a: own[a, False] / most for a in _ACCESSES}
                about[f"{prefix}both_each"] = {a: _rate(own[a, True]) for a in _ACCESSES}
            self._tree["link_kinds"][f"shared-{root}"] = about
            self._tree["switches"] = [*self._tree["switches"], {"name": root}]
            for group in self._tree["links"]:
                if not all(end.startswith("host:") for end in group["pairs"][0]):
                    group["pairs"] = [[root if end == host else end for end in pair]
                                      for pair in group["pairs"]]  # fmt: skip
            self._tree["links"].append({"kind": f"shared-{root}", "pairs": [[root, host]]})


def _equivalent(one: _Shares, other: _Shares) -> bool:
    return one.keys() == other.keys() and all(abs(one[k] - other[k]) <= _EQUIVALENT for k in one)


def _latencies(tree: Tree, figures: Sequence[Figure]) -> None:
    chases = [one for one in figures if one.cell.operation == "chase" and len(one.places) < 3]
    for units, space, field in (("nodes", "host", "latency"), ("devices", "sim", "memory_latency")):
        for number, unit in enumerate((tree["host"] if space == "host" else tree)[units]):
            if own := [one.value for one in chases if one.places == {f"{space}:{number}"}]:
                unit[field] = _seconds(median(own))
                _state(unit, field)
    parts = built(yaml.safe_dump(tree), ())
    added: dict[str, list[float]] = defaultdict(list)
    for one in chases:
        owner, memory = one.engine.owner, one.cell.transfers[0].source.place
        route = parts.topology.route(str(owner), str(memory))
        rest = one.value - parts.latency(memory, owner)
        links = [crossing.number for crossing in route.crossings] if route is not None else []
        ends = [parts.hardware.links[n] for n in links]
        devices = {str(one) for one in (owner, memory) if one.is_device}
        near = [link for link in ends if {link.a, link.b} & devices]
        for link in near:
            added[link.kind_name].append(rest / len(near))
    for name, some in added.items():
        tree["link_kinds"][name]["latency"] = _seconds(max(median(some), 0.0))


def _startups(tree: Tree, figures: Sequence[Figure]) -> None:
    """Fits startup times: the time of small copies minus the time that moves their bytes."""
    copies = [one for one in figures if one.engine.kind == "ce"
              and one.cell.operation in ("timed-copy", "copy-ping-pong")]  # fmt: skip
    fields = "startup", "write_startup", "peer_startup"
    devices = [device | {"ce": dict.fromkeys(fields, "0 ns")} for device in tree["devices"]]
    quick = tree | {"devices": devices, "host": tree["host"] | {"wait": "0 ns"}}
    late: dict[tuple[bool, int, str], list[float]] = defaultdict(list)
    for one, seconds in zip(copies, simulated(quick, copies), strict=True):
        peers = all(place.startswith("sim:") for place in one.places)
        field = "peer_startup" if peers else fields[one.cell.transfers[0].destination.is_host]
        is_waited = one.cell.operation == "copy-ping-pong"
        key = is_waited, one.engine.owner.index or 0, field
        late[key].append(one.value - (seconds or 0.0))
    waits = []
    for (is_waited, number, field), some in sorted(late.items()):
        middle, own = (min(some) + max(some)) / 2, tree["devices"][number].setdefault("ce", {})
        if field not in own:
            own[field] = _seconds(max(middle, 0.0))
        elif is_waited and field == "startup":
            waits.append(middle - _number(own[field]) * 1e-9)
    if waits:
        tree["host"]["wait"] = _seconds(max(median(waits), 0.0))


def _device(device: Tree, figures: Sequence[Figure]) -> None:
    ce, sm = device.get("ce", {}), device.get("sm", {}) | {"startup": "0 ns"}
    starts = _number(ce["startup"]) * 1e-9 if "startup" in ce else Caps().startup
    local = [one.size / max(one.size / one.value - starts, starts)
             for one in figures if one.cell.does.is_copy and one.engine.kind == "ce"]  # fmt: skip
    arrays = [one for one in figures if one.is_of_arrays]
    copies = [one.value for one in arrays if len(one.cell.transfers[0].memories) > 1]
    rates = [one.value for one in arrays if one.value not in copies] or copies
    device["ce"] = ce | ({"local": _rate(_middle(local))} if local else {})
    device["sm"] = sm | ({"local": _rate(_middle(copies) / 2)} if copies else {})
    if rates:
        device["memory_rate"] = _rate(_middle(rates))
        _state(device, "memory_rate")
    products = {one.cell.does.product.name.lower(): f"{one.value / 1e12:.4f} TFLOP/s"
                for one in figures if one.cell.does.product is not None}  # fmt: skip
    device["products"] = products


def _host(host: Tree, figures: Sequence[Figure]) -> None:
    arrays = [one for one in figures if one.is_of_arrays and one.engine.kind == "cpu"]
    single = [one.value for one in arrays if one.engine.count == 1]
    single = single or [one.value for one in figures if "pageable" in one.known_by]
    if single:
        host["thread"] = _rate(_middle(single))
    for number, node in enumerate(host["nodes"]):
        every = [(one.cell.does.array, one.value) for one in arrays
                 if one.engine.count != 1 and one.places == {f"host:{number}"}]  # fmt: skip
        reads = [value for work, value in every if work and not work.written]
        if not every:
            continue
        rate = _middle(reads or [value for _, value in every])
        node["rate"] = _rate(rate)
        _state(node, "rate")
        writes = [(work.counted * rate / value - work.read) / work.written
                  for work, value in every if work and work.written]  # fmt: skip
        if reads and writes:
            node["writes"] = round(max(median(writes), 0.1), 3)


def _collectives(tree: Tree, figures: Sequence[Figure]) -> None:
    """Fits collectives' startup time to the smallest calls, and their efficiency to large calls."""
    calls = [one for one in figures if one.unit == COLLECTIVE.symbol]
    if not calls:
        return
    for device in tree["devices"]:
        device["sm"]["peer_startup"] = _seconds(Caps().startup)
    least = min(one.bytes for one in calls)
    ratio = _ratio(tree, [one for one in calls if one.bytes == least])
    for device in tree["devices"]:
        device["sm"]["peer_startup"] = _seconds(Caps().startup / ratio)
    ratio = _ratio(tree, [one for one in calls if one.bytes > SHORT])
    how = tree.setdefault("collectives", {})
    for field in ("efficiency", *({"reductions"} & how.keys())):
        how[field] = round(how.get(field, 1.0) * ratio, 4)


def _ratio(tree: Tree, figures: Sequence[Figure]) -> float:
    both = zip(figures, simulated(tree, figures), strict=True)
    return _middle(other / one.value for one, other in both if other)


def _middle(values: Iterable[float]) -> float:
    """Returns the geometric mean of the smallest and the largest value, or 1 if there is none."""
    known = list(values) or [1.0]
    return math.sqrt(min(known) * max(known))


def _state(unit: Tree, field: str) -> None:
    unit["assumed"] = [one for one in unit.get("assumed", ()) if one != field]


def _number(quantity: str) -> float:
    return float(quantity.partition(" ")[0])


def _rate(value: float) -> str:
    return f"{value:.0f} B/s"


def _seconds(value: float) -> str:
    return f"{value * 1e9:.1f} ns"
