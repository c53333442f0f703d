"""Reads the values of the options of `linkgauge vary`, and combines them into settings."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product
from string import ascii_uppercase
from typing import NamedTuple, get_args

from msgspec.structs import replace

from linkgauge.cli.options import one_of, within
from linkgauge.engine.kept.folder import slug
from linkgauge.engine.request import DeviceEngine, RunRequest
from linkgauge.model.documents.variation import Setting
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Host
from linkgauge.model.memory import HOST_KINDS, STAGING
from linkgauge.model.settings import EngineSettings, Simulation, Streams

from .rounds import Variant

Given = Mapping[str, Sequence[object]]
"""The values of the varied options. An option has the name of the field that it sets: a field of
the request itself, or of a part of its settings."""

PINNED = "pinned"
MEMORIES = (PINNED, *(kind for kind in HOST_KINDS if kind != STAGING))
ENGINES: tuple[DeviceEngine, ...] = get_args(DeviceEngine)
_CPUS = re.compile(r"[0-9]{1,5}(-[0-9]{1,5})?(,[0-9]{1,5}(-[0-9]{1,5})?)*", re.ASCII)
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Choice(NamedTuple):
    option: str
    typed: str
    field: str
    value: object

    def of(self, request: RunRequest) -> RunRequest:
        settings, value = request.settings, self.value
        if self.field == "environment":
            value = {**settings.surroundings.environment, self.option: value}
        for name, part in (("engines", settings.engines), ("surroundings", settings.surroundings)):
            if self.field in part.__struct_fields__:
                changed = {name: replace(part, **{self.field: value})}
                return replace(request, settings=replace(settings, **changed))
        return replace(request, **{self.field: value})


def variants_of(given: Given, base: RunRequest) -> tuple[Variant, ...]:
    """Returns all combinations of the options' values, beginning with all first values. Raises
    InputError if there is only one combination, or if there are too many."""
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
    setting = Setting(name, {choice.option: choice.typed for choice in choices}, "")
    label = f"{base.label} {setting}"
    if slug(label, "") in labels:  # the same value twice, or one that a folder's name cannot tell
        label = f"{base.label} {name} {setting}"
    labels.add(slug(label, ""))
    request = replace(base, label=label)
    for choice in choices:
        request = choice.of(request)
    return Variant(replace(setting, label=label), request)


def _axes(given: Given, simulation: Simulation | None) -> Iterator[list[Choice]]:
    for name, texts in given.items():
        if name != "env" and texts:
            flag = f"--{name.replace('_', '-')}"
            yield [
                Choice(flag, text, name, _read(flag, text, simulation)) for text in map(str, texts)
            ]
    variables: dict[str, list[Choice]] = {}
    for text in map(str, given["env"]):
        name, values = read_variable(text)
        own = (Choice(name, one, "environment", one or None) for one in values)
        variables.setdefault(name, []).extend(own)
    yield from variables.values()


def _read(option: str, text: str, simulation: Simulation | None) -> object:
    match option:
        case "--cpus":
            return () if text == "all" else _cpus(text, _usable_cpus(simulation))
        case "--numa-node" if text != "near" and not re.fullmatch(r"[0-9]{1,6}", text, re.ASCII):
            raise InputError(f"--numa-node {text}: give the number of a node, or near")
        case "--numa-node":
            return None if text == "near" else int(text)
        case "--memory":
            return "" if text == PINNED else one_of(option, text, MEMORIES)
        case "--streams":
            return within(option, int(text), Streams)
        case "--host-kernel":
            return _kernel(text, simulation)
        case "--engine":
            return _one_of(option, text, {one: one for one in ENGINES})
    return _one_of(option, text, {"on": True, "off": False})


def _one_of(option: str, text: str, known: Mapping[str, object]) -> object:
    if text not in known:
        raise InputError(f"{option} {text}: give {' or '.join(known)}")
    return known[text]


def _kernel(text: str, simulation: Simulation | None) -> str | None:
    if simulation is not None:
        raise InputError("--host-kernel needs real threads: a simulated machine has none")
    if text == "fastest":
        return None
    from linkgauge.backends.host_kernels import check_kernel

    check_kernel(text)
    return text


def _usable_cpus(simulation: Simulation | None) -> Collection[int]:
    if simulation is None:
        return os.sched_getaffinity(0)
    return {cpu for node in host_of(simulation).nodes for cpu in node.cpus}


def host_of(simulation: Simulation | None) -> Host:
    if simulation is None:
        from linkgauge.machine.host import read_host

        return read_host()
    from linkgauge.backends.sim.backend import simulate

    return simulate(simulation, EngineSettings()).host()


def _cpus(text: str, usable: Collection[int]) -> tuple[int, ...]:
    if not _CPUS.fullmatch(text):
        raise InputError(f"--cpus {text}: give CPUs such as 0-3,8, or all")
    cpus: set[int] = set()
    for piece in text.split(","):
        first, _, last = piece.partition("-")
        if int(last or first) < int(first):
            raise InputError(f"--cpus {text}: {piece} ends before it starts")
        cpus.update(range(int(first), int(last or first) + 1))
    if missing := sorted(cpus - set(usable)):
        raise InputError(
            f"--cpus {text}: CPU {missing[0]} is absent, or this process may not use it"
        )
    return tuple(sorted(cpus))


def read_variable(text: str) -> tuple[str, tuple[str, ...]]:
    """Reads `NAME=A,B` as a name and values. `\\,` is a comma in a value. Raises InputError."""
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise InputError(f"--env {text}: give the variable and its values: NAME=A,B")
    if "\0" in values:
        raise InputError(f"--env {name}: a value cannot contain the character 0")
    return name, tuple(one.replace("\\,", ",") for one in re.split(r"(?<!\\),", values))
