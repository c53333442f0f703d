"""The exceptions of linkgauge: every error that leaves linkgauge is a LinkgaugeError."""

from __future__ import annotations

import errno
import shlex
import sys
from collections.abc import Iterable
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
    "budget",
    "wrong-bytes",
    "limit",
    "reported",
    "call",
    "memory",
    "lost",
    "crash",
    "exit",
    "timeout",
]
"""Why a cell did not pass. Skipped: the size does not fit, the cell is unsupported, a device cannot
reach its peer, there is no IMEX channel, a device was set aside, the run was interrupted before,
or its time budget was used. Failed: wrong bytes, below a limit, or the tool that measured it
reports a failure without its reason (`reported`). Error: a native call failed,
memory ran out, the device was lost, a signal ended the worker (`crash`), the worker exited
(`exit`), or it took too long."""


NOT_TRIED: tuple[OutcomeKind, ...] = ("interrupted", "budget")
"""Why a cell was not tried, though it was planned. Nothing about the cell follows from it."""


_WORST_FIRST = (130, 3, 1, 4, 0)


def worst_code(codes: Iterable[int]) -> int | None:
    """Returns the worst exit code: the first of 130, 3, 1, 4 and 0 that occurs, or None."""
    present = set(codes)
    return next((code for code in _WORST_FIRST if code in present), None)


class LinkgaugeError(Exception):
    exit_code = 3
    kind: OutcomeKind = "call"
    """The outcome of a cell that ends with this error."""


class InputError(LinkgaugeError):
    exit_code = 2


def pip_install(requirement: str) -> str:
    """Returns the command to install a package for this Python. `pip` may be another one's."""
    return f"{shlex.quote(sys.executable)} -m pip install {shlex.quote(requirement)}"


class MissingPackage(InputError, ImportError):
    def __init__(self, package: str, extra: str) -> None:
        remedy = pip_install(f"linkgauge[{extra}]")
        super().__init__(f"{package} is not installed: {remedy} (or {package} alone)")
        self.package = package
        self.extra = extra


class Interrupted(LinkgaugeError, KeyboardInterrupt):
    """Ctrl-C or SIGTERM ended a measurement. `measured` holds what was measured until then."""

    exit_code = 130

    def __init__(self, message: str, measured: Any = None) -> None:
        super().__init__(message)
        self.measured = measured


class NotationError(InputError):
    """A text such as `host:0 -> cuda:1` is invalid. `str()` marks its first bad character."""

    def __init__(self, problem: str, text: str, position: int) -> None:
        super().__init__(problem)
        self.problem = problem
        self.text = text
        self.position = position

    def __str__(self) -> str:
        # What is not printable would shift the caret, so it shows as one character.
        return f"{self.problem}\n  {printable(self.text)}\n  {' ' * self.position}^"


class Unsupported(LinkgaugeError):
    kind: OutcomeKind = "unsupported"


class NoPeerAccess(Unsupported):
    kind = "peer"


class BackendError(LinkgaugeError):
    def __init__(self, call: str, detail: str) -> None:
        super().__init__(f"{call}: {detail}")
        self.call = call
        self.detail = detail


class AllocationError(BackendError):
    kind = "memory"


class DeviceLost(BackendError):
    kind = "lost"


class TookTooLong(BackendError):
    kind = "timeout"


class ResultsError(LinkgaugeError):
    """Results could not be written. Earlier results stay valid."""


_DISK = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def unwritable(path: object, error: OSError) -> LinkgaugeError:
    """Returns a ResultsError if the disk is full or fails, else an InputError."""
    kind = ResultsError if error.errno in _DISK else InputError
    return kind(f"cannot write {path}: {error.strerror}")


class DeviceBusy(LinkgaugeError):
    exit_code = 4
