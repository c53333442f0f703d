"""Which kept run a command means."""

from __future__ import annotations

from pathlib import Path

from linkgauge.model.errors import InputError


def kept_run(given: Path | None) -> Path:
    """The folder or file of the run. Raises InputError where none is meant."""
    from linkgauge.engine.runs import is_run

    if given is None:
        raise InputError("give a run: its folder or its run.json")
    if given.is_dir() and not is_run(given):
        raise InputError(f"{given} is no run's folder: give one below it")
    return given
