"""For a person, in colour on a terminal: what is written where no other format is asked for."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib import import_module
from typing import Any

from . import TERMINAL, Format


def _lines(module: str, function: str) -> Callable[[Any], Iterable[Any]]:
    """The function of a module of report/, loaded when something is rendered."""

    def render(value: Any) -> Iterable[Any]:
        lines: Iterable[Any] = getattr(import_module(f"linkgauge.report.{module}"), function)(value)
        return lines

    return render


FORMAT = Format(
    TERMINAL,
    "",
    {
        "run": _lines("live", "run_lines"),
        "plan": _lines("dry_run", "plan_lines"),
        "machine": _lines("inventory", "machine_lines"),
        "findings": _lines("doctor", "diagnosis_lines"),
        "benchmarks": _lines("inventory", "benchmark_lines"),
    },
)
