"""The controller's handle of a worker process: starts it, asks it, waits for it, and ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TypeVar

import msgspec

from linkgauge.machine.tree import ROOT, Root, names_in, read_text
from linkgauge.model.errors import LinkgaugeError, OutcomeKind
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.settings import Settings, Surroundings, Tried

from .channel import Channel
from .interrupts import ENDING
from .messages import Broke, Command, Refused, Reply, Start, Trying
from .output import Output
from .standing import Standing

PATIENCE = 2.0
"""Seconds an idle worker has to exit by itself; a busy one is killed."""

_encode = msgspec.msgpack.Encoder(enc_hook=encode_hook).encode
_hook = decode_hook()
_decode = msgspec.msgpack.Decoder(Reply, dec_hook=_hook).decode
_A = TypeVar("_A")
# The module search path is passed on unchanged: the child runs the same code, wherever it lies.
_PROGRAM = """
import os
import sys
address, parent, cpus, *path = sys.argv[1:]
if cpus:
    os.sched_setaffinity(0, map(int, cpus.split(",")))
sys.path[:] = path
from linkgauge.engine.child import main
main(address, int(parent))
"""


LOOK = 0.1
"""Interval at which a silent worker's deadline is checked: most answers come sooner."""
STARVED = 60.0
"""The longest extension of a deadline for time in which a worker waited for a CPU (seconds)."""
LONGEST = 1e6
"""The longest wait that the system accepts is about a fortnight (seconds)."""


class WorkerLost(LinkgaugeError):
    """A worker ended, or was killed, before it answered."""

    def __init__(self, reason: str, kind: OutcomeKind = "exit") -> None:
        super().__init__(reason)
        self.kind = kind


class WorkerProcess:
    """A process that holds the host backend and at most one accelerator backend. It loads while it
    has no work, and learns from `begin` what to open. Its CPUs and environment are those of
    `surroundings` from its start, since libraries read them when they are loaded."""

    def __init__(
        self,
        surroundings: Surroundings = Surroundings(),  # noqa: B008
        output: Output | None = None,
    ) -> None:
        self.output = Output() if output is None else output
        self.standing = Standing()
        """The last state that it reported."""
        self._waited: dict[str, float] = {}
        """How long each of its threads had waited for a CPU when it was asked."""
        self._busy = True  # before its first command, ending it loses nothing
        self.process, self._channel = self._start(surroundings)

    def _start(self, surroundings: Surroundings) -> tuple[subprocess.Popen[bytes], Channel]:
        ours, theirs = socket.socketpair()
        # Blocked while it starts and afterwards: the controller handles signals that end the run.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            process = subprocess.Popen(  # noqa: S603  # this Python, this code
                program(str(theirs.fileno()), surroundings),
                pass_fds=(theirs.fileno(),),
                env=environment_with(surroundings.environment),
                stdin=subprocess.DEVNULL,
                stdout=self.output.descriptor,
                stderr=self.output.descriptor,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return process, Channel(ours)

    @property
    def _pid(self) -> int:
        """The process that measures."""
        return self.process.pid

    def begin(self, accelerator: str | None, settings: Settings) -> None:
        """Comes before anything else."""
        self._busy = False
        self.send(Start(accelerator, settings))

    def send(self, command: Command) -> None:
        """Sends a command without an answer. A worker that is gone is noticed at the next `ask`."""
        with suppress(OSError):
            self._channel.send(_encode(command))

    def ask(self, command: Command) -> None:
        self._busy = True
        self.standing = Standing()
        self._waited = waits_for_cpu(self._pid)
        self.send(command)

    def answer(
        self,
        kind: type[_A],
        left: Callable[[Standing], float] | None = None,
        heard: Callable[[Tried], None] = lambda tried: None,
    ) -> _A:
        """Waits for the answer to the last command, of this `kind`. `left` returns the seconds left
        for the worker's current work (None: no limit); `heard` receives each `Tried` that precedes
        the answer.

        Raises WorkerLost if the process ended, or ran out of time and was killed; LinkgaugeError if
        the worker could not do it, and continues.
        """
        while True:
            try:
                self._wait(left)
                reply: Reply = _decode(self._channel.receive())
            except (EOFError, OSError):
                raise self._how_it_ended() from None
            if isinstance(reply, Broke):
                self.kill()
                raise WorkerLost(f"the worker broke: {reply.reason}")
            if isinstance(reply, Standing):
                self.standing = reply
            elif isinstance(reply, Trying):
                heard(reply.tried)
            else:
                self._busy = False
                if isinstance(reply, Refused):
                    raise LinkgaugeError(reply.reason)
                return msgspec.msgpack.decode(reply.result, type=kind, dec_hook=_hook)

    def _wait(self, left: Callable[[Standing], float] | None) -> None:
        """Waits until there is something to read. The deadline moves as the worker reports its
        state, and by the time for which it waited for a CPU: who is kept from working does not
        hang."""
        if left is None or self._channel.poll(LOOK):
            return
        extension = -1.0
        while (starved := self._starved()) > extension + LOOK:
            extension = starved
            if self._channel.poll(min(max(0.0, left(self.standing) + extension), LONGEST)):
                return
        self.kill()
        raise WorkerLost("no answer", "timeout")

    def _starved(self) -> float:
        """Seconds for which a thread of it waited for a CPU since it was asked."""
        waits = waits_for_cpu(self._pid)
        since = (wait - self._waited.get(thread, 0.0) for thread, wait in waits.items())
        return min(max(since, default=0.0), STARVED)

    def _how_it_ended(self) -> WorkerLost:
        self._busy = True
        code = self._end()
        if code >= 0:
            return WorkerLost(f"the worker ended with exit code {code}")
        name = signal.Signals(-code).name
        hint = ", as the kernel does where memory runs out" if name == "SIGKILL" else ""
        return WorkerLost(f"the worker was ended by {name}{hint}", "crash")

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def close(self) -> None:
        """Lets an idle worker exit; kills a busy one. Idempotent."""
        if self._busy:
            self.process.kill()
        self._end()

    def _end(self) -> int:
        self._channel.close(PATIENCE)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def program(address: str, surroundings: Surroundings) -> tuple[str, ...]:
    """The command of a worker: `address` is the number of an open socket, or the name of an
    abstract one to connect to."""
    cpus = ",".join(map(str, surroundings.cpus))
    arguments = (address, str(os.getpid()), cpus, *sys.path)
    return sys.executable, "-P", "-c", _PROGRAM, *arguments


def waits_for_cpu(process: int, root: Root = ROOT) -> dict[str, float]:
    """Seconds for which each thread of a process was ready to run while others ran; empty where
    the kernel keeps no account of it (Documentation/scheduler/sched-stats.rst)."""
    tasks = f"proc/{process}/task"
    texts = {
        thread: read_text(root, f"{tasks}/{thread}/schedstat") for thread in names_in(root, tasks)
    }
    fields = {thread: (text or "").split() for thread, text in texts.items()}
    return {thread: int(found[1]) / 1e9 for thread, found in fields.items() if len(found) == 3}


def environment_with(changes: Mapping[str, str | None]) -> dict[str, str]:
    """The environment of this process with these changes (None: unset)."""
    changed = {**os.environ, **changes}
    return {name: value for name, value in changed.items() if value is not None}
