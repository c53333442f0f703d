"""Code shared by the tools: opens a machine as asked, and measures benchmarks on it."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from pathlib import Path
from types import MappingProxyType
from typing import Any, NoReturn

import msgspec

from linkgauge.benchmarks.multinode import BETWEEN_PROCESSES
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.controller import Observer
from linkgauge.engine.ranks.opening import opened as opened_session
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import Session
from linkgauge.machine.launch import launched
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import Benchmark
from linkgauge.model.units import parse_size


class Where(msgspec.Struct, frozen=True):
    """Where a tool measures: `backend` null is the first accelerator backend that has devices, or
    the simulated machine's. With `wait`, it waits for another run's end. `name` is the tool's."""

    backend: str | None = None
    simulation: Simulation | None = None
    wait: bool = False
    name: str = ""


class Context(msgspec.Struct, frozen=True):
    """A machine opened for measuring, and the devices of its backend: none for backend `host`.
    `fabric` is what rows of benchmarks are laid out over."""

    session: Session
    fabric: DeviceSet

    @property
    def machine(self) -> Machine:
        return self.session.machine

    @property
    def settings(self) -> Settings:
        return self.session.request.settings

    @property
    def backend(self) -> str:
        return self.fabric.backend

    @property
    def devices(self) -> tuple[Device, ...]:
        return self.fabric.devices


@contextmanager
def printing_once() -> Iterator[None]:
    """Of the processes that mpirun started, the first alone prints."""
    with ExitStack() as held:
        if launched().rank:
            nowhere = held.enter_context(Path(os.devnull).open("w"))
            held.enter_context(redirect_stdout(nowhere))
        yield


class Quiet(Observer):
    """An observer that prints messages for the user on stderr, and nothing else."""

    def say(self, line: str) -> None:
        print(line, file=sys.stderr)


@contextmanager
def opened(
    where: Where,
    settings: Settings,
    *,
    devices: Sequence[str] = (),
    tells: bool = True,
    several: bool = False,
    across: Sequence[str] = tuple(row.name for row in BETWEEN_PROCESSES),
) -> Iterator[Context]:
    """The machine, open for measuring with `settings`: `devices` as engine.plan.fabrics names them
    (all if none), of the first backend that has any. With `tells`, a simulated machine is named
    on stderr, where it does not disturb parsers of the tool's output. With `several`, all processes
    that mpirun started measure benchmarks like those named `across` together; all but the first
    leave here.

    Raises InputError if there is no device, unless backend `host` is asked for.
    """
    if where.simulation is not None and tells and not (several and launched().rank):
        print(f"SIMULATED {where.simulation.machine}", file=sys.stderr)
    request = RunRequest(
        what=Selection(tuple(across)) if several else Selection(),
        settings=msgspec.structs.replace(settings, simulation=where.simulation),
        backends=() if where.backend is None else (where.backend,),
        devices=tuple(devices),
        only_first=not several,  # ranks choose one backend together
        with_cpus=True,
        wait=where.wait,
        label="as",
    )
    with opened_session(request) as session:
        alone = DeviceSet("host", session.machine.host.nodes)
        fabric = next(iter(request.over(session.machine)), alone)
        if fabric.reason is not None:
            raise InputError(fabric.reason)
        yield Context(session, fabric)


@contextmanager
def opened_devices(where: Where, settings: Settings, *, tells: bool = True) -> Iterator[Context]:
    """Like `opened`, for copies to and from devices. Raises InputError if there is none."""
    with opened(where, settings, tells=tells) as context:
        if not context.devices:
            raise InputError(f"backend {context.backend} has no devices")
        yield context


def measure(
    context: Context,
    benchmarks: Sequence[Benchmark],
    *,
    sizes: Sequence[int] | None = None,
    first: int = 0,
    observer: Observer = Quiet(),  # noqa: B008
) -> Run:
    """Measures the benchmarks at these sizes (bytes; else the settings') and keeps nothing on disk.
    After Ctrl-C the run has no end (`finished` is null) and holds what was measured. Callers that
    measure several times number the cells consecutively: these begin at `first`.

    Raises InputError if a size fits nowhere, Busy if another run measures a device.
    """
    plan = context.session.plan_of(benchmarks, sizes, first)
    return context.session.measure(plan, observer)


def digits(written: str) -> int | None:
    """The number of a text of decimal digits only; with more than 18 digits, one beyond any bound.
    None for any other text."""
    if not (written.isascii() and written.isdecimal()):
        return None
    return int(written.lstrip("0")[:19] or "0")


def whole(written: str) -> int:
    """A whole number, as C reads it. Raises ValueError."""
    sign = -1 if written.startswith("-") else 1
    number = digits(written.removeprefix("-" if sign < 0 else "+"))
    if number is None:
        raise ValueError(f"{written!r} is not a whole number")
    return sign * number


def decimal(written: str) -> float:
    """A number, as C reads it. Raises ValueError."""
    if "_" in written or not written.isascii():  # which only Python reads as a number
        raise ValueError(f"{written!r} is not a number")
    return float(written)


class UsageError(InputError):
    """Arguments that the tool rejects."""

    exit_code = 1


def size_of(option: str, written: str) -> int:
    """Bytes, as linkgauge reads sizes. Raises UsageError."""
    try:
        return parse_size(written)
    except InputError as error:
        raise UsageError(f"{option}: {error}") from error


@contextmanager
def hinting(hint: str) -> Iterator[None]:
    """Adds a hint to the error for rejected arguments."""
    try:
        yield
    except UsageError as error:
        raise UsageError(f"{error}\n{hint}") from error


class Parser(argparse.ArgumentParser):
    """An argument parser that neither exits nor prints: errors become UsageError with argparse's
    message, or the tool's own if a pattern in `words` matches it. It has no --help of its own, and
    accepts no abbreviated names unless `allow_abbrev`."""

    def __init__(self, words: Mapping[str, str] = MappingProxyType({}), **options: object) -> None:
        given = {"add_help": False, "allow_abbrev": False} | options
        super().__init__(**given)  # type: ignore[arg-type]  # argparse's own options
        self._words = words

    def error(self, message: str) -> NoReturn:
        found = ((re.fullmatch(pattern, message), words) for pattern, words in self._words.items())
        raise UsageError(next((match.expand(own) for match, own in found if match), message))


class OnceAction(argparse.Action):
    """An option that may be given once, and is absent until then: its default is suppressed."""

    refusal = "option {given} is given more than once"

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: Any, values: Any, flag: str | None = None
    ) -> None:
        if hasattr(namespace, self.dest):
            longest = max(self.option_strings, key=len)
            raise UsageError(self.refusal.format(given=flag, longest=longest))
        setattr(namespace, self.dest, values)
