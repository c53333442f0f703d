"""Writes comparisons of configurations as JSON and CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linkgauge.judge.compare.configurations import ConfigurationComparison
from linkgauge.judge.compare.run_comparison import RunCell

from .csv_text import csv_text
from .files import json_document

COLUMNS = (
    "accelerator", "label", "figure", "benchmark", "median", "low", "high", "unit", "runs",
    "ratio", "ratio_low", "ratio_high", "simulated",
)  # fmt: skip


def configurations_json(comparisons: Sequence[ConfigurationComparison]) -> str:
    """Returns the comparisons of all accelerators as one JSON document."""
    named = list(map(_named, comparisons))
    return json_document({"schema": "linkgauge.comparison/1", "comparisons": named})


def _named(one: ConfigurationComparison) -> dict[str, object]:
    """Returns a comparison as a JSON object: its configurations, the figures of each compared cell,
    and the facts that differ."""
    return {
        "accelerator": one.accelerator,
        "configurations": [{"label": side.name, "runs": side.runs} for side in one.found.sides],
        "compared": [
            {
                "name": aspect.name, "of": aspect.of, "benchmark": cell.benchmark,
                "unit": cell.unit, "better": cell.better,
                "figures": [_figure(cell, at) for at in range(len(cell.sides))],
            }
            for aspect, cell in one.aspects.items()
        ],
        "facts": one.facts,
        "simulated": one.found.simulated,
    }  # fmt: skip


def _figure(cell: RunCell, at: int) -> dict[str, object] | None:
    side, ratio = cell.sides[at], cell.ratio(at)
    if side is None or side.figure is None:
        return None
    by = cell.changes[at - 1].change if at else None
    against = {"ratio": ratio, "low": by and by.low, "high": by and by.high, "p": by and by.holm}
    return {
        "median": side.figure, "low": side.low, "high": side.high, "runs": side.runs,
        "against": against if ratio is not None else None,
    }  # fmt: skip


def configurations_csv(comparisons: Sequence[ConfigurationComparison]) -> str:
    """Returns the comparisons as CSV, with a line for each label and figure, in base units."""
    return csv_text((COLUMNS, *(row for one in comparisons for row in _rows(one))))


def _rows(one: ConfigurationComparison) -> Iterator[tuple[object, ...]]:
    for aspect, cell in one.aspects.items():
        for at, (name, side) in enumerate(zip(one.found.sides, cell.sides, strict=True)):
            if side is not None and side.figure is not None:
                by = cell.changes[at - 1].change if at else None
                yield (
                    one.accelerator, name.name, aspect.name, cell.benchmark,
                    side.figure, side.low, side.high, cell.unit, side.runs,
                    cell.ratio(at), by and by.low, by and by.high, one.found.simulated,
                )  # fmt: skip
