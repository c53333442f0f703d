"""JSON: of a run, the document of docs/run.schema.json."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import Format

if TYPE_CHECKING:
    from linkgauge.benchmarks.table import Row, Sweep
    from linkgauge.report.doctor import Diagnosis


def _document(value: object) -> str:
    from linkgauge.report.files import json_document

    return json_document(value)


def _findings(diagnosis: Diagnosis) -> str:
    from linkgauge.report.doctor import findings_document

    return findings_document(diagnosis.findings)


def _benchmarks(rows: Sequence[Row | Sweep]) -> str:
    return _document(
        [{"name": row.name, "title": row.title, "profiles": row.profiles} for row in rows]
    )


FORMAT = Format(
    "json",
    "The document on stdout, all else on stderr.",
    {
        "run": _document,
        "plan": _document,
        "machine": _document,
        "findings": _findings,
        "benchmarks": _benchmarks,
    },
    extension=".json",
)
