"""What `run` and `copy` have in common: settings from options, and a run carried out and kept."""

from __future__ import annotations

import gc
import math
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import Literal

import msgspec
from rich.console import Console

from linkgauge.backends import ACCELERATORS, SHAPED, SIMULATED
from linkgauge.backends.base import Tried
from linkgauge.benchmarks.table import Fabric
from linkgauge.engine.controller import Sink, execute, now
from linkgauge.engine.folder import accelerator_name, create_run_folder
from linkgauge.engine.interrupts import undisturbed
from linkgauge.engine.journal import Journal, Opened, Record, opening
from linkgauge.engine.plan import Plan
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.runs import JOURNAL_FILE, read_run
from linkgauge.engine.worker import Worker
from linkgauge.judge.doctor import concerns
from linkgauge.judge.dram import measured_ceilings
from linkgauge.judge.expect import Expectations
from linkgauge.judge.limits import Limit, apply, unused
from linkgauge.judge.thresholds import Objection, hold, hold_run
from linkgauge.judge.verdict import judge, judge_result
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.machine import Machine
from linkgauge.model.result import (
    Blocks,
    EngineSettings,
    Result,
    Run,
    Settings,
    Simulation,
    Streams,
    Threads,
    exit_code,
)
from linkgauge.model.units import parse_fraction, parse_sizes
from linkgauge.report.doctor import print_findings
from linkgauge.report.files import json_document, samples_csv, write_run
from linkgauge.report.matrix import shown
from linkgauge.report.notes import note_lines
from linkgauge.report.progress import LiveReport, progress_bar
from linkgauge.report.terminal import make_console, render, render_summary
from linkgauge.report.utilisation import render_utilisation

from .options import at_least_one, within

Document = Literal["json", "csv"] | None


class Display(msgspec.Struct, frozen=True):
    """How a run is shown: as a document on stdout, or to a person, with how much of the hardware
    each cell used (`utilization`). Cells below one of the `limits` fail, and those to which there
    is an `objection`."""

    document: Document = None
    utilization: bool = False
    limits: tuple[Limit, ...] = ()
    objection: Objection | None = None


def make_settings(
    profile: str,
    size: str | None,
    samples: int | None,
    loops: int | None,
    precision: str | None,
    max_time: float | None,
    no_verify: bool,
    engines: EngineSettings,
    timeout: float | None = None,
    simulation: Simulation | None = None,
) -> Settings:
    """The profile's settings with what was asked otherwise. Raises InputError."""
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}: there are {', '.join(PROFILES)}")
    for name, seconds in (("--max-time", max_time), ("--timeout", timeout)):
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            raise InputError(f"{name} {seconds} must be a positive number of seconds")
    if simulation is not None and engines.host_kernel is not None:
        raise InputError("--host-kernel is of real threads: a simulated machine has none")
    base = PROFILES[profile]
    return Settings(
        sizes=base.sizes if size is None else parse_sizes(size),
        profile=profile,
        precision=base.precision if precision is None else parse_fraction(precision),
        max_time=base.max_time if max_time is None else max_time,
        samples=at_least_one("--samples", samples),
        loops=at_least_one("--loops", loops),
        verify=not no_verify,
        engines=engines,
        timeout=timeout,
        simulation=simulation,
    )


def make_simulation(machine: str | None, faults: Sequence[str] | None) -> Simulation | None:
    """What is measured instead of this machine, if anything. Raises InputError for a description
    or a fault that is wrong."""
    if machine is None:
        if faults:
            raise InputError("--fault strikes simulated machines only: give --machine, too")
        return None
    from linkgauge.backends.sim import simulate
    from linkgauge.backends.sim.description import load

    simulation = Simulation(*load(machine), tuple(faults or ()))
    simulate(simulation, EngineSettings()).close()
    return simulation


def make_engines(
    kernel: str | None,
    blocks: int | None,
    threads: int | None,
    streams: int | None,
    untuned: bool,
    no_affinity: bool = False,
    numa_node: int | None = None,
    host_kernel: str | None = None,
) -> EngineSettings:
    """Raises InputError for what no engine can do."""
    if host_kernel is not None:
        from linkgauge.backends.host_kernels import check_kernel

        check_kernel(host_kernel)
    if kernel not in (None, "plain", "bulk"):
        raise InputError(f"unknown kernel {kernel!r}: there are plain, bulk")
    return EngineSettings(
        kernel="bulk" if kernel == "bulk" else "plain" if kernel else None,
        blocks=within("--blocks", blocks, Blocks),
        threads=within("--threads", threads, Threads),
        streams=within("--streams", streams, Streams),
        tuned=not untuned,
        affinity=not no_affinity,
        numa_node=numa_node,
        host_kernel=host_kernel,
        host_tuned=not untuned,
    )


def check_shape(engines: EngineSettings, plan: Plan) -> None:
    """A note where some of the backends that take part ignore options given for the shape of
    copies. Raises InputError where all do."""
    given = {
        "--kernel": engines.kernel,
        "--blocks": engines.blocks,
        "--threads": engines.threads,
        "--streams": engines.streams,
    }
    names = ", ".join(name for name, value in given.items() if value is not None)
    if not names:
        return
    cells = (cell for sheet in plan for cell in sheet.cells if cell.reason is None)
    taking = {transfer.engine.owner.backend for cell in cells for transfer in cell.transfers}
    deaf = ", ".join(sorted(taking - set(SHAPED)))
    if not deaf:
        return
    if taking.isdisjoint(SHAPED):
        raise InputError(f"{names}: only backend {', '.join(SHAPED)} knows this, not {deaf}")
    make_console(stderr=True).print(f"note: {deaf} ignores {names}")


def carry_out(
    worker: Worker,
    machine: Machine,
    plan: Plan,
    settings: Settings,
    *,
    label: str,
    out: Path | None,
    display: Display,
    options: dict[str, str],
) -> int:
    """Measures the plan, shows each result once it is whole and keeps the run under `out`.

    Returns the exit code.
    """
    label = valid(label)
    started = now()
    folder = None
    if out is not None:
        folder = create_run_folder(out, accelerator_name(machine, plan), label, started)
    opened = Opened(
        id=folder.name if folder else started,
        label=label,
        simulated=machine.simulated is not None,
        command=command_line(),
        started=started,
        machine=machine,
        settings=settings,
        plan=plan,
        options=options,
    )
    if folder is None:
        return measure_left((opened,), worker, lambda record: None, folder, display)
    journal = folder / JOURNAL_FILE
    try:
        with closing(Journal.begin(journal, opened)) as kept:
            return measure_left((opened,), worker, kept.append, folder, display)
    except KeyboardInterrupt:  # while nothing was being measured: what the journal has, is kept
        if not journal.exists():
            raise
        return _end(read_run(journal), folder, display)


def measure_left(
    records: Sequence[Record],
    worker: Worker,
    sink: Sink,
    folder: Path | None,
    display: Display,
) -> int:
    """Measures what of the plan these records do not tell of yet, and shows the run."""
    gc.freeze()  # what is loaded by now stays: the collector need not look through it again
    gc.set_threshold(50_000)  # results are kept, and not worth looking through as often as usual
    console, errors = make_console(), make_console(stderr=True)
    with progress_bar(errors) as progress:
        # Where the bar stands on the same terminal, figures go above it.
        figures = progress.console if console.is_terminal and errors.is_terminal else console

        judged: list[Result] = []
        machine = opening(records).machine
        expectations = Expectations(machine, measured_ceilings((), machine))

        def show(result: Result) -> None:
            known = hold(judge_result(result, expectations), display.objection)
            judged.append(known)
            if display.document is None:
                show_result(figures, known, display)

        try:
            run = execute(records, worker, sink, LiveReport(progress, show))
        except ResultsError as error:
            if folder is None:
                raise
            raise ResultsError(f"{error}: {how_to_go_on(folder)}") from error
    # Results come whole in the plan's order: those that are not are the last ones.
    for result in run.results[len(judged) :]:
        show(result)
    return _end(msgspec.structs.replace(run, results=tuple(judged)), folder, display)


def show_result(console: Console, result: Result, display: Display) -> None:
    """A result for a person."""
    console.print(render(result))
    shares = render_utilisation(result) if display.utilization else None
    if shares is not None:
        console.print(shares)


def _end(run: Run, folder: Path | None, display: Display) -> int:
    """Judges the run, keeps it and tells of it. Returns the exit code."""
    with undisturbed():
        run = apply(hold_run(judge(run), display.objection), display.limits)
        _conclude(make_console(stderr=display.document is not None), run, folder, display)
    return exit_code(run)


def show_whole(run: Run, folder: Path, display: Display) -> int:
    """Shows a run that has nothing left to measure, and sees to its files."""
    run = judge(run)
    if display.document is None:
        for result in run.results:
            show_result(make_console(), result, display)
    return _end(run, folder, display)


def how_to_go_on(folder: Path) -> str:
    """What to type once a run has broken off."""
    return f"what was measured is kept; to go on: linkgauge run --resume {quote(str(folder))}"


def _conclude(console: Console, run: Run, folder: Path | None, display: Display) -> None:
    """Keeps the run first, then tells of it. Where it cannot be kept, it is told all the same."""
    problem = None
    try:
        kept = None if folder is None else write_run(folder, run)
    except ResultsError as error:
        problem = error
    tell_of(console, run, display)
    if display.document is not None:
        write_document(run, display.document)
    if problem is not None:
        raise problem
    if kept is not None:
        console.print(f"results: {kept}")
    if run.finished is None and folder is not None:
        console.print(how_to_go_on(folder))


def tell_of(console: Console, run: Run, display: Display) -> None:
    """What is to be known of a run beside its figures: notes, what is wrong with the machine where
    a figure is not what it should be, and how many benchmarks ended how."""
    for note in note_lines(run):
        console.print(note)
    for limit in unused(run, display.limits):
        console.print(f"note: no cell is of the limit at {limit.where}")
    findings = concerns(run)
    if findings:
        print_findings(console, findings)
    console.print(render_summary(run))


def command_line() -> tuple[str, ...]:
    """The command as it was typed, for the record."""
    return ("linkgauge", *map(valid, sys.argv[1:]))


def valid(text: str) -> str:
    """Text that can be stored: what the shell gave in another encoding is replaced."""
    return text.encode("utf-8", "replace").decode()


def choose_document(json: bool, csv: bool) -> Document:
    """What goes to stdout. Raises InputError where both are asked."""
    if json and csv:
        raise InputError("--json and --csv both want stdout: choose one")
    return "json" if json else "csv" if csv else None


def write_document(run: Run, document: Literal["json", "csv"]) -> None:
    sys.stdout.write(json_document(run) if document == "json" else samples_csv(run))


def choose_backends(
    asked: Sequence[str] | None, simulation: Simulation | None = None
) -> tuple[tuple[str, ...], bool]:
    """Accelerator backends to open, and whether the host's benchmarks are wanted."""
    there = ACCELERATORS if simulation is None else (SIMULATED,)
    for name in asked or ():
        if name != "host" and name not in there:
            known = ", ".join(("host", *there))
            if simulation is not None and name in ACCELERATORS:
                raise InputError(f"backend {name!r}: a simulated machine has {known}")
            raise InputError(f"unknown backend {name!r}: there are {known}")
    if not asked:
        return there, True
    return tuple(name for name in there if name in asked), "host" in asked


def tune_devices(worker: Worker, over: Sequence[Fabric]) -> None:
    """Searches the best settings of one device of each model; a second device serves as peer.

    Raises InputError where no device's backend has anything to search.
    """
    console = make_console(stderr=True)
    tuned = False

    def tell(tried: Tried) -> None:
        figure = "dropped" if tried.problem else f"{shown(tried.rate, 'B/s')} GB/s"
        why = f": {tried.problem}" if tried.problem else ""
        console.print(f"  {tried.path:<16}{figure:>15}  {tried.settings}{why}")

    for fabric in over:
        for device in {device.model: device for device in reversed(fabric.devices)}.values():
            peers = [other.memory for other in fabric.devices if other != device]
            if worker.tune(device.memory, next(iter(peers), None), tell):
                console.print(f"remembered for {device.model}, by {device.memory}")
                tuned = True
    if not tuned:
        raise InputError("nothing to tune: only backend cuda searches settings")
