"""Adds a run to the history when it is kept: a history that cannot be written costs a warning,
never the run. What talks to databases is loaded here, when it is needed."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote

from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.result import Run

from .named import VARIABLE, is_off

_failed: set[str] = set()
"""Histories that this process could not write, which would cost every later run the same wait."""


def _to_stderr(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def remember(run: Run, folder: Path, say: Callable[[str], object] = _to_stderr) -> None:
    """Adds a judged run that is kept in this folder. Never raises."""
    asked = os.environ.get(VARIABLE, "")
    if is_off() or asked in _failed:
        return
    try:
        _add(run, folder)
    except Exception as error:  # noqa: BLE001 the run is worth more than its entry
        _failed.add(asked)
        known = isinstance(error, LinkgaugeError)
        why = " ".join((str(error) if known else f"{type(error).__name__}: {error}").split())
        later = f"linkgauge history import {quote(str(folder))} adds it later"
        say(f"warning: this run is not in the history: {why}; {later}")


def _add(run: Run, folder: Path) -> None:
    try:
        from .address import address
        from .store import opened
        from .writing import add
    except ImportError as error:
        raise LinkgaugeError(
            f"{error.name} is not installed ({VARIABLE}=none: no history)"
        ) from error
    url = address()
    if url is not None:
        with opened(url) as store:
            add(store, run, folder)
