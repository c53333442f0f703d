"""Configurations side by side: a row for each label, and in what their machines differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec
from rich.console import RenderableType
from rich.text import Text

from linkgauge.judge.configurations import Compared, Comparison, Difference, Figure
from linkgauge.model.stats.changes import changed_to
from linkgauge.model.units import unit_of

from .csv_text import csv_text
from .fact_lines import fact_lines
from .figures import finely_signed, with_reach
from .files import json_document
from .run_text import simulated

WIDTH = 13
"""Columns of a figure with its interval, after a blank: `123456 ±0.1%`."""
LABEL = 11
"""Least columns of a label."""
MOST_LABEL = 22
SCHEMA = "linkgauge.comparison/1"
COLUMNS = (
    "accelerator", "label", "figure", "benchmark", "median", "low", "high", "unit", "runs",
    "ratio", "ratio_low", "ratio_high", "simulated",
)  # fmt: skip


def comparison_lines(comparisons: Sequence[Comparison]) -> Iterator[RenderableType]:
    """A table of the host's figures and one of the accelerators' for each accelerator; then what
    differs besides."""
    for number, one in enumerate(comparisons):
        if number:
            yield Text()
        yield from _lines(one)


def _lines(one: Comparison) -> Iterator[RenderableType]:
    labels = [configuration.label for configuration in one.configurations]
    count = f"{len(labels)} configuration{'' if len(labels) == 1 else 's'}"
    against = f" against {labels[0]}" if len(labels) > 1 else ""
    title = Text.assemble((one.accelerator, "bold"), f": {count}{against}")
    yield title.append("  ").append(simulated()) if one.simulated else title
    tables = [
        list(_table(labels, [compared for compared in one.compared if compared.of == of]))
        for of in dict.fromkeys(compared.of for compared in one.compared)
    ]
    for table in tables:
        yield from table
    if one.compared:
        doubt = "; a difference in (…) is not significant" if len(labels) > 1 else ""
        yield Text(f"±: the wider half of the 95% interval{doubt}", "dim")
    if one.facts or len(labels) > 1:
        yield from fact_lines(one.facts, labels)


def _table(labels: Sequence[str], compared: Sequence[Compared]) -> Iterator[Text]:
    """Two lines of headings; a line for each label, and below it the differences."""
    room = min(MOST_LABEL, max(LABEL, *(len(label) for label in labels)))
    for words in (
        [one.name for one in compared],
        [unit_of(one.unit).shown for one in compared],
    ):
        yield Text(" " * room + "".join(f"{word:>{WIDTH}}" for word in words), "cyan")
    for at, label in enumerate(labels):
        figures = [one.figures[at] for one in compared]
        line = Text(f"{_short(label, room):<{room}}", "bold")
        yield line.append("".join(f"{shown(*one):>{WIDTH}}" for one in _zip(compared, figures)))
        if any(figure is not None and figure.against is not None for figure in figures):
            yield _differences(compared, figures, room)


def _short(text: str | None, room: int) -> str:
    text = text or "unknown"
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _zip(
    compared: Sequence[Compared], figures: Sequence[Figure | None]
) -> Iterator[tuple[Compared, Figure | None]]:
    return zip(compared, figures, strict=True)


def shown(compared: Compared, figure: Figure | None) -> str:
    """A figure with its interval; `-` if it was not measured."""
    if figure is None:
        return "-"
    return with_reach(figure.median, figure.low, figure.high, compared.unit)


def _differences(compared: Sequence[Compared], figures: Sequence[Figure | None], room: int) -> Text:
    line = Text(" " * room)
    for one, figure in _zip(compared, figures):
        against = figure.against if figure is not None else None
        line.append(f"{_difference(against):>{WIDTH}}", _style(one, against))
    return line


def _difference(against: Difference | None) -> str:
    if against is None:
        return ""
    text = finely_signed(against.ratio)
    return text if against.is_proven else f"({text})"


def _style(compared: Compared, against: Difference | None) -> str:
    if against is None or not against.is_proven:
        return "dim"
    return "green" if changed_to(against.ratio, compared.better) == "better" else "red"


def comparison_document(comparisons: Sequence[Comparison]) -> str:
    """One JSON document of all accelerators."""
    named = [msgspec.to_builtins(one) for one in comparisons]
    return json_document({"schema": SCHEMA, "comparisons": named})


def comparison_csv(comparisons: Sequence[Comparison]) -> str:
    """A line for each label and figure, in the unit of data."""
    return csv_text((COLUMNS, *(row for one in comparisons for row in _csv_rows(one))))


def _csv_rows(one: Comparison) -> Iterator[tuple[object, ...]]:
    for compared in one.compared:
        for configuration, figure in zip(one.configurations, compared.figures, strict=True):
            if figure is not None:
                by = figure.against
                yield (
                    one.accelerator, configuration.label, compared.name, compared.benchmark,
                    figure.median, figure.low, figure.high, compared.unit, figure.runs,
                    *((by.ratio, by.low, by.high) if by else (None,) * 3), one.simulated,
                )  # fmt: skip
