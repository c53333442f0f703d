"""Shows all figures, with remarks. The form of a result is a table or a matrix, for example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from linkgauge.model.documents.result import Result, Run
from linkgauge.registry import loaded
from linkgauge.report.blocks import Block, Heat, Line, Prose, Span, line, plain
from linkgauge.report.forms import (
    MOST_COLUMNS,
    Form,
    Large,
    form_of,
    has_figures,
    is_large,
    together,
)
from linkgauge.report.words.remarks import below_lines

from . import OneRun, Section

MOST_LINES = 8
MOST_PLACES, FEW_PLACES = 50_000, 8_000
"""The most cells of all large matrices of a page, and of a small page."""
FEW_LINES = 4
WHOLE = "--all shows the whole"
SHADES = (
    "Green: as expected; amber: below (▼), limited by slow links (↓) or far from peers (▽ △);"
    " red: below half (▼▼); blue: not judged, darker for larger figures."
)
LESS = (
    f"Matrices of more than {MOST_COLUMNS} rows are reduced to their ends and what stands out, "
    "since this page has no room for more: linkgauge show --all shows them whole."
)
EQUIVALENT = (
    "Large matrices whose figures are much the same: linkgauge show --all shows them whole."
)
_OF_PAGE: tuple[Large, ...] = ("uniform", "reduced")


def blocks(run: Run, large: Large = "summary") -> Iterator[Block]:
    for number, (form, results) in enumerate(together(run.results, large)):
        yield from blocks_of(ResultView(form, results, run, large, f"b{number}"))


def blocks_of(view: ResultView) -> Iterator[Block]:
    yield from loaded(f"{__package__}.{_FORMS[view.form]}")(view)


def anchors(judged: OneRun) -> Iterator[tuple[str, Result]]:
    for number, (_, results) in enumerate(together(judged.run.results, large_of(judged))):
        yield from ((f"b{number}", result) for result in results)


def large_of(judged: OneRun) -> Large:
    most = FEW_PLACES if judged.is_small else MOST_PLACES
    large = [one for one in judged.run.results if has_figures(one) and is_large(one)]
    if sum(len(one.cells) for one in large) <= most:
        return "uniform"
    places = sum(len(one.cells) for one in large if form_of(one, "uniform") == "matrix")
    return "uniform" if places <= most else "reduced"


class ResultView(NamedTuple):
    form: Form
    results: Sequence[Result]
    run: Run
    large: Large = "whole"
    anchor: str = ""

    @property
    def first(self) -> Result:
        return self.results[0]

    def below(self, *more: Line | None) -> tuple[Line, ...]:
        is_named = self.form in ("rows", "transfers")
        lines = [*below_lines(self.results, named=is_named)]
        lines += self._fits() if self.run.lines else ()
        if self.large in _OF_PAGE and len(lines) > MOST_LINES:
            rest = f"and {len(lines) - MOST_LINES} more remarks"
            lines = [*lines[:MOST_LINES], plain(rest, "dim")]
        return (*filter(None, more), *lines)

    def _fits(self) -> Iterator[Line]:
        names = dict.fromkeys((one.benchmark, one.backend) for one in self.results)
        for own in names:
            lines = [one for one in self.run.lines if (one.benchmark, one.backend) == own]
            several, most = (f"{own[0]}: ", 1) if len(names) > 1 else ("", FEW_LINES)
            if lines:
                from linkgauge.report.words.size_lines import line_lines

                yield from (line(Span(several, "dim"), *fit) for fit in line_lines(lines, most))


_FORMS: dict[Form, str] = {
    "rows": "cells:rows",
    "transfers": "cells:transfers",
    "columns": "heats:columns",
    "matrix": "heats:matrix",
    "many": "many:blocks_of_many",
    "summary": "many:summary",
    "sizes": "heats:sizes",
    "levels": "sizes:levels",
    "collectives": "cells:collectives",
}
"""The file and the function that shows each form, which is loaded only when it is used."""


def _of_page(one: OneRun) -> Iterator[Block]:
    large = large_of(one)
    found = list(blocks(one.run, large))
    if large == "reduced":
        yield Prose((plain(LESS),))
    if any(isinstance(block, Heat) for block in found):
        yield Prose((plain(SHADES, "dim"),))
    yield from found


SECTION = Section("figures", "All figures", 30, of_run=_of_page)
