"""The description of a machine, made of what texts tell of it; products fill in what they do not,
and what is assumed so is said."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from linkgauge.machine.given import read_given
from linkgauge.model.errors import InputError

from .grouping import nodes_by
from .readers import ReadText, read_text
from .told import Bridge, Clash, Facts, Told, ToldGpu, ToldNode, merged

MOST_BYTES = 64 << 20
"""No log is larger: what is may be cut."""
ON_SHEET = " (data sheet)"
"""What ends an assumption that a product's data sheet makes."""
_GIB = 1 << 30
_SWITCHED = ("PIX", "PXB")
"""What `nvidia-smi topo -m` calls pairs below one PCIe switch."""
_NVLINK = re.compile(r"NV(\d{1,3})")
_MOST_LINKS = 18


class Product(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What products.yml says of one."""

    name: str
    count: int
    memory: int
    rate: float
    pcie: tuple[float, int] | None = None
    links: tuple[str, int, float] | None = None
    c2c: float | None = None
    copies: float | None = None
    usual: str = ""
    peers: str = "all"
    reach: tuple[float, float] = (1.0, 1.0)
    amd: bool = False


@cache
def products() -> tuple[Product, ...]:
    text = (resources.files(__package__) / "products.yml").read_text("utf-8")
    return msgspec.convert(yaml.safe_load(text), tuple[Product, ...])


def product_of(model: str | None) -> Product | None:
    """The product that a name is of."""
    name = re.sub(r"[-_]", " ", model or "")
    for one in products():
        if re.search(rf"\b(?:{one.name})", model or "") or re.search(rf"\b(?:{one.name})", name):
            return one
    return None


class Described(NamedTuple):
    """A machine as texts and products describe it: its YAML, what was assumed, and what texts
    contradict each other about; `facts` are all that was told."""

    name: str
    text: str
    assumed: tuple[str, ...]
    clashes: tuple[Clash, ...]
    facts: Facts
    products: tuple[Product | None, ...] = ()


# What `--machine` says.

_COUNTED = re.compile(
    r"\s*(?:(\d{1,3})\s*[x×*]?\s*)?((?:NVIDIA |AMD |Instinct |Tesla )*\S.{0,60}?)\s*"
)


def given(text: str) -> tuple[str, str] | None:
    """The name and the YAML of a machine that `--machine` names: files (`topo.txt,lspci.txt`), or
    a product and how many (`8 x H100 SXM`); None of anything else, as of a file that tells nothing
    of accelerators. Raises InputError of several such files."""
    paths = [Path(one) for one in text.split(",")]
    if all(path.is_file() for path in paths):
        read = [read_file(path) for path in paths]
        facts = [one for each in read for one in each.facts]
        if not any(one.gpus or one.joins for one in facts):
            if len(paths) == 1:
                return None
            names = " and ".join(path.name for path in paths)
            raise InputError(f"--machine: {names} tell of no accelerator: {FORMS}")
        found = describe(paths[0].stem, facts)
        return found.name, found.text
    if (counted := split_product(text)) is None:
        return None
    found = describe(text, [of_product(*counted)])
    return found.name, found.text


def split_product(text: str) -> tuple[str, int] | None:
    """A product's name and how many there are: what is said, else those of its usual server. None
    of what names no product."""
    match = _COUNTED.fullmatch(text)
    if match is None or (product := product_of(match[2])) is None:
        return None
    return match[2], int(match[1] or product.count)


FORMS = (
    "nvidia-smi topo -m, -q or nvlink -s, lspci -vvv or -tv, NCCL's topology XML, rocm-smi "
    "--showtopo, lscpu, numactl -H, lstopo's XML and DCGM's JSON are understood"
)


def of_product(model: str, count: int) -> Facts:
    """The facts that a product and a number tell. Raises InputError for a number that is none."""
    if not 1 <= count <= 64:
        raise InputError(f"{count} × {model}: give 1 to 64 of a product")
    return Facts(gpus={index: ToldGpu(model) for index in range(count)})


def read_file(path: Path) -> ReadText:
    """What is in a file. Raises InputError for one that cannot be read."""
    try:
        return read_text(path.name, read_given(path, MOST_BYTES).decode("utf-8", "replace"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


# The description.


def describe(name: str, found: Sequence[Facts], told: Sequence[Told] = ()) -> Described:
    """The machine that these facts are of. Raises InputError for more accelerators than one machine
    has. Which of them lie together is seen by the figures `told`, where no text says it."""
    facts, clashes = merged(found)
    indices = sorted({*facts.gpus, *(index for pair in facts.joins for index in pair)})
    if len(indices) > 256:
        raise InputError(f"{len(indices)} accelerators: this is no output of one machine")
    gpus = [facts.gpus.get(index, ToldGpu()) for index in indices]
    usual = next((gpu.model for gpu in gpus if gpu.model), None)
    gpus = [msgspec.structs.replace(gpu, model=gpu.model or usual) for gpu in gpus]
    assumed = list[str]()
    if not facts.joins and all(gpu.node is None for gpu in gpus):
        nodes = nodes_by(told, indices)
        gpus = [
            msgspec.structs.replace(gpu, node=nodes.get(i))
            for i, gpu in zip(indices, gpus, strict=True)
        ]
        if nodes:
            groups = [
                [i for i in indices if nodes[i] == node] for node in sorted({*nodes.values()})
            ]
            shown = " and ".join(", ".join(map(str, group)) for group in groups)
            assumed.append(
                f"accelerators {shown} lie at different nodes, as the figures between them show "
                "(nvidia-smi topo -m would tell)"
            )
    made = _Maker(facts, indices, gpus, assumed)
    text = yaml.safe_dump(made.description(), sort_keys=False, allow_unicode=True)
    kinds = tuple(product_of(gpu.model) for gpu in gpus)
    return Described(name, text, tuple(assumed), clashes, facts, kinds)


class _Maker:
    def __init__(
        self, facts: Facts, indices: Sequence[int], gpus: Sequence[ToldGpu], assumed: list[str]
    ) -> None:
        self._facts, self._gpus, self._assumed = facts, gpus, assumed
        self._place = {index: place for place, index in enumerate(indices)}
        self._joins = {
            (self._place[a], self._place[b]): how
            for (a, b), how in facts.joins.items()
        }  # fmt: skip
        self._kinds: dict[str, Any] = {}
        self._links: list[dict[str, Any]] = []
        self._switches: list[dict[str, Any]] = []

    def description(self) -> dict[str, Any]:
        nodes = self._nodes()
        for place, gpu in enumerate(self._gpus):
            self._to_host(place, gpu)
        self._among()
        self._below_switches()
        if nodes > 1:
            self._kinds["socket"] = {"kind": "socket", "rate": "60 GB/s"}
            pairs = [[f"host:{a}", f"host:{b}"] for a, b in combinations(range(nodes), 2)]
            self._links.append({"kind": "socket", "pairs": pairs})
        return {
            "source": "; ".join(["texts", *dict.fromkeys(self._assumed)]),
            "host": self._host(nodes),
            "link_kinds": self._kinds,
            "switches": self._switches,
            "devices": [self._device(gpu) for gpu in self._gpus],
            "links": self._links,
        }

    def _nodes(self) -> int:
        named = [gpu.node for gpu in self._gpus if gpu.node is not None]
        return min(1 + max([*named, *self._facts.nodes, 0]), 64)

    def _host(self, nodes: int) -> dict[str, Any]:
        known = self._facts
        each = [known.nodes.get(index, ToldNode()) for index in range(nodes)]
        host: dict[str, Any] = {
            "nodes": [
                {"cpus": node.cpus or 16, "memory": str(node.memory or 256 * _GIB)} for node in each
            ],
            "cpu_model": known.cpu_model or "not told",
            "hostname": known.hostname or "unknown",
        }
        if known.distances and len(known.distances) == nodes:
            host["distances"] = [list(row) for row in known.distances]
        if known.hypervisor:
            host["hypervisor"] = known.hypervisor
        if known.architecture:
            host["architecture"] = known.architecture
        return host

    def _device(self, gpu: ToldGpu) -> dict[str, Any]:
        product = product_of(gpu.model)
        device: dict[str, Any] = {
            "model": gpu.model or "an accelerator",
            "memory": str(gpu.memory or (product.memory if product else 1) * _GIB),
            "vendor_id": 0x1002 if product and product.amd else 0x10DE,
            "stages": True,
        }
        if gpu.pci and re.fullmatch(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", gpu.pci):
            device["pci"] = [gpu.pci]
        if gpu.node is not None:
            device["numa_node"] = gpu.node
        if product is not None:
            device["memory_rate"] = f"{product.rate} GB/s"
            device["peer_access"] = "fabric" if product.peers == "none" else product.peers
            if product.copies:
                device["ce"] = {"local": f"{product.copies} GB/s"}
            self._assume(product, f"memory of {product.rate:g} GB/s")
        return device

    def _assume(self, product: Product, what: str) -> None:
        name = next((gpu.model for gpu in self._gpus if product_of(gpu.model) is product), "")
        self._assumed.append(f"{name}: {what}{ON_SHEET}")

    def _kind(self, name: str, **about: Any) -> str:
        """The name of a kind of link like this: one that is there, or a new one."""
        number = 2
        own = name
        while own in self._kinds and self._kinds[own] != about:
            own, number = f"{name}_{number}", number + 1
        self._kinds[own] = about
        return own

    def _to_host(self, place: int, gpu: ToldGpu) -> None:
        product = product_of(gpu.model)
        there = f"host:{gpu.node or 0}"
        if product is not None and product.c2c:
            kind = self._kind(
                "c2c", kind="internal", rate=f"{product.c2c} GB/s", efficiency=_shares(0.77, 0.66)
            )
            self._assume(product, f"C2C of {product.c2c:g} GB/s each way to the host")
        else:
            kind = self._pcie(place, gpu, product)
            switch = self._switch_of(place)
            there = switch or there
        self._links.append({"kind": kind, "each": f"sim:{place}", "to": there})

    def _pcie(self, place: int, gpu: ToldGpu, product: Product | None) -> str:
        speed, width = gpu.max_speed, gpu.width
        if product is not None and product.pcie and (not speed or not width):
            speed, width = speed or product.pcie[0], width or product.pcie[1]
            self._assume(product, f"PCIe {speed:g} GT/s x{width}")
        speed, width = speed or gpu.speed, width or gpu.max_width
        about: dict[str, Any] = {"kind": "pcie", "efficiency": _shares(0.86, 0.86)}
        if speed and width:
            trained = gpu.speed if gpu.speed and gpu.speed < speed else speed
            about |= {"speed": speed, "width": width}
            if trained < speed:
                about["idle_speed"] = trained
            if gpu.max_width and gpu.max_width > width:
                about |= {"max_width": gpu.max_width}
            return self._kind(f"pcie{speed:g}x{width}".replace(".", "_"), **about)
        self._assumed.append(f"accelerator {place}: PCIe 16 GT/s x16 (nothing tells)")
        return self._kind("pcie_not_told", **about, speed=16, width=16)

    # Switches of PCIe.

    def _groups(self) -> list[set[int]]:
        """Accelerators below one switch: by their bridges where these are told, else by what joins
        them."""
        groups: list[set[int]] = []
        for (a, b), how in self._joins.items():
            if how in _SWITCHED:
                groups.append({a, b})
        for a, b in combinations(range(len(self._gpus)), 2):
            shared = set(self._gpus[a].above) & set(self._gpus[b].above)
            if any(self._bridge(one).is_switch for one in shared):
                groups.append({a, b})
        joined: list[set[int]] = []
        for group in groups:
            touching = [one for one in joined if one & group]
            joined = [one for one in joined if not one & group]
            joined.append(group.union(*touching))
        return sorted(joined, key=min)

    def _bridge(self, address: str) -> Bridge:
        return self._facts.bridges.get(address, Bridge())

    def _switch_of(self, place: int) -> str | None:
        for number, group in enumerate(self._groups()):
            if place in group:
                return f"plx{number}"
        return None

    def _below_switches(self) -> None:
        for number, group in enumerate(self._groups()):
            first = self._gpus[min(group)]
            above = [one for place in group for one in self._gpus[place].above]
            redirects = any(self._bridge(one).acs for one in above)
            self._switches.append(
                {"name": f"plx{number}", "kind": "pcie", "acs_redirect": redirects}
            )
            product = product_of(first.model)
            kind = self._pcie(min(group), first, product)
            self._links.append(
                {"kind": kind, "each": f"plx{number}", "to": f"host:{first.node or 0}"}
            )

    # Links between accelerators.

    def _among(self) -> None:
        told = {
            pair: how
            for pair, how in self._joins.items()
            if _NVLINK.fullmatch(how) or how == "XGMI"
        }
        if not self._joins:
            told = dict(self._usual())
        if not told:
            return
        counts = {pair: self._count(how) for pair, how in told.items()}
        kind, each, most, reach = self._link_kind()
        if self._is_switched(counts, most):
            count = max(counts.values())
            self._switches.append({"name": "nvswitch", "kind": "fabric", "model": "NVSwitch"})
            named = self._fabric(kind, each, count, reach)
            members = sorted({place for pair in counts for place in pair})
            for place in members:
                links = self._gpus[place].links or count
                one = named if links >= count else self._fabric(kind, each, links, reach)
                self._links.append({"kind": one, "each": f"sim:{place}", "to": "nvswitch"})
            return
        for count in sorted(set(counts.values())):
            pairs = [[f"sim:{a}", f"sim:{b}"] for (a, b), n in counts.items() if n == count]
            self._links.append({"kind": self._fabric(kind, each, count, reach), "pairs": pairs})

    def _count(self, how: str) -> int:
        match = _NVLINK.fullmatch(how)
        return min(int(match[1]), 64) if match and int(match[1]) else 1

    def _fabric(self, kind: str, each: float, count: int, reach: tuple[float, float]) -> str:
        return self._kind(
            kind, kind="fabric", rate=f"{each:g} GB/s", count=count,
            efficiency=_shares(reach[0], reach[0]), sm_efficiency=_shares(reach[1], reach[1]),
        )  # fmt: skip

    def _link_kind(self) -> tuple[str, float, int, tuple[float, float]]:
        """Kind, GB/s of one link, the most of one accelerator, and shares that are reached."""
        told = next((gpu.link_rate for gpu in self._gpus if gpu.link_rate), None)
        product = next((p for gpu in self._gpus if (p := product_of(gpu.model))), None)
        if product is None or product.links is None:
            if told is None:
                self._assumed.append("links between accelerators: 25 GB/s each (nothing tells)")
            return "nvlink", (told or 25e9) / 1e9, _MOST_LINKS, (0.88, 0.83)
        kind, most, each = product.links
        if told is None:
            self._assume(product, f"{kind} links of {each:g} GB/s each way")
        return kind, (told or each * 1e9) / 1e9, most, product.reach

    def _is_switched(self, counts: Mapping[tuple[int, int], int], most: int) -> bool:
        """Whether the links of one accelerator to all others would be more than it has."""
        own: dict[int, int] = {}
        for pair, count in counts.items():
            for place in pair:
                own[place] = own.get(place, 0) + count
        return max(own.values(), default=0) > most

    def _usual(self) -> Iterator[tuple[tuple[int, int], str]]:
        """How the product's usual server joins them, where no text tells."""
        product = next((p for gpu in self._gpus if (p := product_of(gpu.model))), None)
        if product is None or product.links is None or len(self._gpus) < 2:
            return
        pairs = list(combinations(range(len(self._gpus)), 2))
        kind, most, _ = product.links
        count = most
        if product.usual == "mesh":
            count = max(most // (len(self._gpus) - 1), 1)
        elif product.usual == "pairs":
            pairs = [(a, b) for a, b in pairs if a // 2 == b // 2]
        elif product.usual != "switch":
            self._assumed.append(f"no {kind} between the accelerators (nothing tells of any)")
            return
        self._assume(product, f"the usual server, a {product.usual} of {kind}")
        for pair in pairs:
            yield pair, f"NV{count}" if kind != "XGMI" else "XGMI"


def _shares(read: float, write: float) -> dict[str, float]:
    return {"read": read, "write": write}
