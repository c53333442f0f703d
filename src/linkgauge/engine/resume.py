"""Resumes an interrupted run, on the machine it began on and with the same options."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path

from linkgauge.machine.kernel_log import following
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Machine
from linkgauge.model.result import Run
from linkgauge.model.settings import Simulation

from .books import book_of
from .controller import Doubts, Observer, go_on_with, now
from .garbage import collect_seldom
from .journal import JOURNAL_FILE, Journal, Resumed
from .locks import devices_measured, hold
from .supervisor import Supervisor


def go_on(
    folder: Path,
    given: Mapping[str, str],
    observer: Observer,
    *,
    command: tuple[str, ...] = (),
    wait: bool = False,
    doubts: Doubts = lambda run: (),
) -> Run:
    """Measures what is left of the run in this folder, as it began: the options `given` must be the
    run's own. Raises InputError if they or the machine differ, Busy if another run measures a
    device."""
    journal, book = Journal.reopen(folder / JOURNAL_FILE, book_of)
    with closing(journal):
        opened = book.opened
        if opened.machine.ranks:
            raise InputError(f"{folder} has several ranks and cannot be resumed: start a new run")
        check_same_options(opened.options, given)
        if "--machine" in given:
            _check_same_description(given["--machine"], opened.settings.simulation)
        if book.is_complete:
            observer.say(f"{folder} is complete: nothing left to measure")
            return book.run()
        then = opened.machine
        with (
            closing(Supervisor(opened.settings)) as worker,
            hold(devices_measured(then, opened.plan), wait=wait, tell=observer.say),
        ):
            check_same_machine(then, worker.survey((*then.devices, *then.unavailable)))
            if opened.settings.profiler is not None:
                worker.profile(opened.settings.profiler, folder)
            resumed = Resumed(now(), command)
            journal.append(resumed)
            book.add(resumed)
            collect_seldom()
            since = _seconds(opened.started, resumed.started)
            with following(then, since) as log:
                observer.begun(then)
                return go_on_with(book, worker, journal.append, observer, doubts, log)


def _seconds(began: str, now: str) -> float:
    """From one time of day to the other; 0 if the clock was set back, or if a file has no time."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(began)
    except (TypeError, ValueError):
        return 0.0
    return max(passed.total_seconds(), 0.0)


def _check_same_description(machine: str, simulation: Simulation | None) -> None:
    """The run continues with the description that it began with: the file may have changed
    since."""
    from linkgauge.backends.sim.description import load

    if simulation is None or load(machine)[1] != simulation.description:
        raise InputError(
            f"--machine {machine} disagrees with the run's own: its description has changed: "
            "leave it out, or start a new run"
        )


def fingerprint(machine: Machine) -> dict[str, str]:
    """The properties that figures depend on and that stay unless somebody changes the machine, by
    name: never a reading such as free memory."""
    host = machine.host
    prints = {
        "host name": host.hostname,
        "architecture": host.architecture,
        "CPU": host.cpu_model or "",
        "NUMA nodes": ", ".join(str(node.index) for node in host.nodes),
    }
    for devices in machine.devices.values():
        for device in devices:
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
