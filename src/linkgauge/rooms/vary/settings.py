"""What `linkgauge vary` varies: the values of its options, and the settings that they make."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from string import ascii_uppercase
from typing import NamedTuple, get_args

from msgspec.structs import replace

from linkgauge.cli.options import within
from linkgauge.engine.folder import slug
from linkgauge.engine.request import RunRequest
from linkgauge.engine.rewriting import DeviceEngine
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Host
from linkgauge.model.memory import HOST_KINDS, STAGING
from linkgauge.model.names import hint
from linkgauge.model.settings import EngineSettings, Simulation, Streams, Surroundings
from linkgauge.model.variation import Setting

from .rounds import Variant

Change = Callable[[RunRequest], RunRequest]
Given = Mapping[str, Sequence[object] | None]
"""The values of the varied options, by option."""

PINNED = "pinned"
MEMORIES = (PINNED, *(kind for kind in HOST_KINDS if kind != STAGING))
ENGINES: tuple[DeviceEngine, ...] = get_args(DeviceEngine)
_CPUS = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Choice(NamedTuple):
    """One value of an option, as it was typed, and what it makes of a run."""

    option: str
    value: str
    change: Change


def variants_of(given: Given, base: RunRequest) -> tuple[Variant, ...]:
    """Every combination of the options' values, the first values first. Raises InputError for a
    value that cannot be, and if nothing varies."""
    axes = list(_axes(given, base.settings.simulation))
    combined = list(product(*axes))
    if len(combined) < 2:
        raise InputError(
            "nothing varies: give one option several values, such as --cpus 0-1 --cpus 0 or "
            "--env NAME=A,B"
        )
    if len(combined) > len(ascii_uppercase):
        raise InputError(f"{len(combined)} settings are too many: give {len(ascii_uppercase)}")
    labels: set[str] = set()
    return tuple(
        _variant(name, choices, base, labels)
        for name, choices in zip(ascii_uppercase, combined, strict=False)
    )


def _variant(name: str, choices: Sequence[Choice], base: RunRequest, labels: set[str]) -> Variant:
    setting = Setting(name, {choice.option: choice.value for choice in choices}, "")
    label = f"{base.label} {setting}"
    if slug(label, "") in labels:  # the same value twice, or one that a folder's name cannot tell
        label = f"{base.label} {name} {setting}"
    labels.add(slug(label, ""))
    request = replace(base, label=label)
    for choice in choices:
        request = choice.change(request)
    return Variant(replace(setting, label=label), request)


def _axes(given: Given, simulation: Simulation | None) -> Iterator[list[Choice]]:
    """The values of each option that has any."""
    usable = _usable_cpus(simulation) if given["--cpus"] else frozenset()
    readers: Mapping[str, Callable[[str], Change]] = {
        "--cpus": lambda text: _on_cpus(text, usable),
        "--numa-node": _on_node,
        "--memory": _in_memory,
        "--streams": _over_streams,
        "--affinity": _with_affinity,
        "--host-kernel": lambda text: _by_kernel(text, simulation),
        "--engine": _by_engine,
        "--graph": _as_graph,
    }
    for option, read in readers.items():
        if texts := given[option]:
            yield [Choice(option, text, read(text)) for text in map(str, texts)]
    variables: dict[str, list[Choice]] = {}
    for text in map(str, given["--env"] or ()):
        name, values = read_variable(text)
        variables.setdefault(name, []).extend(
            Choice(name, value, _with_variable(name, value)) for value in values
        )
    yield from variables.values()


def _usable_cpus(simulation: Simulation | None) -> Collection[int]:
    if simulation is None:
        return os.sched_getaffinity(0)
    return {cpu for node in host_of(simulation).nodes for cpu in node.cpus}


def host_of(simulation: Simulation | None) -> Host:
    """The simulated machine's host, else this one."""
    if simulation is None:
        from linkgauge.machine.host import read_host

        return read_host()
    from linkgauge.backends.sim import simulate

    return simulate(simulation, EngineSettings()).host()


def read_cpus(text: str) -> tuple[int, ...]:
    """CPUs of a list such as `0-3,8`, ascending. Raises InputError for anything else."""
    if not _CPUS.fullmatch(text):
        raise InputError(f"--cpus {text}: give CPUs such as 0-3,8, or all")
    cpus: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if int(last or first) < int(first):
            raise InputError(f"--cpus {text}: {piece} ends before it starts")
        cpus.update(range(int(first), int(last or first) + 1))
    return tuple(sorted(cpus))


def read_variable(text: str) -> tuple[str, tuple[str, ...]]:
    """The name and the values of `NAME=A,B`; `\\,` is a comma within a value. Raises
    InputError for anything else."""
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise InputError(f"--env {text}: give the variable and its values: NAME=A,B")
    if "\0" in values:
        raise InputError(f"--env {name}: a value cannot contain the character 0")
    return name, tuple(one.replace("\\,", ",") for one in re.split(r"(?<!\\),", values))


def _on_cpus(text: str, usable: Collection[int]) -> Change:
    cpus = () if text == "all" else read_cpus(text)
    if missing := sorted(set(cpus) - set(usable)):
        raise InputError(
            f"--cpus {text}: CPU {missing[0]} is absent, or this process may not use it"
        )
    return lambda request: _surrounded(request, cpus=cpus)


def _with_variable(name: str, value: str) -> Change:
    def change(request: RunRequest) -> RunRequest:
        environment = {**request.settings.surroundings.environment, name: value or None}
        return _surrounded(request, environment=environment)

    return change


def _surrounded(request: RunRequest, **changes: object) -> RunRequest:
    settings = request.settings
    surroundings: Surroundings = replace(settings.surroundings, **changes)
    return replace(request, settings=replace(settings, surroundings=surroundings))


def _on_node(text: str) -> Change:
    if text == "near":
        return lambda request: request
    if not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII):
        raise InputError(f"--numa-node {text}: give the number of a node, or near")
    return lambda request: _working(request, numa_node=int(text))


def _in_memory(text: str) -> Change:
    if text not in MEMORIES:
        raise InputError(f"--memory {text}{hint(text, MEMORIES)}")
    return lambda request: replace(request, memory="" if text == PINNED else text)


def _over_streams(text: str) -> Change:
    streams = within("--streams", int(text), Streams)
    return lambda request: _working(request, streams=streams)


def _with_affinity(text: str) -> Change:
    is_on = _is_on("--affinity", text)
    return lambda request: _working(request, affinity=is_on)


def _by_kernel(text: str, simulation: Simulation | None) -> Change:
    if simulation is not None:
        raise InputError("--host-kernel needs real threads: a simulated machine has none")
    if text == "fastest":
        return lambda request: request
    from linkgauge.backends.host_kernels import check_kernel

    check_kernel(text)
    return lambda request: _working(request, host_kernel=text)


def _by_engine(text: str) -> Change:
    kind = next((kind for kind in ENGINES if kind == text), None)
    if kind is None:
        raise InputError(f"--engine {text}: give {' or '.join(ENGINES)}")
    return lambda request: replace(request, engine=kind)


def _as_graph(text: str) -> Change:
    is_on = _is_on("--graph", text)
    return lambda request: replace(request, graphs=is_on)


def _is_on(option: str, text: str) -> bool:
    if text not in ("on", "off"):
        raise InputError(f"{option} {text}: give on or off")
    return text == "on"


def _working(request: RunRequest, **changes: object) -> RunRequest:
    settings = request.settings
    engines: EngineSettings = replace(settings.engines, **changes)
    return replace(request, settings=replace(settings, engines=engines))
