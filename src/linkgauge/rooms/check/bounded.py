"""Plans and measures a brief run: each link of a machine, its memory, and a collective."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from linkgauge.engine.controller import Observer
from linkgauge.engine.kept.journal import JOURNAL_FILE, Opened, assemble, read_records
from linkgauge.engine.plan import Plan, able, make_plan, most_seconds
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.rounds import draw
from linkgauge.engine.session import Session, opened
from linkgauge.machine.processes.channel import Channel, carry_out, decoder, encode
from linkgauge.machine.processes.process import Process, ProcessLost
from linkgauge.model.by_name import by_name
from linkgauge.model.cell_id import cell_id, spoken
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable, Run
from linkgauge.model.errors import DeviceBusy, LinkgaugeError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.printable import BriefRepr
from linkgauge.model.settings import EngineSettings, Settings, Simulation
from linkgauge.model.transfer import Benchmark, PairSample

LINKS = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
HOST = ("host_to_host_memcpy_read_cpu",)
COLLECTIVE = ("all_reduce",)
PAIRS = ("device_to_device_memcpy_write_ce",)
PROFILE = "quick"
SHARE = 0.6
"""The rest is for the start of workers, and for doubtful cells, which are measured once more."""


def brief_settings(seconds: float, simulation: Simulation | None) -> Settings:
    """Returns settings for a run of about `seconds`, without tuning, which would take too long."""
    profile = PROFILES[PROFILE]
    return replace(
        profile,
        max_time=min(max(seconds / 200, 0.05), profile.max_time),
        timeout=min(max(seconds / 4, 2.0), 15.0),
        engines=EngineSettings(tunes=False),
        simulation=simulation,
    )


def brief_plan(session: Session, seconds: float) -> Plan:
    """Returns what to measure in `seconds`. Draws other pairs of devices each minute, so that
    repeated checks cover all pairs. Raises InputError for an absent backend or device."""
    request, settings = session.request, session.request.settings
    planned = partial(make_plan, machine=session.machine, sizes=settings.sizes, profile=PROFILE)
    with_host = not request.backends or "host" in request.backends
    by_link = replace(request, profile=PROFILE)
    always = _laid_out(session, by_link, (*LINKS, *(HOST if with_host else ())))
    always += _laid_out(session, replace(request, profile=None), COLLECTIVE)
    pairs = _laid_out(session, by_link, PAIRS)
    if any(one.cells for one in pairs):
        whole = planned(pairs)
        each = (most_seconds(whole, settings) or 0.0) / max(1, sum(1 for _ in able(whole)))
        left = SHARE * seconds - (most_seconds(planned(always), settings) or 0.0)
        count = max(1, int(left / each)) if each else sum(len(table.cells) for table in whole)
        seed = 1 if settings.simulation is not None else int(time.time() // 60) % (1 << 32)
        always += draw(pairs, PairSample(count, seed))
    return planned(always)


def _laid_out(
    session: Session, request: RunRequest, names: tuple[str, ...]
) -> tuple[Benchmark, ...]:
    if set(names).isdisjoint(HOST) and not request.over(session.machine):
        return ()
    return Selection(names).lay_out(request, session.machine)


# Measuring that ends in time, whatever hangs.


OUTPUT_FILE = "output.txt"
_LEAST = 0.5
"""Seconds within which a killed group of processes must disappear."""


class Task(msgspec.Struct, frozen=True):
    """A measurement that ends at `deadline`, a time of the monotonic clock that processes share."""

    settings: Settings
    label: str
    out: str | None
    backends: tuple[str, ...]
    profile: str | None
    command: tuple[str, ...]
    options: dict[str, str]
    deadline: float

    @property
    def request(self) -> RunRequest:
        return by_name(RunRequest, self)


class CheckStep(msgspec.Struct, frozen=True, tag=True):
    """A step of a check. `what` is the name of a cell, or a text such as `opening the devices`."""

    what: str
    is_cell: bool = False


class Kept(msgspec.Struct, frozen=True, tag=True):
    folder: str


class Failed(msgspec.Struct, frozen=True):
    error: str
    is_busy: bool = False


class Bounded(BriefRepr, msgspec.Struct, frozen=True):
    """The result of a brief run. `missing` are planned cells without a result. `doing` is the step
    that was cut off, and the seconds that it had taken; None if no step was cut off."""

    seconds: float
    run: Run | None = None
    missing: tuple[str, ...] = ()
    doing: tuple[CheckStep, float] | None = None
    error: Failed | None = None


class _Leader(Process):
    """A child process that leads a process group, so that killing it kills its children, too."""

    words = CheckStep | Kept

    def _end(self, grace: float = _LEAST) -> int:
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        self._channel.close(0.0)
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_LEAST)
        return 0


def measure_within(
    task: Task, folder: Path, step: Callable[[str], object] = lambda _: None
) -> Bounded:
    """Runs a task in a process, which is killed at the deadline and writes its output to `folder`.
    Calls `step` with the name of each step."""
    began = time.monotonic()
    doing, since = CheckStep("starting"), began
    kept: Path | None = None
    error, ended = None, True

    def hear(word: CheckStep | Kept) -> None:
        nonlocal doing, since, kept
        if isinstance(word, Kept):
            kept = Path(word.folder)
        else:
            doing, since = word, time.monotonic()
            step(word.what)

    with (folder / OUTPUT_FILE).open("wb") as output:
        process = _Leader(__name__, output=output.fileno(), session=True)
    with closing(process):
        process.ask(task)
        try:
            process.answer(type(None), lambda: task.deadline - time.monotonic(), hear)
        except ProcessLost as lost:
            ended = lost.kind != "timeout"
        except LinkgaugeError as problem:
            error = Failed(str(problem), isinstance(problem, DeviceBusy))
    now = time.monotonic()
    run, missing = (None, ()) if kept is None else _measured(kept)
    if ended and run is None and error is None:
        error = Failed(_last_line(folder / OUTPUT_FILE) or f"it ended while {doing.what}")
    at = None if ended else (doing, now - since)
    return Bounded(now - began, run, missing, at, error)


def _measured(folder: Path) -> tuple[Run, tuple[str, ...]]:
    records = read_records((folder / JOURNAL_FILE).read_bytes())
    run, first = assemble(records), records[0]
    assert isinstance(first, Opened)  # noqa: S101
    there = {cell_id(one, cell) for one in run.results for cell in one.cells}
    missing = (
        spoken(table, cell)
        for table in first.plan
        for cell in table.cells
        if cell_id(table, cell) not in there
    )
    return run, tuple(missing)


def _last_line(path: Path) -> str:
    lines = path.read_text("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


class _Telling(Observer):
    def __init__(self, channel: Channel) -> None:
        self.session: Session | None = None
        self._channel = channel

    def tell(self, word: CheckStep | Kept) -> None:
        self._channel.send(encode(word))

    def begun(self, _machine: Machine) -> None:
        if self.session is not None:
            self.tell(Kept(str(self.session.folder)))

    def started(self, table: PlannedTable, cell: PlannedCell) -> None:
        self.tell(CheckStep(spoken(table, cell), is_cell=True))

    def finished(self, _cell: CellResult) -> None:
        self.tell(CheckStep("measuring"))


def serve(channel: Channel) -> None:
    """Measures the task that it receives. Cells that would be judged low are measured again."""
    from linkgauge.judge.outcome import doubtful

    telling = _Telling(channel)

    def measure(task: Task) -> None:
        telling.tell(CheckStep("opening the devices"))
        with opened(task.request) as session:
            telling.tell(CheckStep("planning"))
            plan = brief_plan(session, task.deadline - time.monotonic())
            telling.session = session
            session.measure(plan, telling, doubtful)

    carry_out(decoder(Task)(channel.receive()), measure, channel.send)
