"""Writes the options of a command as text. A run keeps this text, and `--resume` compares it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from linkgauge.engine.kept.folder import checked_label
from linkgauge.engine.request import RunRequest, What
from linkgauge.model.settings import Settings
from linkgauge.model.units import format_size, parse_fraction, parse_sizes
from linkgauge.report.formats import formats

from .options import Options
from .requests import command_line, valid

FREE = {
    "resume", "wait", "limits", "utilization", "matrix", "whole", "no_verdict", "no_report",
    *formats(),
}  # fmt: skip
"""Options that do not affect what is measured, or how."""


_SHARED = {
    "backend": "backends", "device": "devices", "label": "label", "out": "out", "wait": "wait",
}  # fmt: skip
"""The options that mean the same in every command that has them, with their names in a request."""


def request_of(
    asked: Options,
    what: What,
    settings: Settings,
    profile: str | None = None,
    **more: Any,
) -> RunRequest:
    """Makes a measuring command's request, with the options and the command line for the record.
    `more` adds or replaces fields of the request."""
    values = vars(asked)
    shared = {field: values[name] for name, field in _SHARED.items() if name in values} | more
    shared["label"] = checked_label(shared["label"])
    shared["out"] = None if shared["out"] is None else str(shared["out"])
    return RunRequest(
        what=what,
        settings=settings,
        profile=None if values.get("size") else profile,
        command=command_line(),
        options=in_effect(settings),
        **shared,
    )


def in_effect(settings: Settings) -> dict[str, str]:
    """Returns the command's options by name, as text. Options that were not given have the
    profile's values."""
    context = click.get_current_context()
    of_profile = {
        "size": ",".join(f"{size}B" for size in settings.sizes),
        "precision": settings.precision,
        "max_time": settings.max_time,
    }
    own = {name: value for name, value in of_profile.items() if name in context.params}
    if settings.sample_pairs is not None:
        own["seed"] = settings.sample_pairs.seed
    return _written(context, {**context.params, **own})


def given() -> dict[str, str]:
    """Returns the options that were given on the command line, by name. Raises InputError for other
    arguments."""
    context = click.get_current_context()
    sources = {name: context.get_parameter_source(name) for name in context.params}
    typed = [name for name, by in sources.items() if by is not None and by.name == "COMMANDLINE"]
    return _written(context, {name: context.params[name] for name in typed})


def _written(context: click.Context, values: Mapping[str, Any]) -> dict[str, str]:
    """Returns each option as a person would write it. Options that are off are left out."""
    names = {param.name: param.opts[0] for param in context.command.params}
    return {
        names[name]: valid(_write(names[name], value))
        for name, value in values.items()
        if name not in FREE and not _is_off(value)
    }


def _is_off(value: Any) -> bool:
    return value is None or value is False or value in ([], ())


def _write(option: str, value: Any) -> str:
    if option in ("--size", "--buffer"):
        return ",".join(map(_short, parse_sizes(value)))
    if option in ("--for", "--budget") and isinstance(value, float):
        return f"{value:g}s"
    if option == "--precision" and isinstance(value, str):
        value = parse_fraction(value)
    if option == "--out":
        return str(Path(value).absolute())
    if value is True:  # the name of a flag says all
        return ""
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def _short(size: int) -> str:
    """Returns a size as an option states it: 512M."""
    return format_size(size).replace(" ", "").replace("iB", "")
