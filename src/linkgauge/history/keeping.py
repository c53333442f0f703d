"""Adds a run to the history when the run is kept. If the history cannot be written, prints a
warning and still keeps the run. Code for databases is loaded only when needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from linkgauge.model.documents.result import Run
from linkgauge.model.errors import LinkgaugeError

from .named import VARIABLE, is_off

if TYPE_CHECKING:
    from linkgauge.model.documents.history import EarlierRun

    from .store import Store

_failed: set[str] = set()
"""The histories that this process could not write; without this set, every later run would wait for
them again."""


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def remember(run: Run, folder: Path, say: Callable[[str], object] = _to_stderr) -> bool:
    """Adds a judged run, kept in `folder`, to the history. Returns whether the history now has the
    run. Never raises an exception."""
    asked = os.environ.get(VARIABLE, "")
    if is_off() or asked in _failed:
        return False
    if (why := not_added(run, folder)) is not None:
        _failed.add(asked)
        later = f"linkgauge history import {quote(str(folder))} adds it later"
        say(f"warning: this run is not in the history: {why}; {later}")
    return why is None


def not_added(run: Run, folder: Path | None) -> str | None:
    """Adds a judged run to the history. `folder` is the folder that keeps the run, if any. Returns
    the reason if adding failed, else None. Never raises an exception."""
    try:
        with _store() as store:
            if store is not None:
                from .writing import add

                add(store, run, folder)
    except Exception as error:  # noqa: BLE001 the run is worth more than its entry
        return _why(error)
    return None


def earlier(run: Run, label: str | None, last: int) -> tuple[EarlierRun, ...]:
    """Returns the `last` earlier runs of the same machine and setup (and label, if given), latest
    first. Returns no runs if the history is turned off. Raises LinkgaugeError for any error of a
    database."""
    try:
        with _store() as store:
            if store is None:
                return ()
            from .reading import earlier_runs

            return earlier_runs(store, run, label=label, last=last)
    except Exception as error:
        raise LinkgaugeError(_why(error)) from error


def _why(error: Exception) -> str:
    known = isinstance(error, LinkgaugeError)
    return " ".join((str(error) if known else f"{type(error).__name__}: {error}").split())


@contextmanager
def _store() -> Iterator[Store | None]:
    """Yields the open history, or None if the history is turned off."""
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
