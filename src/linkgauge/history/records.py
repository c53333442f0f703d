"""Converts a run to database rows. Rows with the same content have the same digest."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta
from typing import Any, Protocol

import msgspec

from linkgauge.model.cell_id import table_id
from linkgauge.model.documents.history import DESCRIPTION, Figure, SeriesId
from linkgauge.model.documents.result import Result, Run, RunVerdict, worst
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import EngineSettings, Settings, Surroundings

from .tables import DIGEST, EPOCH, KEPT, STATUSES

Row = dict[str, Any]
NO_ACCELERATOR = "cpu"


def digest(*parts: object) -> str:
    return hashlib.blake2b(msgspec.json.encode(parts), digest_size=DIGEST).hexdigest()


def microseconds(moment: str | None) -> int | None:
    """Converts an ISO 8601 time to microseconds since 1970. Raises ValueError if it is invalid."""
    if moment is None:
        return None
    found = datetime.fromisoformat(moment)
    found = found.replace(tzinfo=UTC) if found.tzinfo is None else found
    return (found - EPOCH) // timedelta(microseconds=1)


class ComparableRun(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def started(self) -> str: ...
    @property
    def machine(self) -> Machine: ...
    @property
    def settings(self) -> Settings: ...


def began(run: ComparableRun) -> int:
    """Returns a run's start in microseconds since 1970. Raises InputError if it is invalid."""
    try:
        return microseconds(run.started) or 0
    except ValueError as error:
        raise InputError(f"run {run.id} began at no known time: {run.started!r}") from error


def _ended(run: Run) -> int | None:
    try:
        return microseconds(run.finished)
    except ValueError:
        return began(run)


def machine_row(machine: Machine) -> Row:
    """Returns a machine's row. It stays equal if one of several accelerators of a model is lost."""
    models = dict.fromkeys(one.model for one in machine.all_devices if not one.is_cpu)
    row = {
        "host": machine.simulated or machine.host.hostname or "unknown",
        "accelerators": ", ".join(models) or NO_ACCELERATOR,
        "simulated": machine.simulated is not None,
        "ranks": len(machine.ranks) or 1,
    }
    return {**row, "digest": digest(*row.values())}


def setup_of(settings: Settings) -> dict[str, str]:
    """Returns the settings that figures depend on, except default values. Precision, durations and
    sizes are not among them."""
    found: dict[str, object] = {
        "parallel pairs": settings.parallel_pairs or None,
        "loops": settings.loops,
        "pattern": settings.pattern,
        **_other(settings.engines, EngineSettings(), "tunes", "calls_wait"),
        **_other(settings.surroundings, Surroundings()),
    }
    if (simulation := settings.simulation) is not None:
        found[DESCRIPTION] = digest(simulation.description)[:8]
    return {
        name: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for name, value in found.items()
        if value is not None
    }


def _other(value: msgspec.Struct, default: msgspec.Struct, *without: str) -> dict[str, object]:
    return {
        name.replace("_", " "): getattr(value, name)
        for name in value.__struct_fields__
        if name not in without and getattr(value, name) != getattr(default, name)
    }


def setup_row(settings: Settings) -> Row:
    document = setup_of(settings)
    return {"digest": digest(document), "document": document}


def state_rows(run: Run) -> tuple[Row, list[Row]]:
    """Returns the row of the machine's state, and the rows of its facts without the state's id."""
    from linkgauge.judge.compare.machine_state import state_of  # loads every check of the doctor

    state = state_of(run)
    named = [{"name": name, "value": value} for name, value in sorted(state.items())]
    return {"digest": digest(named)}, named


def table_row(result: Result) -> Row:
    """Returns a table's row. Its title does not identify it, because the wording may change."""
    of = (*table_id(result), result.unit, result.better)
    names = ("benchmark", "backend", "size", "unit", "better")
    return {"digest": digest(*of), "title": result.title, **dict(zip(names, of, strict=True))}


def cell_row(table: Row, of: SeriesId) -> Row:
    """Returns a cell's row. `table` is the row of the cell's table, including its `id`."""
    kept = {name: getattr(of, name) for name in _OF_CELLS}
    key = digest(bytes.fromhex(table["digest"]), *kept.values())
    return {"digest": key, "table_id": table["id"], **kept}


_OF_CELLS = ("row", "column", "transfers", "definition", "repeat")


def figure_row(figure: Figure) -> Row:
    return {name: getattr(figure, name) for name in KEPT}


def run_row(run: Run, path: str | None, verdict: RunVerdict | None) -> Row:
    """Returns a run's row without the ids of its machine, state and setup. `digest` identifies the
    run; `content` changes when the run is resumed."""
    cells = [cell for result in run.results for cell in result.cells]
    host = run.machine.simulated or run.machine.host.hostname
    content = [
        [STATUSES.index(cell.status), one.n if one else 0, one.median if one else None]
        for cell in cells
        for one in (cell.summary,)
    ]
    return {
        "digest": digest(run.id, run.label, host, run.started),
        "content": digest(run.finished, run.resumed, content),
        "uid": run.id,
        "label": run.label,
        "started": began(run),
        "finished": _ended(run),
        "profile": run.settings.profile,
        "profiled": run.is_profiled,
        "status": worst(result.status for result in run.results),
        "cells": len(cells),
        "passed": sum(cell.status == "pass" for cell in cells),
        "low": sum(cell.verdict == "low" for cell in cells),
        "path": path,
        "command": run.command,
        "settings": run.settings,
        "verdict": verdict,
        "lost": len(run.earlier.lost) if run.earlier else None,
    }
