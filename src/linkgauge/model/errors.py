"""The one exception tree. Every error that leaves linkgauge is one of these.

`exit_code` is the command line's exit code for the error (DESIGN: 2 bad input, 3 an error cost
results, 4 nothing was measured).
"""

from __future__ import annotations

import errno
import shlex
import sys
from typing import Any, Literal, get_args

from .printable import printable

Phase = Literal["plan", "allocate", "warm up", "fill", "measure", "verify"]
"""The phases of a cell, in order."""
PHASES: tuple[Phase, ...] = get_args(Phase)

OutcomeKind = Literal[
    "size",
    "unsupported",
    "peer",
    "imex",
    "set-aside",
    "interrupted",
    "wrong-bytes",
    "limit",
    "call",
    "memory",
    "lost",
    "crash",
    "exit",
    "timeout",
]
"""Why a cell did not pass. Skipped: its size does not fit, it is unsupported, a device cannot reach
its peer, there is no IMEX channel, a device was set aside, or the run was interrupted before.
Failed: wrong bytes, or below a limit. Otherwise a native call failed, memory ran out, the device
was lost, the worker was ended by a signal (`crash`) or exited (`exit`), or it took too long."""


class LinkgaugeError(Exception):
    """Base of every error that linkgauge raises on purpose."""

    exit_code = 3
    kind: OutcomeKind = "call"
    """The outcome of a cell that this error ends."""


class InputError(LinkgaugeError):
    """Unusable user input: an unknown name, a bad size, an unwritable folder."""

    exit_code = 2


def pip_install(requirement: str) -> str:
    """The command that installs a package, or an extra (`linkgauge[pack]`), for the Python that
    runs: the pip on the user's PATH is often another's."""
    return f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(requirement)}"


class MissingPackage(InputError, ImportError):
    """A package that linkgauge does not require is needed here, and is not installed."""

    def __init__(self, package: str, extra: str) -> None:
        remedy = pip_install(f"linkgauge[{extra}]")
        super().__init__(f"{package} is not installed: {remedy} (or {package} alone)")
        self.package = package
        self.extra = extra


class Interrupted(LinkgaugeError, KeyboardInterrupt):
    """Ctrl-C, or SIGTERM if it is treated alike, ended a measurement of the Python API. `measured`
    is what was measured until then, as the function would have returned it; None if nothing was."""

    exit_code = 130

    def __init__(self, message: str, measured: Any = None) -> None:
        super().__init__(message)
        self.measured = measured


class NotationError(InputError):
    """A text that does not parse, with the position of the first bad character.

    `str()` shows the text with a caret under that character.
    """

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.text = text
        self.position = position

    def __str__(self) -> str:
        # What is not printable would shift the caret, so it shows as one character.
        return f"{self.problem}\n  {printable(self.text)}\n  {' ' * self.position}^"


class Unsupported(LinkgaugeError):
    """This machine or backend cannot do what a cell requests; the cell is `skip` with this
    reason."""

    kind: OutcomeKind = "unsupported"


class NoPeerAccess(Unsupported):
    """A device does not reach the memory of another."""

    kind = "peer"


class BackendError(LinkgaugeError):
    """A native call failed; the cell is `error`. The message names the call and its error."""

    def __init__(self, call: str, detail: str) -> None:
        super().__init__(f"{call}: {detail}")
        self.call = call
        self.detail = detail


class AllocationError(BackendError):
    """An allocation failed during the run, although there seemed to be enough memory before."""

    kind = "memory"


class DeviceLost(BackendError):
    """The device is gone: nothing reaches it until it is reset."""

    kind = "lost"


class TookTooLong(BackendError):
    """A call took too long and was ended, by the driver or by its own limit; the cell is
    `timeout`."""

    kind = "timeout"


class ResultsError(LinkgaugeError):
    """Results could not be written; earlier results stay valid."""


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def unwritable(path: object, error: OSError) -> LinkgaugeError:
    """The error for a file that a person named and that could not be written: InputError if another
    name would do, ResultsError if the disk is full or fails."""
    kind = ResultsError if error.errno in _DISK else InputError
    return kind(f"cannot write {path}: {error.strerror}")


class DeviceBusy(LinkgaugeError):
    """Another process holds a device to be measured, so nothing was measured."""

    exit_code = 4
