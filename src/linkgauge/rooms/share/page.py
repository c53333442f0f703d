"""Writes a run for other people: a small page without names, and a card of six lines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from math import ceil
from operator import itemgetter

from linkgauge.model.documents.result import Result, Run
from linkgauge.model.printable import printable
from linkgauge.model.units import format_figure, unit_of
from linkgauge.report.blocks import (
    Page,
    Problem,
    ShownSection,
    Tile,
    Tiles,
    Tone,
    cut,
    plain,
    text_of,
)
from linkgauge.report.forms import has_figures
from linkgauge.report.reading import judged, machine_of, page_of_run
from linkgauge.report.render.drawing import Drawer
from linkgauge.report.render.html import html_of
from linkgauge.report.results import SIMULATED_TILE, label
from linkgauge.report.rows import OneRun
from linkgauge.report.sections import data
from linkgauge.report.sections.notes import reason_lines
from linkgauge.report.sections.verdict import Closing, verdict
from linkgauge.report.words.remedies import Command, RemedyText

from .anonymous import anonymised, shared_texts

MOST_BYTES = 1_000_000
"""The most bytes of a page. Tickets and mail accept pages of this size."""
MOST_LETTERS = 100
_ROOM = MOST_LETTERS - len("verdict: ")
"""The most characters of the text after `verdict: ` in a line of the card."""
_WORDS = 4_000
"""The bytes reserved for the description of files inside the page."""
_STAYS = ("verdict", "machine", "benchmarks", "notes", "bill")
ANONYMOUS = (
    "Anonymised: names of hosts and programs, labels, files, serial numbers and addresses are "
    "replaced. What people and drivers wrote is left out."
)
_KINDS = {
    "host->device": ("host_to_device_memcpy_ce", "host_to_device_memcpy_sm"),
    "device->host": ("device_to_host_memcpy_ce", "device_to_host_memcpy_sm"),
    "device->device": ("device_to_device_memcpy_read_ce", "device_to_device_memcpy_read_sm"),
    "host->host": ("host_to_host_memcpy_copy_cpu", "memory_stream_triad"),
    "in a device": ("device_local_copy", "gpu_bandwidth_best_of"),
}
"""The kinds of figures, the most important first. Of the benchmarks of a kind, the first that a run
has is shown."""
_GRAVE: tuple[Tone, ...] = ("bad", "warn", "simulated", "good")


def shared(run: Run) -> OneRun:
    one = judged(anonymised(run, shared_texts()))
    return OneRun(one.run, one.outcome, is_small=True)


def small_page(one: OneRun) -> bytes:
    """Returns the page as HTML. Attached files follow the sections if there is room."""
    page = page_of_run(one)
    page = page._replace(under=(*page.under, plain(ANONYMOUS, "dim")))
    with Drawer() as drawer:
        return _small(page, one, drawer)


def _small(page: Page, one: OneRun, drawer: Drawer) -> bytes:
    content, gone = _html(page, drawer), ""
    while len(content) > MOST_BYTES - _WORDS:
        last = next((part for part in reversed(page.parts) if part.name not in _STAYS), None)
        if last is None:
            return content
        gone = f"{last.title}, {gone}" if gone else last.title
        parts = tuple(part for part in page.parts if part is not last)
        page = page._replace(parts=parts)
        content = _html(_said(page, gone), drawer)
    room = (MOST_BYTES - _WORDS - len(content)) * 3 // 4  # as text they take a third more
    files = ShownSection("data", data.SECTION.title, tuple(data.attached(one, room)))
    page = page._replace(parts=(*page.parts, files))
    return _html(_said(page, gone) if gone else page, drawer)


def _said(page: Page, gone: str) -> Page:
    text = f"This page has no room for {gone}: linkgauge report shows all."
    return page._replace(under=(*page.under, plain(text)))


def _html(page: Page, drawer: Drawer) -> bytes:
    return html_of(page, drawer).encode("utf-8", "replace")


def card(one: OneRun, file: str, size: int) -> list[str]:
    """Returns six lines about a run. The last names the page's `file` and its `size` in bytes."""
    run = one.run
    found = list(verdict(run, one.outcome, Closing()))
    problem = next((each for each in found if isinstance(each, Problem)), Problem("", "", "", ()))
    tallies = (each for each in found if isinstance(each, Tiles))
    tiles = [tile for each in tallies for tile in each.tiles if tile != SIMULATED_TILE]
    made = f"linkgauge {run.machine.linkgauge}, profile {run.settings.profile}, {run.started[:10]}"
    lines = (
        f"machine: {_machine(run)}",
        f"verdict: {_verdict(one.outcome.word, tiles)}",
        f"figures: {_figures(run)}",
        f"finding: {_finding(problem)}",
        f"not judged: {_not_judged(one, tiles)}",
        f"page: {file} ({ceil(size / 1e5) / 10} MB), {made}",
    )
    return [label(printable(line), MOST_LETTERS) for line in lines]


def _machine(run: Run) -> str:
    simulated = f"SIMULATED {run.machine.simulated}, " if run.simulated else ""
    hosts = len({rank.host for rank in run.machine.ranks})
    return f"{simulated}{f'{hosts} hosts, ' if hosts > 1 else ''}{machine_of(run)}"


def _verdict(word: str, tiles: list[Tile]) -> str:
    first, *rest = (one for one in tiles if not one.name.startswith(("not judged", "more skipped")))
    rest.sort(key=lambda tile: _GRAVE.index(tile.tone) if tile.tone in _GRAVE else len(_GRAVE))
    left = ""
    while len(text := f"{word}; {_counts(first, rest)}{left}") > _ROOM and rest:
        rest.pop()
        left = ", …"
    return text


def _counts(first: Tile, rest: list[Tile]) -> str:
    return text_of(
        Tiles((first, *sorted(rest, key=lambda tile: (not tile.name, tile.separate)))).as_line
    )


def _figures(run: Run) -> str:
    shown = []
    for name, result in _kinds(run):
        figures = [cell.headline for cell in result.cells if cell.headline is not None]
        found = min(figures), max(figures)
        ends = dict.fromkeys(format_figure(each, result.unit) for each in found)
        shown.append((unit_of(result.unit).shown, f"{name} {'-'.join(ends)}"))
    while len(text := "; ".join(_by_unit(shown))) > _ROOM and shown[1:]:
        shown.pop()
    return text or "none"


def _by_unit(shown: list[tuple[str, str]]) -> Iterator[str]:
    for unit, own in groupby(shown, key=itemgetter(0)):
        yield f"{', '.join(text for _, text in own)} {unit}"


def _kinds(run: Run) -> Iterator[tuple[str, Result]]:
    results = sorted(filter(has_figures, run.results), key=lambda result: result.size)
    found = {one.benchmark: one for one in results}
    known = {
        kind: next(found[name] for name in names if name in found)
        for kind, names in _KINDS.items()
        if not found.keys().isdisjoint(names)
    }
    yield from (known or found).items()


def _finding(problem: Problem) -> str:
    """Formats a finding. If it is too long, leaves parts out, then cuts the longest part."""
    if not (problem.severity or problem.tone == "bad"):
        return "none"
    check, _, subject = problem.subject.partition("  ")
    found = [f"{subject}: {text_of(problem.found)}" if subject else text_of(problem.found)]
    said = [f"{name}: {text_of(text)}".replace("  ", " ") for name, text in problem.said[:1]]
    cause = [f"cause: {text.split(': ', 2)[-1]}" for text in said if text.startswith("cause: ")]
    commands = [step.line for step in problem.steps if isinstance(step, Command)]
    prose = [step.text for step in problem.steps if isinstance(step, RemedyText)]
    do = [f"do: {step}" for step in (*commands, *prose)[:1]]
    full = [f"{check} {found[0]}"] if subject else found
    last = [f"{check} {subject}" if subject else found[0], *cause, *do] if cause else [*found, *do]
    for pieces in ([*full, *said, *do], [*full, *cause, *do], [*found, *cause, *do], last):
        if len("; ".join(pieces)) <= _ROOM:
            return "; ".join(pieces)
    while len("; ".join(last)) > _ROOM:
        at = max(range(len(last)), key=lambda number: len(last[number]))
        last[at] = cut(last[at], len(last[at]) - 1)
    return "; ".join(last)


def _not_judged(one: OneRun, tiles: list[Tile]) -> str:
    if not one.outcome.verdict:
        return "all figures"
    counts = {tile.name.partition(" (")[0]: tile for tile in tiles}
    pieces = []
    if (tile := counts.get("not judged")) is not None:
        pieces.append(f"{tile.number} {tile.name.removeprefix('not judged ')}")
    if (tile := counts.get("more skipped")) is not None:
        why = next((text_of(line).partition("  ")[2] for line in reason_lines(one.run)), "")
        pieces.append(f"{tile.number} skipped{f' ({why})' if why else ''}")
    return "; ".join(pieces) or "none"
