"""Lays out a machine's parts and the links between them, from facts in texts and from products."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from msgspec.structs import replace

from linkgauge.machine.tree import ADDRESS
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.machine import UNNAMED
from linkgauge.model.hardware.pcie import link_rate

from .checks import pcie_of
from .facts import Facts, ReportedFigure, ReportedGpu, ReportedNic, ReportedNode, vendor_of
from .nics import joined_nics, kind_of_nic, known, rate_of_nic
from .pair_groups import merged_sets
from .products import UNKNOWN, VENDORS, Product, product_of

ON_TABLE = " (data sheet)"
GIB = 1 << 30
_BELOW_ONE_SWITCH = ("PIX", "PXB")
_LINKS = re.compile(r"NV(\d{1,3})|XGMI")
_MOST_LINKS = 18
_OLDER = 0.55
"""The share of a data sheet's link that no copy exceeds whose slot is of an older generation."""
_EQUIVALENT = 0.85
"""The share of the best accelerator's copies that all others then reach, too."""
_OLDEST = 9e9
"""The bytes/s that copies reach in any x16 slot since Gen 3."""
_OVER = 1.03
"""The share of a link's rate at a speed above which a figure refutes that speed."""
_FASTER = 2.0
"""The share of PCIe's rate above which copies with the host go over another link."""


class MachineLayout:
    def __init__(
        self, facts: Facts, reported: Sequence[ReportedFigure], assumed: list[str]
    ) -> None:
        self._reported, self._facts, self._assumed = reported, facts, assumed
        self._gpus = tuple(facts.gpus.values())
        self._nics = joined_nics(facts)
        self._unnamed = UNNAMED[0 if facts.joins else 1]  # those texts are of GPUs
        self._products = [product_of(gpu.model) for gpu in self._gpus]
        self._product = next(filter(None, self._products), UNKNOWN)
        self._own_host = self._host_of_product()
        self._kinds: dict[str, Any] = {}
        self._links: list[dict[str, Any]] = []
        self._switches: list[dict[str, Any]] = []
        self._has_switch = False

    def _host_of_product(self) -> dict[str, Any]:
        """Describes the product's usual host and puts GPUs there; empty if texts give a host."""
        product, facts = self._product, self._facts
        if product.host is None or facts.nodes or facts.cpu_model:
            return {}
        each, cpus, memory, rate = product.host
        if all(gpu.node is None for gpu in self._gpus):
            self._gpus = tuple(replace(o, node=n // each) for n, o in enumerate(self._gpus))
        self._by_table(product, f"host memory of {rate:g} GB/s")
        node = {"cpus": cpus, "memory": str(memory * GIB), "rate": f"{rate} GB/s"}
        return node | {"assumed": ["latency"]}

    def description(self) -> dict[str, Any]:
        named = [card.node for _, card in self._cards if card.node is not None]
        nodes = min(1 + max([*named, *self._facts.nodes, 0]), 64)
        for place in range(len(self._gpus)):
            self._to_host(place)
        adapters = [self._adapter(name, nic) for name, nic in self._nics.items()]
        self._among()
        self._below_switches()
        if nodes > 1:
            self._kinds["socket"] = {"kind": "socket", "rate": "60 GB/s", "assumed": True}
            pairs = [[f"host:{a}", f"host:{b}"] for a, b in combinations(range(nodes), 2)]
            self._links.append({"kind": "socket", "pairs": pairs})
        reduces = self._product.nvls if self._has_switch else None
        return known(
            source="; ".join(["texts", *dict.fromkeys(self._assumed)]),
            host=self._host(nodes),
            link_kinds=self._kinds,
            switches=self._switches,
            devices=[*map(self._device, self._gpus, self._products)],
            adapters=adapters or None,
            links=self._links,
            collectives={"algorithm": "nvls", "reductions": reduces} if reduces else None,
        )

    def _host(self, nodes: int) -> dict[str, Any]:
        facts = self._facts
        each = [facts.nodes.get(index, ReportedNode()) for index in range(nodes)]
        rows = [[*row] for row in facts.distances or ()]
        return known(
            nodes=[self._own_host or _node(one) for one in each],
            cpu_model=facts.cpu_model or "not known",
            hostname=facts.hostname or "unknown",
            distances=rows if len(rows) == nodes else None,
            hypervisor=facts.hypervisor or None,
            architecture=facts.architecture or None,
        )

    def _device(self, gpu: ReportedGpu, product: Product) -> dict[str, Any]:
        device = known(
            model=gpu.model or self._unnamed,
            memory=str(gpu.memory or product.memory * GIB),
            vendor_id=VENDORS[vendor_of(self._facts)].pci,
            stages=True,
            pci=[gpu.pci] if re.fullmatch(ADDRESS, gpu.pci or "") else None,
            numa_node=gpu.node,
        )
        if not product:
            missing = ["memory_latency", "memory_rate", *([] if gpu.memory else ["memory"])]
            return device | {"memory_rate": "1 TB/s", "assumed": missing}
        self._by_table(product, f"memory of {product.rate:g} GB/s")
        return device | known(
            memory_rate=f"{product.rate} GB/s",
            peer_access="fabric" if product.peers == "none" else product.peers,
            ce={"local": f"{product.copies} GB/s"} if product.copies else None,
            assumed=["memory_latency"],
        )

    def _by_table(self, product: Product, what: str) -> None:
        name = self._gpus[self._products.index(product)].model
        self._assumed.append(f"{name}: {what}{ON_TABLE}")

    def _kind(self, name: str, **about: Any) -> str:
        names = chain([name], (f"{name}_{n}" for n in range(2, len(self._kinds) + 3)))
        own = next(one for one in names if self._kinds.get(one, about) == about)
        self._kinds[own] = about
        return own

    def _to_host(self, place: int) -> None:
        product, there = self._products[place], f"host:{self._gpus[place].node or 0}"
        if product.c2c:
            kind = self._kind(
                "c2c", kind="internal", rate=f"{product.c2c} GB/s", efficiency=_shares(0.77, 0.66)
            )
            self._by_table(product, f"C2C of {product.c2c:g} GB/s each way to the host")
        else:
            kind = self._pcie(place)
            there = self._switch_of(place) or there
        self._links.append({"kind": kind, "each": f"sim:{place}", "to": there})

    def _switch_of(self, card: int | str) -> str | None:
        switches = (f"plx{n}" for n, group in enumerate(self._groups) if card in group)
        return next(switches, None)

    def _adapter(self, name: str, nic: ReportedNic) -> dict[str, Any]:
        there = self._switch_of(name) or f"host:{nic.node or 0}"
        speed, width = nic.speed or nic.max_speed, nic.width or nic.max_width
        kind = self._slot(speed, width, nic.max_speed, nic.max_width)
        self._links.append({"kind": kind, "each": name, "to": there})
        rate, is_assumed = rate_of_nic(nic, self._facts)
        if is_assumed and nic.model:
            self._assumed.append(f"{nic.model}: a port of {rate / 1e9:g} GB/s{ON_TABLE}")
        return kind_of_nic(name, nic, rate, is_assumed=is_assumed)

    def _pcie(self, place: int) -> str:
        gpu, product = self._gpus[place], self._products[place]
        speed, width, refuted = self._speed(place, gpu), gpu.width, False
        if product.pcie and (not speed or not width):
            speed, width = speed or product.pcie[0], width or product.pcie[1]
            best = [self._best(one) for one, own in enumerate(self._products) if own]
            is_older = max(best) < _OLDER * link_rate(speed, width)
            is_slot = min(best) > max(_EQUIVALENT * max(best), _OLDEST) or all(map(pcie_of, best))
            refuted = bool(not gpu.speed and is_older and is_slot)
            if product.links and _FASTER * link_rate(speed, width) < self._best(place) < math.inf:
                refuted = True
                self._assumed.append(
                    f"another link than PCIe joins the CPU and {gpu.model} (NVLink at POWER9, "
                    f"NVLink-C2C at Grace), as {self._best(place) / 1e9:.3g} GB/s are far above "
                    f"PCIe {speed:g} GT/s x{width}: copies with the host are not judged"
                )
            self._by_table(product, f"PCIe {speed:g} GT/s x{width}")
        is_best = speed and product.pcie and speed >= product.pcie[0]
        most = None if is_best else gpu.max_speed
        return self._slot(speed, width or gpu.max_width, most, gpu.max_width, assumed=refuted)

    def _slot(
        self, speed: float | None, width: int | None, most: float | None, widest: int | None,
        *, assumed: bool = False,
    ) -> str:  # fmt: skip
        is_known = speed and width
        own, lanes = (speed, width) if speed and width else (16, 16)
        name = f"pcie{own:g}x{lanes}".replace(".", "_") if is_known else "pcie_assumed"
        return self._kind(name, **known(
            kind="pcie", efficiency=_shares(0.86, 0.86), speed=own, width=lanes,
            assumed=assumed or not is_known or None,
            max_speed=most if is_known and (most or 0) > own else None,
            max_width=widest if is_known and (widest or 0) > lanes else None,
        ))  # fmt: skip

    def _speed(self, place: int, gpu: ReportedGpu) -> float | None:
        """Returns a PCIe link's speed in GT/s. A reported speed below its maximum may be that of an
        idle link: it counts only if no copy with the host was faster."""
        product, width = self._products[place], gpu.width or gpu.max_width or 16
        own = product.pcie[0] if product.pcie else None
        # A maximum above the product's is that of the way to an adapter or a bridge beside it.
        for speed in filter(None, (own, gpu.speed)):
            is_fit = self._best(place) <= _OVER * link_rate(speed, width)
            if is_fit and speed < (gpu.max_speed or 0):
                return speed
        return gpu.max_speed or gpu.speed

    def _best(self, place: int) -> float:
        return max(self._with_host.get(str(place), [math.inf]))

    @cached_property
    def _with_host(self) -> dict[str, list[float]]:
        ways = ("host_to_device_memcpy", "device_to_host_memcpy")
        copies = (one for one in self._reported if one.benchmark.startswith(ways))
        return grouped((one.column, one.figure) for one in copies)

    # Switches of PCIe.

    @cached_property
    def _groups(self) -> list[set[int | str]]:
        """Returns the sets of accelerators and adapters that share a PCIe switch."""
        groups: list[set[int | str]] = [
            {a, b}
            for (a, b), how in self._facts.joins.items()
            if how in _BELOW_ONE_SWITCH and not self._is_staged(a, b)
        ]
        groups += [
            {place, name}
            for name, nic in self._nics.items()
            for place, how in nic.near.items()
            if how in _BELOW_ONE_SWITCH and place < len(self._gpus)
        ]
        for address, bridge in self._facts.bridges.items():
            below: set[int | str] = {name for name, card in self._cards if address in card.above}
            groups += [below] if bridge.is_switch and len(below) > 1 else []
        order = [card for card, _ in self._cards]
        return sorted(merged_sets(groups), key=lambda group: min(map(order.index, group)))

    @property
    def _cards(self) -> tuple[tuple[int | str, ReportedGpu | ReportedNic], ...]:
        return (*enumerate(self._gpus), *self._nics.items())

    def _is_staged(self, *places: int) -> bool:
        """Whether these accelerators' copies pass through host memory, which shows no switch."""
        is_refused = all(self._products[place].peers == "none" for place in places)
        reported = {"P2P", "peer access"} & self._facts.ways
        return is_refused and not reported and all(one.work is not None for one in self._reported)

    def _below_switches(self) -> None:
        for number, group in enumerate(self._groups):
            name, cards = f"plx{number}", [card for at, card in self._cards if at in group]
            above = {address for card in cards for address in card.above}
            bridges = (b for at, b in self._facts.bridges.items() if at in above)
            redirects = any(one.acs and one.is_switch for one in bridges)
            self._switches.append({"name": name, "kind": "pcie", "acs_redirect": redirects})
            there = f"host:{cards[0].node or 0}"
            gpus = [place for place in group if isinstance(place, int)]
            kind = self._pcie(min(gpus, default=0))
            self._links.append({"kind": kind, "each": name, "to": there})

    # Links between accelerators.

    def _among(self) -> None:
        counts = {
            pair: min(int(match[1] or 1) or 1, 64)
            for pair, how in (self._facts.joins or dict(self._usual())).items()
            if (match := _LINKS.fullmatch(how))
        }
        if not counts:
            return
        own = Counter[int]()
        for pair, n in counts.items():
            own.update(dict.fromkeys(pair, n))
        usual = {product.usual for product in self._products if product}
        # Fewer than direct links to all others need; or all lead to one other, through a switch.
        most = self._link[2]
        if max(own.values()) > most or (usual == {"switch"} and {*counts.values()} == {most}):
            self._through_switches(counts)
            return
        for count in sorted(set(counts.values())):
            pairs = [[f"sim:{a}", f"sim:{b}"] for (a, b), n in counts.items() if n == count]
            self._links.append({"kind": self._fabric(count), "pairs": pairs})

    def _through_switches(self, counts: Mapping[tuple[int, int], int]) -> None:
        count, self._has_switch = max(counts.values()), True
        named = self._fabric(count)
        for number, island in enumerate(sorted(merged_sets([{*pair} for pair in counts]), key=min)):
            name = f"nvswitch{number or ''}"
            self._switches.append({"name": name, "kind": "fabric", "model": "NVSwitch"})
            for place in sorted(island):
                links = self._gpus[place].links or count
                one = named if links >= count else self._fabric(links)
                self._links.append({"kind": one, "each": f"sim:{place}", "to": name})

    def _fabric(self, count: int) -> str:
        kind, each, _, reach, is_assumed = self._link
        return self._kind(
            kind, kind="fabric", rate=f"{each:g} GB/s", count=count,
            **known(assumed=is_assumed or None),
            efficiency=_shares(reach[0], reach[0]), sm_efficiency=_shares(reach[1], reach[1]),
        )  # fmt: skip

    @cached_property
    def _link(self) -> tuple[str, float, int, tuple[float, float], bool]:
        """Returns the kind of link, the GB/s of one link, the most links of an accelerator, the
        shares of the rate that copies and kernels reach, and whether the rate is assumed."""
        reported = next((gpu.link_rate for gpu in self._gpus if gpu.link_rate), None)
        product = self._product
        if product.links is not None:
            (kind, most, each), reach = product.links, product.reach
            if reported is None:
                self._by_table(product, f"{kind} links of {each:g} GB/s each way")
            return kind, (reported or each * 1e9) / 1e9, most, reach, False
        if "XGMI" in self._facts.joins.values():
            return "XGMI", 32, 7, (0.75, 0.69), True
        return "nvlink", (reported or 25e9) / 1e9, _MOST_LINKS, (0.88, 0.83), reported is None

    def _usual(self) -> Iterator[tuple[tuple[int, int], str]]:
        product = self._product
        if product.links is None or len(self._gpus) < 2:
            return
        pairs = list(combinations(range(len(self._gpus)), 2))
        kind, most, _ = product.links
        count = most
        if product.usual == "mesh":
            count = max(most // (self._installed(product) - 1), 1)
        elif product.usual == "pairs":
            pairs = [(a, b) for a, b in pairs if a // 2 == b // 2]
        elif product.usual != "switch":
            self._assumed.append(f"no {kind} between the accelerators (nothing tells of any)")
            return
        self._by_table(product, f"as in its usual server, a {product.usual} of {kind}")
        for pair in pairs:
            yield pair, f"NV{count}" if kind != "XGMI" else "XGMI"

    def _installed(self, product: Product) -> int:
        """Returns the number of accelerators: the usual one if only collectives were measured."""
        there = len(self._gpus)
        is_partial = self._reported and all(one.work is not None for one in self._reported)
        return max(there, product.count) if is_partial and not self._facts.counted else there


def _shares(read: float, write: float) -> dict[str, float]:
    return {"read": read, "write": write}


def _node(reported: ReportedNode) -> dict[str, Any]:
    missing = [name for name in ("cpus", "memory") if getattr(reported, name) is None]
    cpus = 16 if reported.cpus is None else reported.cpus
    memory = str(reported.memory or 256 * GIB)
    return {"cpus": cpus, "memory": memory, "assumed": [*missing, "rate", "latency"]}
