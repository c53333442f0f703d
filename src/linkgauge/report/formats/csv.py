"""CSV: every raw sample of a run, a line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from linkgauge.model.result import Run


def _samples(run: Run) -> str:
    from linkgauge.report.files import samples_csv

    return samples_csv(run)


FORMAT = Format(
    "csv", "Raw samples on stdout, all else on stderr.", {"run": _samples}, extension=".csv"
)
