"""Lists a report's sections, from modules of this folder and from optional features (rooms)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from operator import attrgetter
from pkgutil import iter_modules
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from linkgauge.hooks import Hook, expect
from linkgauge.registry import listed, plugins
from linkgauge.report.rows import OneRun as OneRun

if TYPE_CHECKING:
    from linkgauge.judge.compare.configurations import ConfigurationComparison
    from linkgauge.model.documents.result import Result
    from linkgauge.report.blocks import Block, Line


class SeveralRuns(msgspec.Struct, frozen=True):
    """Runs of a report. `last` is by accelerator and label. `left_out` has messages on others."""

    runs: Sequence[OneRun]
    comparisons: Sequence[ConfigurationComparison]
    last: Mapping[tuple[str, str], OneRun]
    left_out: Sequence[str] = ()


class Section(NamedTuple):
    """A section of a report. `of_run` shows one run, `of_runs` several. `on_screen` is true if a
    terminal also shows the section, below the figures. `below` makes lines below a result,
    with details if its second argument is true."""

    name: str
    title: str
    rank: int
    of_run: Callable[[OneRun], Iterable[Block]] | None = None
    of_runs: Callable[[SeveralRuns], Iterable[Block]] | None = None
    on_screen: bool = False
    below: Callable[[Result, bool], Iterable[Line]] | None = None


@cache
def of_rooms() -> tuple[Section, ...]:
    added = any(plugin.room.sections for plugin in plugins())
    return listed("sections", _of_plugin, {one.name for one in _own()} if added else set())


def _of_plugin(section: Any, hook: Hook) -> Section:
    own: Section = expect(section, Section)
    for value, kinds in zip(section, (str, str, int | float), strict=False):
        expect(value, kinds)
    return own._replace(
        of_run=own.of_run and _guarded(own.of_run, hook),
        of_runs=own.of_runs and _guarded(own.of_runs, hook),
        below=own.below and _guarded(own.below, hook, is_line=True),
    )


def _guarded(
    makes: Callable[..., Iterable[Any]], hook: Hook, *, is_line: bool = False
) -> Callable[..., Iterable[Any]]:
    """Wraps a plug-in's function, so that blocks that cannot be shown do not break a page."""
    from linkgauge.report.blocks import Block, Prose
    from linkgauge.report.render.markdown import as_markdown
    from linkgauge.report.render.terminal import shown

    def try_to_show(made: Any) -> None:
        block = Prose([made]) if is_line else made
        as_markdown("", [block])
        list(shown([block]))

    kinds = tuple if is_line else Block
    return lambda *asked: hook.items(lambda: makes(*asked), kinds, try_to_show)


@cache
def sections() -> tuple[Section, ...]:
    return tuple(sorted((*_own(), *of_rooms()), key=attrgetter("rank")))


def _own() -> Iterator[Section]:
    for found in iter_modules(__path__):
        module = import_module(f"{__name__}.{found.name}")
        yield from (one for one in vars(module).values() if isinstance(one, Section))
