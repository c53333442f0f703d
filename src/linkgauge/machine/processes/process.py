"""Starts a process that works for this one, sends it commands, and ends it."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from linkgauge.model.errors import LinkgaugeError, OutcomeKind
from linkgauge.model.settings import Surroundings

from .channel import Answer, Broke, Channel, Done, Refused, decoder, encode, error_of
from .signals import ENDING

GRACE = 2.0
"""Seconds that an idle process has to exit by itself."""
LOOK = 0.1
"""Seconds to wait before the deadline is checked. Most answers come sooner."""
LONGEST = 1e6
"""The longest single wait in seconds. The system accepts not much more."""
# The module search path is passed on unchanged: the child runs the same code, wherever it lies.
_PROGRAM = """
import os
import sys
module, address, parent, cpus, *path = sys.argv[1:]
if cpus:
    os.sched_setaffinity(0, map(int, cpus.split(",")))
sys.path[:] = path
from linkgauge.machine.processes.child import main
main(module, address, int(parent))
"""
_A = TypeVar("_A")


class ProcessLost(LinkgaugeError):
    """The process ended, or was killed, before it answered."""

    def __init__(self, reason: str, kind: OutcomeKind = "exit") -> None:
        super().__init__(reason)
        self.kind = kind


class Process:
    """A process that runs `serve(channel)` of `module`. `words` is the type of progress messages.
    `surroundings` has the process's CPUs and environment. `output` is the file descriptor to which
    it prints. If `session` is true, signals of the terminal do not reach it."""

    name = "the process"
    words: Any = None

    def __init__(
        self,
        module: str,
        surroundings: Surroundings = Surroundings(),  # noqa: B008
        output: int = subprocess.DEVNULL,
        *,
        session: bool = False,
    ) -> None:
        self.module, self._output, self._session = module, output, session
        self._busy = True  # before its first command, ending it loses nothing
        self._decode = decoder(Answer if self.words is None else Answer | self.words)
        self.process, self._channel = self._start(surroundings)

    def _start(self, surroundings: Surroundings) -> tuple[subprocess.Popen[bytes], Channel]:
        ours, theirs = socket.socketpair()
        # Blocked while it starts and afterwards: the controller handles signals that end the run.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
        try:
            process = subprocess.Popen(  # noqa: S603  # this Python, this code
                program(self.module, str(theirs.fileno()), surroundings),
                pass_fds=(theirs.fileno(),),
                env=environment_with(surroundings.environment),
                stdin=subprocess.DEVNULL,
                stdout=self._output,
                stderr=self._output,
                start_new_session=self._session,
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return process, Channel(ours)

    def send(self, command: object) -> None:
        """Sends a command. If the process has ended, the next `answer` raises the error."""
        with suppress(OSError):
            self._channel.send(encode(command))

    def ask(self, command: object) -> None:
        self._busy = True
        self.send(command)

    def answer(
        self,
        kind: type[_A],
        left: Callable[[], float] | None = None,
        heard: Callable[[Any], None] = lambda word: None,
    ) -> _A:
        """Returns the answer to the last command. `left` returns the seconds until the deadline,
        and `heard` gets each progress message. Raises ProcessLost if the process ends or misses the
        deadline, and LinkgaugeError if only the command fails."""
        while True:
            try:
                self._wait(left)
                reply = self._decode(self._channel.receive())
            except (EOFError, OSError):
                raise self._how_it_ended() from None
            if isinstance(reply, Broke):
                self.kill()
                raise ProcessLost(f"{self.name} broke: {reply.reason}")
            if not isinstance(reply, (Done, Refused)):
                heard(reply)
                continue
            self._busy = False
            if isinstance(reply, Refused):
                raise error_of(reply.reason)
            return reply.of(kind)

    def _wait(self, left: Callable[[], float] | None) -> None:
        if left is None or self._channel.poll(LOOK):
            return
        while (seconds := left()) >= 0:
            if self._channel.poll(min(seconds, LONGEST)):
                return
        self.kill()
        raise ProcessLost("no answer", "timeout")

    def _how_it_ended(self) -> ProcessLost:
        self._busy = True
        code = self._end()
        if code >= 0:
            return ProcessLost(f"{self.name} ended with exit code {code}")
        name = signal.Signals(-code).name
        hint = ", which the kernel sends when memory runs out" if name == "SIGKILL" else ""
        return ProcessLost(f"{self.name} was ended by {name}{hint}", "crash")

    def kill(self) -> None:
        self.process.kill()
        self._end()

    def abandon(self) -> None:
        """Kills the process without waiting: a driver may take long. May be called again."""
        if self._channel.fileno() >= 0:
            self.process.kill()
            self._channel.socket.close()
            threading.Thread(target=self.process.wait, daemon=True).start()  # leaves no zombie

    def end(self) -> None:
        """Lets an idle process exit, and kills a busy one, without waiting. May be called again."""
        if self._busy:
            self.process.kill()
        self._channel.end()

    def close(self, grace: float = GRACE) -> None:
        """Ends the process; if idle, it has `grace` seconds to exit. May be called again."""
        self.end()
        self._end(grace)

    def _end(self, grace: float = GRACE) -> int:
        self._channel.close(grace)
        try:
            return self.process.wait(grace)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


def program(module: str, address: str, surroundings: Surroundings) -> tuple[str, ...]:
    """Returns a child's command line. `address` is an open socket's number or an abstract name."""
    cpus = ",".join(map(str, surroundings.cpus))
    arguments = (module, address, str(os.getpid()), cpus, *sys.path)
    return sys.executable, "-P", "-c", _PROGRAM, *arguments


def environment_with(changes: Mapping[str, str | None]) -> dict[str, str]:
    """Returns this process's environment with these changes; None removes a variable."""
    changed = {**os.environ, **changes}
    return {name: value for name, value in changed.items() if value is not None}
