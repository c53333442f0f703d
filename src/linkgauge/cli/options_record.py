"""Writes a command's options as text, which a run keeps and `--resume` compares."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from linkgauge.engine.kept.folder import checked_label
from linkgauge.engine.request import RunRequest, What
from linkgauge.model.settings import Settings
from linkgauge.model.units import format_size, parse_fraction, parse_sizes

from .options import Field, Options, values_of

FREE = {
    "resume", "wait", "limits", "waivers", "utilization", "matrix", "whole", "no_verdict",
    "no_report",
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
    """Makes a request, which records the options. `more` adds fields or replaces them."""
    values = vars(asked)
    shared = {field: values[name] for name, field in _SHARED.items() if name in values} | more
    shared["label"] = checked_label(shared["label"])
    shared["out"] = None if shared["out"] is None else str(shared["out"])
    return RunRequest(
        what=what,
        settings=settings,
        profile=None if values.get("size") else profile,
        command=command_of(asked),
        options=in_effect(asked, settings),
        **shared,
    )


def command_of(asked: Options) -> tuple[str, ...]:
    """Returns the command as typed; for a call of the Python API, the equivalent command."""
    return ("linkgauge", *map(_storable, asked.line.words))


def in_effect(asked: Options, settings: Settings) -> dict[str, str]:
    """Returns the options in effect by flag, as text. The profile's values replace missing ones."""
    own = {
        "size": ",".join(f"{size}B" for size in settings.sizes),
        "precision": settings.precision,
        "max_time": settings.max_time,
    }
    if settings.sample_pairs is not None:
        own["seed"] = settings.sample_pairs.seed
    found = ((name, field, own.get(name, value)) for name, field, value in values_of(asked))
    return _written(found)


def given(asked: Options) -> dict[str, str]:
    return _written(one for one in values_of(asked) if one[0] in asked.line.typed)


def _written(values: Iterable[tuple[str, Field, Any]]) -> dict[str, str]:
    found = {}
    for name, field, value in values:
        if name not in FREE and not _is_off(value):
            flag = next(iter(field.flags_of(name)), name)
            found[flag] = _storable(_write(flag, value))
    return found


def _storable(text: str) -> str:
    """Replaces bytes that UTF-8 cannot hold: they come from a shell in another encoding."""
    return text.encode("utf-8", "replace").decode()


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
    return format_size(size).replace(" ", "").replace("iB", "")
