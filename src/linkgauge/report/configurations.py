"""Configurations compared, as programs read them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.judge.configurations import Comparison

from .csv_text import csv_text
from .files import json_document

COLUMNS = (
    "accelerator", "label", "figure", "benchmark", "median", "low", "high", "unit", "runs",
    "ratio", "ratio_low", "ratio_high", "simulated",
)  # fmt: skip


def configurations_json(comparisons: Sequence[Comparison]) -> str:
    """One document of all accelerators."""
    named = [msgspec.to_builtins(one) for one in comparisons]
    return json_document({"schema": "linkgauge.comparison/1", "comparisons": named})


def configurations_csv(comparisons: Sequence[Comparison]) -> str:
    """A line for each label and figure, in the unit of data."""
    return csv_text((COLUMNS, *(row for one in comparisons for row in _rows(one))))


def _rows(one: Comparison) -> Iterator[tuple[object, ...]]:
    for compared in one.compared:
        for configuration, figure in zip(one.configurations, compared.figures, strict=True):
            if figure is not None:
                by = figure.against
                yield (
                    one.accelerator, configuration.label, compared.name, compared.benchmark,
                    figure.median, figure.low, figure.high, compared.unit, figure.runs,
                    *((by.ratio, by.low, by.high) if by else (None,) * 3), one.simulated,
                )  # fmt: skip
