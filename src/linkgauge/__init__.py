"""linkgauge measures how fast data moves between every pair of memories a machine can reach.

The names in `__all__` are the Python API (docs/api.md). Each is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkgauge.api.judging import compare, devices, doctor, expect, gate, judge_files
    from linkgauge.api.measuring import check, measure, run, scale, vary
    from linkgauge.api.runs import MeasuredRun, load, load_all
    from linkgauge.judge.findings import Finding
    from linkgauge.model.documents.result import Run
    from linkgauge.model.errors import (
        DeviceBusy,
        InputError,
        Interrupted,
        LinkgaugeError,
        MissingPackage,
        ResultsError,
    )
    from linkgauge.report.rows import SampleRow
    from linkgauge.report.tables import CellRow, RowTable

__version__ = "0.1.0"
_MODULES = {
    "api.judging": ("compare", "devices", "doctor", "expect", "gate", "judge_files"),
    "api.measuring": ("check", "measure", "run", "scale", "vary"),
    "api.runs": ("MeasuredRun", "load", "load_all"),
    "judge.findings": ("Finding",),
    "model.documents.result": ("Run",),
    "model.errors": (
        "DeviceBusy", "InputError", "Interrupted", "LinkgaugeError", "MissingPackage",
        "ResultsError",
    ),
    "report.rows": ("SampleRow",),
    "report.tables": ("CellRow", "RowTable"),
}  # fmt: skip
__all__ = [
    "CellRow",
    "DeviceBusy",
    "Finding",
    "InputError",
    "Interrupted",
    "LinkgaugeError",
    "MeasuredRun",
    "MissingPackage",
    "ResultsError",
    "RowTable",
    "Run",
    "SampleRow",
    "__version__",
    "check",
    "compare",
    "devices",
    "doctor",
    "expect",
    "gate",
    "judge_files",
    "load",
    "load_all",
    "measure",
    "run",
    "scale",
    "vary",
]


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
