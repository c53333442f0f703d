"""linkgauge measures how fast data moves between every pair of memories a machine can reach.

The names in `__all__` are the Python API (docs/api.md). Each is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
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
    from linkgauge.rooms.notebook.api import MeasuredRun as MeasuredRun
    from linkgauge.rooms.notebook.api import load as load
    from linkgauge.rooms.notebook.api import load_all as load_all
    from linkgauge.rooms.notebook.api import measure as measure

__version__ = "0.1.0"
_MODULES = {
    "rooms.notebook.api": ("MeasuredRun", "load", "load_all", "measure"),
    "judge.findings": ("Finding",),
    "model.errors": (
        "DeviceBusy", "InputError", "Interrupted", "LinkgaugeError", "MissingPackage",
        "ResultsError",
    ),
    "model.documents.result": ("Run",),
    "report.rows": ("CellRow", "SampleRow"),
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
    "Run",
    "SampleRow",
    "__version__",
    "load",
    "load_all",
    "measure",
]


def __getattr__(name: str) -> object:
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
