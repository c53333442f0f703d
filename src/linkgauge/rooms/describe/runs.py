"""Describes the machine of a stored run."""

from __future__ import annotations

from pathlib import Path

import yaml

from linkgauge.engine.kept.runs import read_run, run_named
from linkgauge.model.errors import InputError
from linkgauge.registry import loaded, named

from .measured import Measured, measured


def given(text: str) -> tuple[str, str] | None:
    """Returns the name and YAML of a run's machine, or None if `text` names no run."""
    path = run_named(text)
    if path is None or (not Path(text).exists() and _parts(text) is not None):
        return None
    try:
        run = read_run(path)
    except InputError:
        return None  # JSON of another tool, or whoever reads texts says what is wrong
    if run.settings.simulation is not None:
        return run.settings.simulation.machine, run.settings.simulation.description
    return run.machine.host.hostname or text, described_by(path).text


def described_by(path: Path) -> Measured:
    """Describes the machine of a run. Raises InputError for a run that is simulated, has several
    processes or has no figures."""
    run = read_run(path)
    if run.settings.simulation is not None:
        raise InputError("the run is of a simulated machine, which has a description already")
    if run.machine.ranks:
        raise InputError("the run is of several processes: describe a run of one")
    return measured(run, yaml.safe_load(_parts(str(path)) or "{}"))


def _parts(text: str) -> str | None:
    made: tuple[str, str] | None = loaded(named("machines")["texts"])(text)
    return made[1] if made is not None else None
