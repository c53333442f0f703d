"""`linkgauge run --resume`: goes on with a run that broke off."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import typer

from linkgauge.engine.controller import now
from linkgauge.engine.journal import Closed, Journal, Resumed, assemble, opening
from linkgauge.engine.locks import devices_measured, hold
from linkgauge.engine.resume import check_same_machine, check_same_options
from linkgauge.engine.runs import JOURNAL_FILE
from linkgauge.engine.supervisor import Supervisor
from linkgauge.model.errors import InputError
from linkgauge.model.result import Settings, Simulation
from linkgauge.model.units import format_size, parse_fraction, parse_sizes
from linkgauge.report.terminal import make_console

from .session import Display, command_line, measure_left, show_whole, valid

FREE = {"resume", "wait", "json", "csv", "limits", "utilization"}
"""Options that say nothing of what is measured, or how."""


def go_on(folder: Path, context: typer.Context, *, wait: bool, display: Display) -> int:
    """Measures what is left of the run in this folder, as it began: options given beside it must
    be the run's own. Raises InputError where they or the machine are not. Returns the exit code."""
    errors = make_console(stderr=True)
    journal, records = Journal.reopen(folder / JOURNAL_FILE)
    with closing(journal):
        opened = opening(records)
        asked = given(context)
        check_same_options(opened.options, asked)
        if "--machine" in asked:
            _check_same_description(asked["--machine"], opened.settings.simulation)
        if any(isinstance(record, Closed) for record in records):
            errors.print(f"{folder} is complete: nothing is left to measure")
            return show_whole(assemble(records), folder, display)
        then = opened.machine
        with (
            closing(Supervisor(opened.settings)) as worker,
            hold(devices_measured(then, opened.plan), wait=wait, tell=errors.print),
        ):
            check_same_machine(then, worker.survey((*then.devices, *then.unavailable)))
            resumed = Resumed(now(), command_line())
            journal.append(resumed)
            return measure_left((*records, resumed), worker, journal.append, folder, display)


def _check_same_description(machine: str, simulation: Simulation | None) -> None:
    """The run goes on with the description that it began with: a file may say otherwise by now."""
    from linkgauge.backends.sim.description import load

    if simulation is None or load(machine)[1] != simulation.description:
        raise InputError(
            f"--machine {machine} disagrees with the run's own: its description has changed: "
            "leave it out, or start a new run"
        )


def in_effect(context: typer.Context, settings: Settings) -> dict[str, str]:
    """The command's options by their names, with what the profile says where none was given."""
    of_profile = {
        "size": ",".join(f"{size}B" for size in settings.sizes),
        "precision": settings.precision,
        "max_time": settings.max_time,
    }
    return _written(context, {**context.params, **of_profile})


def given(context: typer.Context) -> dict[str, str]:
    """The options on the command line, by their names. Raises InputError for what is none."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return _written(
        context,
        {
            name: value
            for name, value in context.params.items()
            if (source := sources[name]) is not None and source.name == "COMMANDLINE"
        },
    )


def _written(context: typer.Context, values: Mapping[str, Any]) -> dict[str, str]:
    """Each as a person would write it, equal values in the same way; without those that are off."""
    names = {param.name: param.opts[0] for param in context.command.params}
    return {
        names[name]: valid(_write(name, value))
        for name, value in values.items()
        if name not in FREE and not _is_off(value)
    }


def _is_off(value: Any) -> bool:
    return value is None or value is False or value in ([], ())


def _write(name: str, value: Any) -> str:
    if name == "size":
        return ",".join(map(_short, parse_sizes(value)))
    if name == "precision" and isinstance(value, str):
        value = parse_fraction(value)
    if name == "out":
        return str(Path(value).absolute())
    if value is True:  # a flag says all by its name
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(size: int) -> str:
    """A size as it may be given: 512M."""
    return format_size(size).replace(" ", "").replace("iB", "")
