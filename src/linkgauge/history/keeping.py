"""Adds finished runs to the history. If that fails, a warning says so, and the run is kept."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from linkgauge.model.documents.result import Run, RunVerdict
from linkgauge.model.errors import LinkgaugeError

from . import VARIABLE, is_off

if TYPE_CHECKING:
    from linkgauge.model.documents.history import EarlierMedians, EarlierRun

    from .reading import Equivalent
    from .records import ComparableRun
    from .store import Store

_failed: set[str] = set()
"""The histories that this process failed to write. It does not try them again."""


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def remember(
    run: Run,
    folder: Path,
    say: Callable[[str], object] = _to_stderr,
    verdict: RunVerdict | None = None,
) -> bool:
    """Adds a run to the history, or warns by `say`. Returns whether the history has the run."""
    asked = os.environ.get(VARIABLE, "")
    if is_off() or asked in _failed:
        return False
    if (why := not_added(run, folder, verdict)) is not None:
        _failed.add(asked)
        later = f"linkgauge history import {quote(str(folder))} adds it later"
        say(f"warning: this run is not in the history: {why}; {later}")
    return why is None


def not_added(run: Run, folder: Path | None, verdict: RunVerdict | None = None) -> str | None:
    """Adds a run. Returns the reason if that failed, else None. Never raises an exception."""
    try:
        with _store() as store:
            if store is not None:
                from .writing import add

                add(store, run, folder, verdict)
    except Exception as error:  # noqa: BLE001 the run is worth more than its entry
        return _why(error)
    return None


def medians_before(
    run: Run, last: int, equivalent: Equivalent, fewest: int
) -> EarlierMedians | None:
    """Returns `earlier_medians` of the history; None if it is off. Raises LinkgaugeError."""
    with _reading() as store:
        if store is None:
            return None
        from .reading import earlier_medians

        return earlier_medians(store, run, last, equivalent, fewest)


def runs_before(
    run: ComparableRun, last: int, label: str | None = None, benchmarks: Collection[str] = ()
) -> tuple[EarlierRun, ...]:
    """Returns up to `last` earlier runs of the same machine and setup, latest first, with figures
    of these benchmarks; none if the history is off. Raises LinkgaugeError if the database fails."""
    with _reading() as store:
        if store is None:
            return ()
        from .reading import earlier_runs

        return earlier_runs(store, run, label=label, last=last, benchmarks=benchmarks)


@contextmanager
def _reading() -> Iterator[Store | None]:
    try:
        with _store() as store:
            yield store
    except Exception as error:
        raise LinkgaugeError(_why(error)) from error


def _why(error: Exception) -> str:
    known = isinstance(error, LinkgaugeError)
    return " ".join((str(error) if known else f"{type(error).__name__}: {error}").split())


@contextmanager
def _store() -> Iterator[Store | None]:
    if is_off():
        yield None
        return
    try:
        from .address import address
        from .store import opened
    except ImportError as error:
        raise LinkgaugeError(
            f"{error.name} is not installed ({VARIABLE}=none: no history)"
        ) from error
    url = address()
    if url is None:
        yield None
        return
    with opened(url) as store:
        yield store
