"""Proposes values of options and arguments to a shell. Opens no device."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from .help_text import Typed

_LARGE = 100
"""The most devices of a simulated machine whose links are proposed. Links of a large one take
seconds to build."""


def benchmark_names(_: Typed) -> Iterable[str]:
    from linkgauge.benchmarks.catalog import CATALOG

    return CATALOG


def machine_names(_: Typed) -> Iterable[str]:
    from linkgauge.backends.sim.description import shipped

    return shipped()


def labels(_: Typed) -> Iterable[str]:
    from linkgauge.engine.kept.runs import RESULTS, run_folders

    return sorted({folder.parent.name for folder in run_folders(RESULTS)})


def devices(typed: Typed) -> Iterable[str]:
    """Returns the devices of this machine or the simulated one: `cuda:N`, PCI addresses."""
    machine = typed.others.get("machine")
    if machine is not None:
        return _devices(_text(machine))
    from linkgauge.machine.pci import read_functions
    from linkgauge.machine.tree import ROOT
    from linkgauge.model.hardware.pcie import is_accelerator

    found = [one for one in read_functions(ROOT)[0] if is_accelerator(one)]
    driven = sum(one.driver == "nvidia" for one in found)
    return (*(f"cuda:{index}" for index in range(driven)), *(one.address for one in found))


def faults(typed: Typed) -> Iterator[str]:
    """Yields completions of a fault: an example of each kind that begins with the text; once only
    one kind fits, each part of the machine; after a part, the kind's parameters."""
    from linkgauge.backends.sim.faults import ALL, FAULTS, parameters

    kind, *rest = typed.text.split(" ")
    kinds = [name for name in FAULTS if (name == kind if rest else name.startswith(kind))]
    if len(kinds) != 1:
        yield from (FAULTS[name].example for name in kinds)
        return
    (kind,) = kinds
    if len(rest) < 2:
        machine = typed.others.get("machine")
        targets = () if machine is None else _targets(_text(machine))
        yield f"{kind} {ALL}"
        yield from (f"{kind} {target}" for target in targets)
        return
    before = typed.text.rpartition(" ")[0]
    yield from (f"{before} {name}={value}" for name, value in parameters(FAULTS[kind]).items())


def _text(machine: str) -> str:
    from linkgauge.backends.sim.description import load

    return load(machine)[1]


def _devices(text: str) -> Iterator[str]:
    return (f"sim:{index}" for index in range(_count(text)))


def _count(text: str) -> int:
    from linkgauge.backends.sim.description import parse_description

    return sum(group.count for group in parse_description(text).devices)


def _targets(text: str) -> Iterable[str]:
    if _count(text) > _LARGE:
        return _devices(text)
    from linkgauge.backends.sim.machine import built

    return built(text, ()).targets
