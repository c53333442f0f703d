"""Opens a machine and measures benchmarks on it, for the command lines of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, redirect_stdout
from functools import wraps
from pathlib import Path

import msgspec

from linkgauge.benchmarks.processes import BETWEEN_PROCESSES
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.controller import Observer
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import Session
from linkgauge.machine.processes.launch import launched
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Device, Machine
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import Benchmark


class Where(msgspec.Struct, frozen=True):
    """Where another tool's command measures: if `backend` is None, on the simulated machine or else
    the first accelerator backend with devices. If `wait` is true, it first awaits other runs."""

    backend: str | None = None
    simulation: Simulation | None = None
    wait: bool = False
    name: str = ""


class Context(msgspec.Struct, frozen=True):
    """A machine opened for measuring. `fabric` has its devices, or none for the backend `host`."""

    session: Session
    fabric: DeviceSet
    tool: str = ""

    @property
    def machine(self) -> Machine:
        return self.session.machine

    @property
    def backend(self) -> str:
        return self.fabric.backend

    @property
    def devices(self) -> tuple[Device, ...]:
        return self.fabric.devices


Tool = Callable[[Sequence[str], Where], int]
"""A function that measures what its arguments ask for, prints what the tool prints, and returns an
exit code."""


def helpful(text: str) -> Callable[[Tool], Tool]:
    def decorated(tool: Tool) -> Tool:
        @wraps(tool)
        def run(arguments: Sequence[str], where: Where) -> int:
            if not {"-h", "--help"} & set(arguments):
                return tool(arguments, where)
            print(text)
            return 0

        return run

    return decorated


def show(*parts: Iterable[str]) -> None:
    for part in parts:
        for line in part:
            print(line)
    sys.stdout.flush()


@contextmanager
def printing_once() -> Iterator[None]:
    """Lets only the first of the processes that mpirun started print during this block."""
    with ExitStack() as held:
        if launched().rank:
            nowhere = held.enter_context(Path(os.devnull).open("w"))
            held.enter_context(redirect_stdout(nowhere))
        yield


class Quiet(Observer):
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
    """Opens a machine. `devices` are named as in engine.plan.fabrics (empty: all). If `tells` is
    true, prints a simulated machine's name on stderr. If `several` is true, all processes that
    mpirun started measure the benchmarks `across`: only rank 0 runs the block, others serve it and
    exit. Raises InputError if there is no device, except for backend `host`."""
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
    from linkgauge.uses.measuring import opened_by_launch  # which loads what keeps a run

    with opened_by_launch(request) as session:
        alone = DeviceSet("host", session.machine.host.nodes)
        fabric = next(iter(request.over(session.machine)), alone)
        if fabric.reason is not None:
            raise InputError(fabric.reason)
        yield Context(session, fabric, where.name)


def measure(
    context: Context,
    benchmarks: Sequence[Benchmark],
    *,
    sizes: Sequence[int] | None = None,
    first: int = 0,
    observer: Observer = Quiet(),  # noqa: B008
) -> Run:
    """Measures benchmarks, but stores nothing. Cells are numbered from `first` on. After Ctrl-C,
    `finished` is None. Raises InputError if a size exceeds memory, DeviceBusy if a device is in
    use."""
    plan = context.session.plan_of(benchmarks, sizes, first)
    return context.session.measure(plan, observer)
