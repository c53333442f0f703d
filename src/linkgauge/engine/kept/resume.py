"""Resumes a run that was interrupted or lost a rank. The machine, the ranks and the options must be
the same as before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing, suppress
from datetime import datetime
from pathlib import Path

from linkgauge.engine.controller import Doubts, Observer, go_on_with, now
from linkgauge.engine.locks import devices_measured, hold
from linkgauge.engine.measuring.garbage import collecting_seldom
from linkgauge.engine.plan import Plan, able
from linkgauge.engine.workers.messages import Workers
from linkgauge.engine.workers.supervisor import workers_of
from linkgauge.machine.kernel_log import following
from linkgauge.model.documents.result import Run
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.notation import parse_memory
from linkgauge.model.ranks import nic_ends, nic_problem
from linkgauge.model.settings import Simulation
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import count_of

from .journal import JOURNAL_FILE, RUN_FILE, Journal, Opened, Resumed
from .run_state import PreciseRun, RunState, state_of

Opening = Callable[[Opened], AbstractContextManager[Workers]]
"""A function that opens the workers that measure a run."""


def alone(opened: Opened) -> AbstractContextManager[Workers]:
    """Opens the workers of a run on this machine alone."""
    return closing(workers_of(opened.settings))


def go_on(
    folder: Path,
    given: Mapping[str, str],
    observer: Observer,
    *,
    workers: Opening = alone,
    size: int = 1,
    command: tuple[str, ...] = (),
    wait: bool = False,
    doubts: Doubts = lambda run: (),
) -> Run:
    """Measures the cells that the run in this folder still lacks. The options `given` must equal
    the run's options. `size` is the number of processes that take part. Raises InputError if the
    processes, the options or the machine differ. Raises DeviceBusy if another run measures a
    device."""
    journal, state = Journal.reopen(folder / JOURNAL_FILE, state_of)
    with closing(journal):
        opened = state.opened
        _check_ranks(folder, opened, size)
        check_same_options(opened.options, given)
        if "--machine" in given:
            _check_same_description(given["--machine"], opened.settings.simulation)
        if state.is_complete:
            observer.say(f"{folder} is complete: nothing left to measure")
            return state.run()
        then = opened.machine
        with (
            workers(opened) as worker,
            hold(devices_measured(then, opened.plan), wait=wait, tell=observer.say),
        ):
            found = worker.survey((*then.devices, *then.unavailable))
            check_same_machine(then, found, opened.plan)
            worker.keep_output(folder)
            if opened.settings.profiler is not None:
                worker.profile(opened.settings.profiler, folder)
            _say_what_is_lost(state, observer)
            resumed = Resumed(now(), command)
            journal.append(resumed)
            state.add(resumed)
            with suppress(OSError):  # it holds the run up to here: from now on the journal does
                (folder / RUN_FILE).unlink()
            since = seconds_between(opened.started, resumed.started)
            with collecting_seldom(), following(then, since) as log:
                observer.begun(then)
                return go_on_with(state, worker, journal.append, observer, doubts, log)


def _say_what_is_lost(state: RunState, observer: Observer) -> None:
    lost = state.visits.lost() if isinstance(state, PreciseRun) else {}
    if lost:
        ranks = sorted(set(lost.values()))
        named = f"rank{'s' * (len(ranks) > 1)} {', '.join(map(str, ranks))}"
        observer.say(f"measuring {count_of(len(lost))} again that the loss of {named} had cost")


def _check_ranks(folder: Path, opened: Opened, size: int) -> None:
    """Raises InputError unless this number of processes measured the run."""
    if not opened.plan:
        raise InputError(f"{folder} ended before it had a plan: start a new run")
    before = len(opened.machine.ranks) or 1
    if before == size:
        return
    if size == 1:
        each = "start each as before, with `run --resume` and this folder"
        raise InputError(f"{folder} is a run of {before} ranks: {each}")
    how = f"start {before} ranks" if before > 1 else "resume it without a launcher"
    by = f"{before} ranks" if before > 1 else "one process"
    raise InputError(f"{folder} is a run of {by}, and {size} ranks were started: {how}")


def seconds_between(began: str, now: str) -> float:
    """Returns the seconds from one ISO 8601 time to another. Returns 0 if the clock was set back or
    a time is unreadable."""
    try:
        passed = datetime.fromisoformat(now) - datetime.fromisoformat(began)
    except (TypeError, ValueError):
        return 0.0
    return max(passed.total_seconds(), 0.0)


def _check_same_description(machine: str, simulation: Simulation | None) -> None:
    """Raises InputError if the description of the simulated machine has changed since the run
    began."""
    from linkgauge.backends.sim.description import load

    if simulation is None or load(machine)[1] != simulation.description:
        raise InputError(
            f"--machine {machine} disagrees with the run's own: its description has changed: "
            "leave it out, or start a new run"
        )


def fingerprint(machine: Machine, plan: Plan = ()) -> dict[str, str]:
    """Returns the properties of a machine that figures depend on, by name. Readings that change by
    themselves, such as free memory, are left out. So are addresses and network interfaces that the
    plan does not use."""
    host = machine.host
    prints = {
        "host name": host.hostname,
        "architecture": host.architecture,
        "CPU": host.cpu_model or "",
        "NUMA nodes": ", ".join(str(node.index) for node in host.nodes),
    }
    for rank in machine.ranks:
        prints[f"host of rank {rank.number}"] = rank.host
        prints[f"memory of rank {rank.number}"] = rank.memory or ""
    for device in machine.all_devices:
        number = parse_memory(device.memory).rank
        named = device.memory if number is None else f"{device.memory} of rank {number}"
        prints[named] = device.model
        prints[f"driver of {named}"] = device.driver
        prints[f"PCI address of {named}"] = device.pci or ""
        prints[f"UUID of {named}"] = device.uuid or ""
    nics = {rank.number: rank.nics for rank in machine.ranks}
    for number, at in sorted({end for transfer in _over_nics(plan) for end in nic_ends(transfer)}):
        for nic in nics.get(number, ())[at : at + 1]:
            facts = nic.name, nic.kind, nic.driver, nic.pci, nic.rdma
            prints[f"nic:{at} of rank {number}"] = ", ".join(filter(None, facts))
    return prints


def _over_nics(plan: Plan) -> set[Transfer]:
    transfers = (transfer for _, cell in able(plan) for transfer in cell.transfers)
    return {transfer for transfer in transfers if transfer.engine.owner.is_nic}


def check_same_machine(then: Machine, now: Machine, plan: Plan = ()) -> None:
    """Raises InputError if this machine differs from the run's machine. The message names the first
    property that differs, or what an interface of the plan can no longer do."""
    was, present = fingerprint(then, plan), fingerprint(now, plan)
    anew = "start each rank where it was, or a new run" if then.ranks else "start a new run"
    for name in dict.fromkeys((*was, *present)):
        before, after = (prints.get(name) or "absent" for prints in (was, present))
        if before != after:
            raise InputError(
                f"this is not the machine that the run started on: {name} was {before}, "
                f"is now {after}: {anew}"
            )
    ranks, present_ranks = ({rank.number: rank for rank in one.ranks} for one in (then, now))
    for transfer in sorted(_over_nics(plan), key=str):
        problem = nic_problem(transfer, present_ranks)
        if problem is not None and nic_problem(transfer, ranks) is None:
            raise InputError(problem)


def check_same_options(then: Mapping[str, str], given: Mapping[str, str]) -> None:
    """Raises InputError for the first given option that differs from the run's option."""
    for name, value in given.items():
        if then.get(name) != value:
            own = f"{name} {then[name]}".strip() if name in then else f"no {name}"
            raise InputError(
                f"{f'{name} {value}'.strip()} disagrees with the run's own ({own}): "
                "leave it out, or start a new run"
            )
