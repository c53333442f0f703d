"""Plans, orders and measures rounds of runs, and runs the user's command before each run."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from linkgauge.engine.controller import Observer
from linkgauge.engine.interrupts import Interrupts, undisturbed
from linkgauge.engine.plan import NO_BACKEND, Plan
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import opened
from linkgauge.machine.processes.command import end, start, waits_for_terminal
from linkgauge.machine.processes.process import environment_with
from linkgauge.model.cell_id import TableId, numbered
from linkgauge.model.documents.result import PlannedTable, Run, worst
from linkgauge.model.documents.variation import KeptRun, Setting
from linkgauge.model.errors import InputError, LinkgaugeError
from linkgauge.model.grouped import grouped

_LOOK = 1.0
"""Seconds after which a command that still runs is looked at."""
KEPT = 2000
"""The number of characters that are kept at the end of a command's output."""


def prepare(command: str, environment: Mapping[str, str | None], before: str) -> str:
    """Runs a shell command with these variables (None unsets one). Returns the end of its output.
    Raises LinkgaugeError if it fails; the message contains `before`, the name of the next run."""
    with ExitStack() as ending, Interrupts() as interrupts:
        with interrupts.held():  # Ctrl-C ends the command, also while it starts
            process = start(
                command,
                env=environment_with(environment),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            ending.callback(_end, process)
        printed = _printed(process, before).decode(errors="replace").strip()
        ending.pop_all()  # what it has left in the background goes on
    if code := process.returncode:
        ended = f"exit code {code}" if code > 0 else "a signal"
        said = f": {printed.splitlines()[-1]}" if printed else ""
        raise LinkgaugeError(f"--prepare failed before {before} ({ended}){said}")
    return printed[-KEPT:]


def _end(process: subprocess.Popen[bytes]) -> None:
    with undisturbed():  # a second Ctrl-C must leave nothing behind
        end(process)


def _printed(process: subprocess.Popen[bytes], before: str) -> bytes:
    while True:
        try:
            return process.communicate(timeout=_LOOK)[0]
        except subprocess.TimeoutExpired:
            if waits_for_terminal(process):
                how = "let it ask nothing, as `sudo -n` does after `sudo -v`"
                raise LinkgaugeError(
                    f"--prepare asks at the terminal before {before}: {how}"
                ) from None


# Measures settings in rounds, to compare them.


class Variant(msgspec.Struct, frozen=True):
    setting: Setting
    request: RunRequest


class RoundsRequest(msgspec.Struct, frozen=True):
    """What to measure in rounds. `prepare` is a shell command to run before each run, or None."""

    variants: tuple[Variant, ...]
    rounds: int
    significance: float
    prepare: str | None
    request: RunRequest


class RoundRun(NamedTuple):
    kept: KeptRun
    run: Run
    folder: Path | None


class Rounds(Observer):
    def prepares(self, setting: Setting, number: int) -> None:
        """Called before the run of this setting in round `number`, counted from 0."""

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Returns a context in which a run is written. Signals take effect at its end."""
        with Interrupts() as interrupts, interrupts.held():
            yield

    def concluding(self) -> AbstractContextManager[None]:
        """Returns a context in which the comparison is written. Signals do not interrupt it."""
        return undisturbed()


_SEED = 1


def plan_all(variants: Sequence[Variant], observer: Observer) -> tuple[Plan, ...]:
    plans: list[Plan] = []
    for variant in variants:
        with opened(variant.request) as session:
            plans.append(session.plan(observer))
    backends = {table.backend for plan in plans for table in plan}
    engines = [variant.request.settings.engines for variant in variants]
    if any(one.numa_node is not None for one in engines) and backends <= {"host", NO_BACKEND}:
        raise InputError(
            "--numa-node has no effect: it places the host memory of device copies, and there "
            "are none"
        )
    if not all(one.affinity for one in engines) and backends.isdisjoint(("cuda", "torch")):
        problem = "only backends cuda and torch have a controlling thread"
        raise InputError(f"--affinity has no effect: {problem}")
    return _of_one_size(plans)


def _of_one_size(plans: Sequence[Plan]) -> tuple[Plan, ...]:
    """Gives each table its smallest size in all plans: default sizes depend on free memory."""
    named = [_named(plan) for plan in plans]
    sizes = grouped((name, table.size) for own in named for name, table in own.items())
    return tuple(
        tuple(replace(table, size=min(sizes[name])) for name, table in own.items()) for own in named
    )


def _named(plan: Plan) -> dict[tuple[TableId, int], PlannedTable]:
    names = numbered([replace(table, size=0) for table in plan])
    return {(of, at): table for table, (_, of, at) in zip(plan, names, strict=True)}


def orders(settings: int, rounds: int, random: Random) -> Iterator[list[int]]:
    order: list[int] = []
    for number in range(rounds):
        order = order[::-1] if number % 2 else random.sample(range(settings), settings)
        yield order


def measure_rounds(
    asked: RoundsRequest, plans: Sequence[Plan], observer: Rounds
) -> Iterator[RoundRun]:
    """Measures and yields each run. Raises KeyboardInterrupt after a run that Ctrl-C interrupted,
    and LinkgaugeError if a session or the user's command fails."""
    variants, seeds = asked.variants, count(1)
    simulated = variants[0].request.settings.simulation is not None
    random = Random(_SEED if simulated else None)  # noqa: S311  # simulations can be repeated
    for number, order in enumerate(orders(len(variants), asked.rounds, random)):
        for place in order:
            observer.prepares(variants[place].setting, number)
            printed = _prepare(asked.prepare, variants[place], number)
            own = variants[place].request
            # The noise of a simulated machine has another seed in each run.
            settings = own.settings.simulating(draw=next(seeds))
            with opened(replace(own, settings=settings)) as session:
                run = session.measure(plans[place], observer)
                folder = session.folder
            kept = KeptRun(
                round=number,
                setting=place,
                folder=None if folder is None else str(folder),
                status=worst(result.status for result in run.results),
                finished=run.finished is not None,
                prepared=printed,
            )
            yield RoundRun(kept, run, folder)
            if not kept.finished:
                raise KeyboardInterrupt


def _prepare(command: str | None, variant: Variant, number: int) -> str | None:
    """Runs the user's command, with a setting's options as variables like LINKGAUGE_NUMA_NODE."""
    if command is None:
        return None
    setting = variant.setting
    options = {
        f"LINKGAUGE_{name.strip('-').replace('-', '_').upper()}": value
        for name, value in setting.values.items()
        if name.startswith("-")
    }
    position = {"LINKGAUGE_SETTING": setting.name, "LINKGAUGE_ROUND": str(number + 1)}
    own = variant.request.settings.surroundings.environment
    return prepare(command, {**own, **options, **position}, f"{setting}, round {number + 1}")
