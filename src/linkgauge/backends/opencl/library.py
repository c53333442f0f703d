"""Functions of the OpenCL library by their addresses, which the native core calls over and over."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Sequence
from contextlib import ExitStack
from functools import cache

from linkgauge.backends.iterations import Call, IteratedGroup, address_of
from linkgauge.machine.tree import ROOT, read_text
from linkgauge.model.errors import BackendError, Unsupported

from .runtime import error_of

Named = tuple[str, Sequence[int]]
"""A function of the library and its arguments."""
NO_EVENTS = (0, 0, 0)
"""Number and list of events to wait for, and where to put the command's own."""
_LIBRARY = re.compile(r"^(?:\S+\s+){5}(/.*libOpenCL[^/\n]*?)(?: \(deleted\))?$", re.MULTILINE)
"""A line of the maps: five fields, then a path that may have spaces."""


def iterated(named: Sequence[Named], steps: int, *kept: object) -> IteratedGroup:
    """A group of these calls, an iteration of which has `steps` latencies; `kept` outlives it.
    Raises Unsupported where the OpenCL library cannot be found."""
    calls: list[Call] = [(address_of(_library(), name), words) for name, words in named]

    def error(status: int, failed: int) -> BackendError:
        return error_of(status, named[failed][0])

    made = ExitStack()
    made.callback(lambda: kept)
    return IteratedGroup(calls, steps, error, made=made)


@cache
def _library() -> ctypes.CDLL:
    """The library that pyopencl has loaded: another may know other devices. Raises Unsupported if
    it is not to be found."""
    found = _LIBRARY.search(read_text(ROOT, "proc/self/maps") or "")
    if found is None:
        raise Unsupported("cannot find the loaded OpenCL library (/proc/self/maps)")
    try:
        return ctypes.CDLL(found[1])
    except OSError as error:
        raise Unsupported(f"cannot open the loaded OpenCL library: {error}") from None
