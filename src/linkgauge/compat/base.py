"""What the tools have in common: a machine opened as asked, and benchmarks measured on it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from typing import NoReturn

import msgspec

from linkgauge.backends import ACCELERATORS, SIMULATED
from linkgauge.benchmarks.table import Fabric
from linkgauge.engine.controller import Observer, execute, now
from linkgauge.engine.journal import Opened
from linkgauge.engine.locks import devices_measured, hold
from linkgauge.engine.plan import fabrics, make_plan
from linkgauge.engine.supervisor import Supervisor
from linkgauge.engine.worker import Worker
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Device, Machine
from linkgauge.model.result import (
    CellResult,
    PlannedCell,
    PlannedSheet,
    Result,
    Run,
    Settings,
    Simulation,
)
from linkgauge.model.transfer import Benchmark


class Where(msgspec.Struct, frozen=True):
    """On what a tool is to measure: `backend` null is the first accelerator backend that has
    devices, or the simulated machine's. With `wait`, another run's end is waited for."""

    backend: str | None = None
    simulation: Simulation | None = None
    wait: bool = False


class Context(msgspec.Struct, frozen=True):
    """A machine that is open for measuring with these settings, and the devices of its backend:
    none of backend `host`. `fabric` is what rows of benchmarks are laid out over."""

    worker: Worker
    machine: Machine
    backend: str
    devices: tuple[Device, ...]
    fabric: Fabric
    settings: Settings
    wait: bool


class Silent:
    """An observer that tells nobody."""

    def planned(self, visits: int) -> None: ...
    def started(self, sheet: PlannedSheet, cell: PlannedCell) -> None: ...
    def finished(self, cell: CellResult, /) -> None: ...
    def completed(self, result: Result) -> None: ...


class Completed(Silent):
    """An observer that tells of each result as soon as all of its cells are measured."""

    def __init__(self, tell: Callable[[Result], None]) -> None:
        self._tell = tell

    def completed(self, result: Result) -> None:
        self._tell(result)


@contextmanager
def opened(
    where: Where,
    settings: Settings,
    *,
    devices: Sequence[str] = (),
    backends: Sequence[str] = ACCELERATORS,
    tells: bool = True,
) -> Iterator[Context]:
    """The machine, open for measuring with `settings`: `devices` as engine.plan.fabrics names
    them (all if none), of the first of `backends` that has any. A simulated machine is named on
    stderr, so that parsers of the tool's output are not disturbed, unless not `tells`: it was.

    Raises InputError where there is no device, unless backend `host` is asked for.
    """
    settings = msgspec.structs.replace(settings, simulation=where.simulation)
    if where.simulation is not None and tells:
        print(f"SIMULATED {where.simulation.machine}", file=sys.stderr)
    with closing(Supervisor(settings)) as worker:
        machine = _survey(worker, where, backends)
        if where.backend == "host":
            fabric = Fabric("host", machine.host.nodes, (), "backend host has no devices")
        else:
            fabric = fabrics(machine, devices, settings.engines.numa_node)[0]
            if fabric.reason is not None:
                raise InputError(fabric.reason)
        yield Context(worker, machine, fabric.backend, fabric.devices, fabric, settings, where.wait)


def _survey(worker: Worker, where: Where, backends: Sequence[str]) -> Machine:
    """The machine with one backend's devices. Opening a backend takes seconds: the next is asked
    only where the last one had none."""
    if where.simulation is not None:
        return worker.survey((SIMULATED,))
    if where.backend == "host":
        return worker.survey(())
    unavailable: dict[str, str] = {}
    for name in (where.backend,) if where.backend is not None else backends:
        machine = worker.survey((name,))
        if machine.devices.get(name):
            return machine
        unavailable |= machine.unavailable
    return msgspec.structs.replace(worker.survey(()), devices={}, unavailable=unavailable)


def measure(
    context: Context,
    benchmarks: Sequence[Benchmark],
    *,
    sizes: Sequence[int] | None = None,
    first: int = 0,
    observer: Observer = Silent(),  # noqa: B008
) -> Run:
    """Measures the benchmarks at these sizes (bytes; else the settings') and keeps nothing on
    disk. After Ctrl-C the run has no end (`finished` is null) and what was measured. What measures
    several times numbers its cells through: the `first` of these has that number.

    Raises InputError where a size fits nowhere, Busy where another run measures a device.
    """
    plan = make_plan(benchmarks, context.machine, sizes or context.settings.sizes, first=first)
    started = now()
    record = Opened(
        id=started,
        label="as",
        simulated=context.machine.simulated is not None,
        command=(),
        started=started,
        machine=context.machine,
        settings=context.settings,
        plan=plan,
    )
    held = devices_measured(context.machine, plan)
    with hold(held, wait=context.wait, tell=lambda text: print(text, file=sys.stderr)):
        return execute((record,), context.worker, lambda _: None, observer)


def digits(written: str) -> int | None:
    """The number that decimal digits alone write; of more than 18, one beyond any bound. None of
    any other text."""
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
    if "_" in written or not written.isascii():  # which Python alone reads as a number
        raise ValueError(f"{written!r} is not a number")
    return float(written)


class UsageError(InputError):
    """Arguments that the tool refuses. `exit_code` is the tool's own; the text of a tool that
    prints it itself is empty."""

    def __init__(self, message: str, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class Parser(argparse.ArgumentParser):
    """An argument parser that ends nothing and prints nothing: what is wrong is a UsageError with
    argparse's words, which the tool says in its own. It has no --help of its own, and takes no
    shortened names unless `allow_abbrev`."""

    def __init__(self, **options: object) -> None:
        given = {"add_help": False, "allow_abbrev": False} | options
        super().__init__(**given)  # type: ignore[arg-type]  # argparse's own options

    def error(self, message: str) -> NoReturn:
        raise UsageError(message)
