"""Exports of a run as text that programs read: its cells, or its raw samples, as CSV and JSON."""

from __future__ import annotations

from collections.abc import Iterable

from . import files
from .csv_text import csv_text
from .files import json_document
from .rows import CellRow, JudgedRun, cell_rows, sample_rows

SUMMARY = "linkgauge.summary/1"
SAMPLES = "linkgauge.samples/1"


def summary_csv(judged: JudgedRun) -> str:
    """A line for each cell."""
    names = CellRow.__struct_fields__
    rows = ([getattr(row, name) for name in names] for row in cell_rows(judged.run))
    return csv_text([names, *rows])


def samples_csv(judged: JudgedRun) -> str:
    """A line for each sample: the file samples.csv of a run."""
    return files.samples_csv(judged.run)


def summary_json(judged: JudgedRun) -> str:
    """A document with an object for each cell, and what the doctor found."""
    found = {"findings": judged.outcome.findings, "exit_code": judged.outcome.code}
    return _document(judged, SUMMARY, "cells", cell_rows(judged.run), **found)


def samples_json(judged: JudgedRun) -> str:
    """A document with an object for each sample."""
    rows = (row._asdict() for row in sample_rows(judged.run))
    return _document(judged, SAMPLES, "samples", rows)


def _document(
    judged: JudgedRun, schema: str, name: str, rows: Iterable[object], **more: object
) -> str:
    run = judged.run
    head = {"run": run.id, "label": run.label, "started": run.started, "finished": run.finished}
    head["simulated"] = run.machine.simulated
    return json_document({"schema": schema, **head, **more, name: list(rows)})
