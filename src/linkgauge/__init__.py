"""linkgauge measures how fast data moves between every pair of memories a machine can reach.

The names in `__all__` are the Python API (docs/api.md). Each is loaded when it is first used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from linkgauge.api.judging import compare as compare
    from linkgauge.api.judging import devices as devices
    from linkgauge.api.judging import doctor as doctor
    from linkgauge.api.judging import expect as expect
    from linkgauge.api.judging import gate as gate
    from linkgauge.api.judging import judge_files as judge_files
    from linkgauge.api.measuring import check as check
    from linkgauge.api.measuring import measure as measure
    from linkgauge.api.measuring import run as run
    from linkgauge.api.measuring import scale as scale
    from linkgauge.api.measuring import vary as vary
    from linkgauge.api.runs import MeasuredRun as MeasuredRun
    from linkgauge.api.runs import load as load
    from linkgauge.api.runs import load_all as load_all
    from linkgauge.judge.findings import Finding as Finding
    from linkgauge.model.documents.result import Run as Run
    from linkgauge.model.errors import DeviceBusy as DeviceBusy
    from linkgauge.model.errors import InputError as InputError
    from linkgauge.model.errors import Interrupted as Interrupted
    from linkgauge.model.errors import LinkgaugeError as LinkgaugeError
    from linkgauge.model.errors import MissingPackage as MissingPackage
    from linkgauge.model.errors import ResultsError as ResultsError
    from linkgauge.report.rows import CellRow as CellRow
    from linkgauge.report.rows import SampleRow as SampleRow
    from linkgauge.report.tables import RowTable as RowTable

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
    "report.rows": ("CellRow", "SampleRow"),
    "report.tables": ("RowTable",),
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
