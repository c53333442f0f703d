"""Resumes an interrupted run of one process, on the same machine and with the same options."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote

from linkgauge.engine.budget import seconds_between
from linkgauge.engine.controller import Doubts, Observer, go_on_with, now
from linkgauge.engine.interrupts import collecting_seldom
from linkgauge.engine.locks import devices_measured, hold
from linkgauge.engine.workers import workers_of
from linkgauge.machine.kernel_log import following
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import Simulation

from .journal import JOURNAL_FILE, RUN_FILE, Journal, Resumed
from .run_state import state_of


def go_on(
    folder: Path,
    given: Mapping[str, str],
    observer: Observer,
    *,
    command: tuple[str, ...] = (),
    wait: bool = False,
    doubts: Doubts = lambda run: (),
) -> Run:
    """Measures the cells that a run lacks. Raises InputError if the run has other options than
    `given`, another machine or several ranks, and DeviceBusy if another run uses a device."""
    journal, state = Journal.reopen(folder / JOURNAL_FILE, state_of)
    with closing(journal):
        opened = state.opened
        if opened.machine.ranks:
            raise InputError(of_ranks(folder))
        if not opened.plan:
            raise InputError(f"{folder} ended before it had a plan: start a new run")
        check_same_options(opened.options, given)
        if "--machine" in given:
            _check_same_description(given["--machine"], opened.settings.simulation)
        if state.is_complete:
            observer.say(f"{folder} is complete: nothing left to measure")
            return state.run()
        then = opened.machine
        with (
            closing(workers_of(opened.settings)) as worker,
            hold(devices_measured(then, opened.plan), wait=wait, tell=observer.say),
        ):
            found = worker.survey((*then.devices, *then.unavailable))
            check_same_machine(then, found)
            worker.keep_output(folder)
            if opened.settings.profiler is not None:
                worker.profile(opened.settings.profiler, folder)
            resumed = Resumed(now(), command)
            journal.append(resumed)
            state.add(resumed)
            with suppress(OSError):  # it holds the run up to here: from now on the journal does
                (folder / RUN_FILE).unlink()
            since = seconds_between(opened.started, resumed.started)
            with collecting_seldom(), following(then, since) as log:
                observer.begun(then)
                return go_on_with(state, worker, journal.append, observer, doubts, log)


def of_ranks(folder: Path) -> str:
    shown = f"`linkgauge show {quote(str(folder))}` shows what it measured"
    return f"--resume works with one process only: start a new run of all ranks; {shown}"


def _check_same_description(machine: str, simulation: Simulation | None) -> None:
    from linkgauge.backends.sim.description import load

    if simulation is None or load(machine)[1] != simulation.description:
        raise InputError(
            f"--machine {machine} disagrees with the run's own: its description has changed: "
            "leave it out, or start a new run"
        )


def fingerprint(machine: Machine) -> dict[str, str]:
    """Returns the properties that figures depend on, by name, without readings like free memory."""
    host = machine.host
    prints = {
        "host name": host.hostname,
        "architecture": host.architecture,
        "CPU": host.cpu_model or "",
        "NUMA nodes": ", ".join(str(node.index) for node in host.nodes),
    }
    for device in machine.all_devices:
        prints[device.memory] = device.model
        prints[f"driver of {device.memory}"] = device.driver
        prints[f"PCI address of {device.memory}"] = device.pci or ""
        prints[f"UUID of {device.memory}"] = device.uuid or ""
    return prints


def check_same_machine(then: Machine, now: Machine) -> None:
    """Raises InputError with the first property in which this machine differs from the run's."""
    was, present = fingerprint(then), fingerprint(now)
    for name in dict.fromkeys((*was, *present)):
        before, after = (prints.get(name) or "absent" for prints in (was, present))
        if before != after:
            raise InputError(
                f"this is not the machine that the run started on: {name} was {before}, "
                f"is now {after}: start a new run"
            )


def check_same_options(then: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raises InputError for the first given option that differs from the run's."""
    for name, value in given.items():
        if then.get(name) != value:
            own = f"{name} {then[name]}".strip() if name in then else f"no {name}"
            raise InputError(
                f"{f'{name} {value}'.strip()} disagrees with the run's own ({own}): "
                "leave it out, or start a new run"
            )
