"""Measuring that ends in time, whatever hangs.

A process of its own opens the machine and measures; it leads a process group that its workers
belong to. At the deadline the whole group is killed, and nobody waits for its end: a process that
hangs inside a driver cannot be ended before the driver returns. What was measured by then is in the
journal. The group shares no stream with this process: whoever reads our output sees its end.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from linkgauge.model.cell_id import cell_id, spoken
from linkgauge.model.errors import DeviceBusy, LinkgaugeError
from linkgauge.model.machine import Machine
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.result import CellResult, PlannedCell, PlannedSheet, Run

from .brief import brief_plan
from .child import die_with
from .controller import Doubts, Observer
from .journal import JOURNAL_FILE, Opened, assemble, read_records
from .request import RunRequest
from .session import Session, opened

ERRORS_FILE = "stderr.txt"
_LEAST = 0.5
"""What a killed group is given to be gone (seconds)."""


class Task(msgspec.Struct, frozen=True):
    """What the process is asked for; `deadline` by the monotonic clock, which all processes of a
    machine share."""

    request: RunRequest
    deadline: float


class Doing(msgspec.Struct, frozen=True, tag=True):
    """What it does from now on: a cell by name, or a step (`opening the devices`)."""

    what: str
    is_cell: bool = False


class Kept(msgspec.Struct, frozen=True, tag=True):
    """The folder of its journal."""

    folder: str


class Failed(msgspec.Struct, frozen=True, tag=True):
    """An error that nothing was measured for."""

    error: str
    is_busy: bool = False


Word = Doing | Kept | Failed


class Bounded(msgspec.Struct, frozen=True):
    """What came of it after `seconds`: the run as far as it was measured (null: not begun), what
    was planned and has no result (`missing`, by name), the `error` if there was one. `doing` is
    what it was at when it was ended, and for how long; null if it ended by itself."""

    seconds: float
    run: Run | None = None
    missing: tuple[str, ...] = ()
    doing: tuple[Doing, float] | None = None
    error: Failed | None = None


def measure_within(task: Task, folder: Path) -> Bounded:
    """Measures the task's brief plan until its deadline; `folder` takes what the process writes to
    stderr. `KeyboardInterrupt` ends it, too."""
    began = time.monotonic()
    with _process(folder) as process:
        assert process.stdin is not None and process.stdout is not None  # noqa: S101, PT018
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(msgspec.msgpack.encode(task, enc_hook=encode_hook))
        doing, since, kept, error = Doing("starting"), began, None, None
        ended = False
        for word, moment in _words(process.stdout.fileno(), task.deadline):
            match word:
                case Doing():
                    doing, since = word, moment
                case Kept():
                    kept = Path(word.folder)
                case Failed():
                    error = word
                case None:
                    ended = True
    now = time.monotonic()
    run, missing = (None, ()) if kept is None else _measured(kept)
    if ended and run is None and error is None:
        error = Failed(_last_line(folder / ERRORS_FILE) or f"it ended while {doing.what}")
    at = None if ended else (doing, now - since)
    return Bounded(now - began, run, missing, at, error)


@contextmanager
def _process(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The process, which leads its own group. Afterwards its group is killed; nobody waits."""
    with (folder / ERRORS_FILE).open("wb") as errors:
        process = subprocess.Popen(  # noqa: S603  # this Python, this code
            [sys.executable, "-P", "-c", _PROGRAM, str(os.getpid()), *sys.path],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, start_new_session=True,
        )  # fmt: skip
    try:
        yield process
    finally:
        assert process.stdout is not None  # noqa: S101
        process.stdout.close()
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_LEAST)


_PROGRAM = """
import sys
parent, *path = sys.argv[1:]
sys.path[:] = path
from linkgauge.judge.checking import main
main(int(parent))
"""


def _words(descriptor: int, deadline: float) -> Iterator[tuple[Word | None, float]]:
    """Each word with the moment it came; None at the end of the process. Ends at the deadline."""
    decoder = msgspec.json.Decoder(Word)
    poll, rest = select.poll(), b""
    poll.register(descriptor, select.POLLIN)
    while (left := deadline - time.monotonic()) > 0:
        if not poll.poll(left * 1000):
            continue
        data = os.read(descriptor, 1 << 16)
        now = time.monotonic()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            yield decoder.decode(line), now
        if not data:
            yield None, now
            return


def _measured(folder: Path) -> tuple[Run, tuple[str, ...]]:
    """The run in a journal, and the planned cells that it does not have."""
    records = read_records((folder / JOURNAL_FILE).read_bytes())
    run, first = assemble(records), records[0]
    assert isinstance(first, Opened)  # noqa: S101
    there = {cell_id(one, cell) for one in run.results for cell in one.cells}
    missing = (
        spoken(sheet, cell)
        for sheet in first.plan
        for cell in sheet.cells
        if cell_id(sheet, cell) not in there
    )
    return run, tuple(missing)


def _last_line(path: Path) -> str:
    lines = path.read_text("utf-8", "replace").split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


class _Telling(Observer):
    """Tells the process that waits what goes on."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self._stdout = os.dup(1)
        os.dup2(2, 1)  # what libraries print does not come between the words

    def tell(self, word: Word) -> None:
        os.write(self._stdout, msgspec.json.encode(word) + b"\n")

    def begun(self, _machine: Machine) -> None:
        if self.session is not None:
            self.tell(Kept(str(self.session.folder)))

    def started(self, sheet: PlannedSheet, cell: PlannedCell) -> None:
        self.tell(Doing(spoken(sheet, cell), is_cell=True))

    def finished(self, _cell: CellResult) -> None:
        self.tell(Doing("measuring"))


def serve(parent: int, doubts: Doubts) -> None:
    """The process: reads its task from stdin, and tells on stdout what it does."""
    die_with(parent)
    telling = _Telling()
    try:
        decoder = msgspec.msgpack.Decoder(Task, dec_hook=decode_hook())
        task = decoder.decode(sys.stdin.buffer.read())
        telling.tell(Doing("opening the devices"))
        with opened(task.request) as session:
            telling.tell(Doing("planning"))
            plan = brief_plan(session, task.deadline - time.monotonic())
            telling.session = session
            session.measure(plan, telling, doubts)
    except LinkgaugeError as error:
        telling.tell(Failed(str(error), isinstance(error, DeviceBusy)))
