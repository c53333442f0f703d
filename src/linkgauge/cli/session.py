"""What `run` and `copy` have in common: settings from options, and a run carried out and kept."""

from __future__ import annotations

import math
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from rich.console import Console

from linkgauge.backends import ACCELERATORS
from linkgauge.backends.base import Tried
from linkgauge.benchmarks.table import Fabric
from linkgauge.engine.controller import Observer, execute, now
from linkgauge.engine.folder import accelerator_name, create_run_folder
from linkgauge.engine.journal import Journal, Opened
from linkgauge.engine.plan import Plan
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.worker import Worker
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.machine import Machine
from linkgauge.model.result import EngineSettings, Result, Run, Settings, exit_code
from linkgauge.model.units import parse_fraction, parse_sizes
from linkgauge.report.files import JOURNAL_FILE, json_document, samples_csv, write_run
from linkgauge.report.matrix import shown
from linkgauge.report.progress import LiveReport, progress_bar
from linkgauge.report.terminal import make_console, render, render_summary, render_warnings

from .options import at_least_one

Document = Literal["json", "csv"] | None


def make_settings(
    profile: str,
    size: str | None,
    samples: int | None,
    loops: int | None,
    precision: str | None,
    max_time: float | None,
    no_verify: bool,
    engines: EngineSettings,
) -> Settings:
    """The profile's settings with what was asked otherwise. Raises InputError."""
    if profile not in PROFILES:
        raise InputError(f"unknown profile {profile!r}: there are {', '.join(PROFILES)}")
    if max_time is not None and not (math.isfinite(max_time) and max_time > 0):
        raise InputError(f"--max-time {max_time} must be a positive number of seconds")
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
    )


MOST_STREAMS = 32
"""More than a GPU has hardware queues, and few enough to wait behind one gate."""


def make_engines(
    kernel: str | None,
    blocks: int | None,
    threads: int | None,
    streams: int | None,
    untuned: bool,
    no_affinity: bool = False,
    numa_node: int | None = None,
) -> EngineSettings:
    """Raises InputError for what no engine can do."""
    if kernel not in (None, "plain", "bulk"):
        raise InputError(f"unknown kernel {kernel!r}: there are plain, bulk")
    if threads is not None and (threads % 64 or not 64 <= threads <= 1024):
        raise InputError(f"--threads {threads}: give a multiple of 64, at most 1024")
    if streams is not None and streams > MOST_STREAMS:
        raise InputError(f"--streams {streams} is too many: give at most {MOST_STREAMS}")
    return EngineSettings(
        kernel="bulk" if kernel == "bulk" else "plain" if kernel else None,
        blocks=at_least_one("--blocks", blocks),
        threads=threads,
        streams=at_least_one("--streams", streams),
        tuned=not untuned,
        affinity=not no_affinity,
        numa_node=numa_node,
    )


def carry_out(
    worker: Worker,
    machine: Machine,
    plan: Plan,
    settings: Settings,
    *,
    label: str,
    out: Path | None,
    document: Document,
) -> int:
    """Measures the plan, shows each result once it is whole and keeps the run under `out`.

    With a `document`, that goes to stdout and nothing else does. Returns the exit code.
    """
    label = valid(label)
    started = now()
    folder = None
    if out is not None:
        folder = create_run_folder(out, accelerator_name(machine, plan), label, started)
    opened = Opened(
        id=folder.name if folder else started,
        label=label,
        command=("linkgauge", *map(valid, sys.argv[1:])),
        started=started,
        machine=machine,
        settings=settings,
        plan=plan,
    )
    console, errors = make_console(), make_console(stderr=True)
    with progress_bar(errors) as progress:
        # Where the bar stands on the same terminal, figures go above it.
        figures = progress.console if console.is_terminal and errors.is_terminal else console

        def show(result: Result) -> None:
            if document is None:
                figures.print(render(result))

        cells = sum(len(sheet.cells) for sheet in plan)
        run = _measure(opened, worker, folder, LiveReport(progress, cells, show))
    with _undisturbed():
        _conclude(errors if document else console, run, folder, document)
    return exit_code(run)


def _measure(opened: Opened, worker: Worker, folder: Path | None, observer: Observer) -> Run:
    if folder is None:
        return execute(opened, worker, lambda record: None, observer)
    journal = Journal(folder / JOURNAL_FILE)
    try:
        return execute(opened, worker, journal.append, observer)
    finally:
        journal.close()


def _conclude(console: Console, run: Run, folder: Path | None, document: Document) -> None:
    """Keeps the run first, then tells of it. Where it cannot be kept, it is told all the same."""
    problem = None
    try:
        kept = None if folder is None else write_run(folder, run)
    except ResultsError as error:
        problem = error
    for note in render_warnings(run.results):
        console.print(note)
    console.print(render_summary(run))
    if document is not None:
        write_document(run, document)
    if problem is not None:
        raise problem
    if kept is not None:
        console.print(f"results: {kept}")


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Another Ctrl-C does not cost what was measured."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


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


def choose_backends(asked: Sequence[str] | None) -> tuple[tuple[str, ...], bool]:
    """Accelerator backends to open, and whether the host's benchmarks are wanted."""
    for name in asked or ():
        if name != "host" and name not in ACCELERATORS:
            known = ", ".join(("host", *ACCELERATORS))
            raise InputError(f"unknown backend {name!r}: there are {known}")
    if not asked:
        return ACCELERATORS, True
    return tuple(name for name in ACCELERATORS if name in asked), "host" in asked


def tune_devices(worker: Worker, over: Sequence[Fabric]) -> None:
    """Searches the best settings of one device of each model; a second device serves as peer.

    Raises InputError where no device's backend has anything to search.
    """
    console = make_console(stderr=True)
    tuned = False

    def tell(tried: Tried) -> None:
        rate = shown(tried.rate, "B/s")
        console.print(f"  {tried.path:<16}{rate:>10} GB/s  {tried.settings}")

    for fabric in over:
        for device in {device.model: device for device in reversed(fabric.devices)}.values():
            peers = [other.memory for other in fabric.devices if other != device]
            if worker.tune(device.memory, next(iter(peers), None), tell):
                console.print(f"remembered for {device.model}, by {device.memory}")
                tuned = True
    if not tuned:
        raise InputError("nothing to tune: only backend cuda searches settings")
