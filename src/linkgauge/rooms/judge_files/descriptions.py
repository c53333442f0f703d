"""Describes a machine from texts. Products supply facts that no text gives; reports list these
assumptions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import yaml
from msgspec.structs import replace

from linkgauge.backends.sim.description import Description, description_of
from linkgauge.machine.given import read_given
from linkgauge.model.errors import InputError
from linkgauge.model.grouped import grouped
from linkgauge.model.names import and_all

from .layout import MachineLayout
from .products import Product, product_of, split_product
from .readers import ReadText, read_text
from .told import Facts, ToldFigure, ToldGpu, merged

MOST_BYTES = 64 << 20
"""The largest log in bytes that is read whole; a larger one may be cut."""


class Described(NamedTuple):
    """A machine as texts and products describe it, with the assumptions and the contradictions
    between texts (`clashes`). `facts` are all facts that were read. `unsure` lists accelerators
    whose PCIe links are hardly known."""

    name: str
    description: Description
    assumed: tuple[str, ...]
    clashes: tuple[str, ...]
    facts: Facts
    products: tuple[Product | None, ...] = ()
    tree: Mapping[str, Any] = {}
    unsure: frozenset[int] = frozenset()

    @property
    def text(self) -> str:
        """Returns the description as YAML."""
        return yaml.safe_dump(self.tree, sort_keys=False, allow_unicode=True)


# What `--machine` says.


def given(text: str) -> tuple[str, str] | None:
    """Returns the name and the YAML of a machine in the value of `--machine`: files
    (`topo.txt,lspci.txt`), or a number and a product (`8 x H100 SXM`). Returns None for any other
    value, such as a single file without facts on accelerators. Raises InputError if several files
    have none."""
    paths = [Path(one) for one in text.split(",")]
    if all(path.is_file() for path in paths):
        read = [one for path in paths for one in read_file(path)]
        facts = [one for each in read for one in each.facts]
        if not any(one.gpus or one.joins for one in facts):
            if len(paths) == 1:
                return None
            names = and_all(path.name for path in paths)
            raise InputError(f"--machine: {names} tell of no accelerator: {FORMS}")
        found = describe(paths[0].stem, facts)
        return found.name, found.text
    if (counted := split_product(text)) is None:
        return None
    found = describe(text, [of_product(*counted)])
    return found.name, found.text


FORMS = (
    "nvidia-smi topo -m, -q or nvlink -s, lspci -vvv or -tv, NCCL's topology XML, rocm-smi "
    "--showtopo, lscpu, numactl -H, lstopo's XML and DCGM's JSON are understood"
)


def of_product(model: str, count: int) -> Facts:
    """Returns the facts that follow from a product and a number of accelerators. Raises InputError
    if the number is not possible."""
    if not 1 <= count <= 64:
        raise InputError(f"{count} × {model}: give 1 to 64 of a product")
    return Facts(gpus={index: ToldGpu(model) for index in range(count)})


def read_file(path: Path) -> list[ReadText]:
    """Returns all figures and facts in a file. Raises InputError if the file cannot be read."""
    try:
        return read_text(path.name, read_given(path, MOST_BYTES).decode("utf-8", "replace"))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


# The description.


def describe(name: str, found: Sequence[Facts], told: Sequence[ToldFigure] = ()) -> Described:
    """Returns the machine that these facts describe. If no text gives the NUMA nodes of
    accelerators, the figures in `told` show them. Raises InputError for more accelerators than one
    machine has."""
    facts, clashes = merged(found)
    indices = sorted({*facts.gpus, *(index for pair in facts.joins for index in pair)})
    if len(indices) > 256:
        raise InputError(f"{len(indices)} accelerators: this is no output of one machine")
    gpus = [facts.gpus.get(index, ToldGpu()) for index in indices]
    usual = next((gpu.model for gpu in gpus if gpu.model), None)
    gpus = [replace(gpu, model=gpu.model or usual) for gpu in gpus]
    assumed = list[str]()
    if not facts.joins and all(gpu.node is None for gpu in gpus):
        nodes = _nodes_by(told, indices)
        gpus = [replace(gpu, node=nodes.get(i)) for i, gpu in zip(indices, gpus, strict=True)]
        if nodes:
            groups = grouped((nodes[i], str(i)) for i in indices)
            shown = " and ".join(", ".join(group) for group in groups.values())
            assumed.append(
                f"accelerators {shown} lie at different nodes, as the figures between them show "
                "(nvidia-smi topo -m would tell)"
            )
    made = MachineLayout(facts, indices, gpus, told, assumed)
    tree = made.description()
    kinds = tuple(product_of(gpu.model) for gpu in gpus)
    known = tuple(assumed), clashes, facts, kinds
    return Described(name, description_of(tree), *known, tree, frozenset(made.unsure))


# Which accelerators share a node, from the figures of all pairs.

_APART = 0.95
"""The share of the figures of pairs at one node that pairs at different nodes stay below."""


def _nodes_by(told: Sequence[ToldFigure], indices: Sequence[int]) -> Mapping[int, int]:
    """Returns the NUMA node of each accelerator, or nothing if the figures do not show the nodes.
    The first benchmark over pairs must have fast pairs in two or more groups of equal size, and
    slow pairs between the groups. Copies over the host are instead slower within a group, because
    they cross the shared links twice."""
    for name in dict.fromkeys(one.benchmark for one in told if "device_to_device" in one.benchmark):
        pairs = {
            (int(one.row), int(one.column)): one.figure
            for one in told
            if one.benchmark == name and one.part is None and one.row != one.column
        }
        if pairs and {a for pair in pairs for a in pair} == {*indices}:
            inverse = {pair: 1 / figure for pair, figure in pairs.items() if figure}
            is_staged = name.endswith("_staged") and len(inverse) == len(pairs)
            return _groups(pairs, indices) or (_groups(inverse, indices) if is_staged else {})
    return {}


def _groups(pairs: Mapping[tuple[int, int], float], indices: Sequence[int]) -> Mapping[int, int]:
    least = _APART * median(sorted(pairs.values())[-len(indices) :])
    near = {i: {i, *(b for a, b in pairs if a == i and pairs[a, b] >= least)} for i in indices}
    groups = list(dict.fromkeys(frozenset(group) for group in near.values()))
    is_split = sum(map(len, groups)) == len(indices) and len({*map(len, groups)}) == 1
    between = [v for (a, b), v in pairs.items() if b not in near[a]]
    if not is_split or len(groups) < 2 or not between or min(map(len, groups)) < 2:
        return {}
    if max(between) >= least or min(between) < _APART**2 * median(between):
        return {}
    return {i: node for node, group in enumerate(sorted(groups, key=min)) for i in group}
