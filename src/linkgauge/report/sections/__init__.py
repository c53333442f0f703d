"""The registry of a report's sections: each module of this folder is one, registered by its
`SECTION`, and so are those that rooms offer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import NamedTuple

import msgspec

from linkgauge.judge.configurations import Comparison
from linkgauge.report import offered
from linkgauge.report.blocks import Block
from linkgauge.report.formats import loaded
from linkgauge.report.rows import OneRun as OneRun


class SeveralRuns(msgspec.Struct, frozen=True):
    """Runs, and the configurations that they are of, a comparison for each accelerator; the last
    run of each accelerator and label. `left_out` says what could not be read."""

    runs: Sequence[OneRun]
    comparisons: Sequence[Comparison]
    last: Mapping[tuple[str, str], OneRun]
    left_out: Sequence[str] = ()


class Section(NamedTuple):
    """Shows something `of_run` or of several runs, or of both; what has nothing to show is left
    out. Sections stand by their `rank`."""

    name: str
    title: str
    rank: int
    of_run: Callable[[OneRun], Iterable[Block]] | None = None
    of_runs: Callable[[SeveralRuns], Iterable[Block]] | None = None


@cache
def sections() -> tuple[Section, ...]:
    """All sections in their order."""
    modules = (import_module(f"{__name__}.{found.name}") for found in iter_modules(__path__))
    found: list[Section] = [module.SECTION for module in modules if hasattr(module, "SECTION")]
    found += [loaded(place) for places in offered.SECTIONS for place in places()]
    return tuple(sorted(found, key=lambda one: one.rank))
