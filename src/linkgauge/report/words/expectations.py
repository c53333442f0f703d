"""Makes lines on expected figures and on cells that differ from them, and verdicts on cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Literal, NamedTuple

from linkgauge.model.cell_id import place_of
from linkgauge.model.documents.result import CellResult, NotJudged, Result, Run, Status, Verdict
from linkgauge.model.grouped import grouped
from linkgauge.model.units import format_decimals, unit_of
from linkgauge.report.blocks import TONES, Line, Span, line, plain

from .comparison import compared_with
from .sentences import first_of

MOST = 3
CLEARLY = 0.9
"""A transfer's own share is shown if it is below this part of the total's."""


def reasons_lines(cells: Iterable[tuple[CellResult, str]]) -> Iterator[Line]:
    counts = Counter[str]()
    for cell, unit in cells:
        expected = cell.expected
        if expected is not None and (value := expected.figure) is not None:
            at_most = "at least " if cell.report.is_latency else "at most "
            bound = at_most if expected.achievable is None else ""
            said = f"expected {bound}{format_decimals(value, unit)} {unit_of(unit).shown}"
            counts[f"{said}: {expected.because}"] += 1
    for reason, _ in counts.most_common(MOST):
        yield plain(reason, "dim")
    if len(counts) > MOST:
        yield plain(f"and {len(counts) - MOST} more expectations", "dim")


def beside_lines(results: Sequence[Result], verdict: Verdict) -> Iterator[Line]:
    cells = grouped(
        (against(cell), in_result(results, one, compared(one, cell)))
        for one in results
        for cell in one.cells
        if cell.verdict == verdict and cell.summary
    )
    for reference, own in cells.items():
        each = [*dict.fromkeys(own)]
        named = first_of(each, ", ")
        text = f", as a share of {reference}: {named}" if each[1:] else f" {named} of {reference}"
        yield line(Span(verdict, TONES[verdict]), text)


def against(cell: CellResult) -> str:
    by_peers = cell.expected is not None and cell.expected.peers is not None
    return "what its peers reach" if by_peers else "what is expected"


def in_result(results: Sequence[Result], result: Result, text: str) -> str:
    return f"{result.benchmark} {text}" if are_several(results) else text


def are_several(results: Sequence[Result]) -> bool:
    return len(set(map(attrgetter("benchmark"), results))) > 1


def compared(result: Result, cell: CellResult) -> str:
    """Formats a cell and its share of the expected figure: `host:0 -> sim:3 43%`. Also names a
    transfer of the cell whose share is clearly lower."""
    lowest = lowest_share(cell)
    if lowest is None:
        return place_of(result, cell)
    return f"{place_of(result, cell)}{lowest.whose} {lowest.share:.0%}"


class Lowest(NamedTuple):
    share: float
    figure: float
    whose: str = ""


def lowest_share(cell: CellResult) -> Lowest | None:
    """Returns the cell's share of the expected figure, or that of a transfer if clearly lower."""
    share, figure, expected = cell.reached, cell.headline, cell.expected
    if share is None or figure is None or expected is None:
        return None
    present = cell.share(expected.figure, figure) or share
    own = [
        (part.summary.median / part.expected, part.summary.median, part.transfer)
        for part in cell.parts
        if part.summary is not None and part.expected
    ]
    if own and min(own)[0] < CLEARLY * present:
        lowest, median, number = min(own)
        return Lowest(lowest * share / present, median, f": {cell.transfers[number]}")
    return Lowest(share, figure)


# The verdict on several cells in a word or two: never better than the worst of them, and a cell
# that is not judged is not ok.

_WORST_FIRST: tuple[Status | Verdict, ...] = (
    "error", "timeout", "fail", "low", "degraded", "perhaps low", "waived", "high",
)  # fmt: skip


class Word(NamedTuple):
    """The text of a verdict, and its kind. The kind is `part` if only some cells are judged."""

    text: str
    kind: Status | Verdict | Literal["part"]


def is_judged(cell: CellResult) -> bool:
    return cell.status == "pass" and cell.verdict != "not judged"


class JudgedShare(NamedTuple):
    """Counts of cells: `measured` ones passed, `judged` ones also got a verdict. Of these, `cpus`
    (pairs of CPUs) and `others` were only compared with similar cells of the run."""

    measured: int
    judged: int
    cpus: int
    others: int


def judged_of(run: Run) -> JudgedShare:
    passed = [cell for result in run.results for cell in result.cells if cell.status == "pass"]
    as_peers = [cell for cell in passed if cell.is_as_peers]
    cpus = sum(all(end.space == "cpu" for end in cell.transfers[0].memories) for cell in as_peers)
    return JudgedShare(len(passed), sum(map(is_judged, passed)), cpus, len(as_peers) - cpus)


def word_of(results: Iterable[Result], cells: Sequence[CellResult]) -> Word | None:
    found: set[Status | Verdict] = {one.status for one in results if not one.cells}
    found |= {cell.verdict if cell.status == "pass" else cell.status for cell in cells}
    worst = next((word for word in _WORST_FIRST if word in found), None)
    if worst is not None:
        return Word(worst, worst)
    passed = [cell for cell in cells if cell.status == "pass"]
    if not passed:
        return Word("skip", "skip") if found else None
    unjudged = sum(not is_judged(cell) for cell in passed)
    if unjudged == len(passed):
        return None
    if unjudged:
        return Word(f"{unjudged} of {len(passed)} not judged", "part")
    return Word("ok", "ok")


NOTHING = "nothing was measured"
WHY_NOT: dict[NotJudged | None, tuple[str, str]] = {
    "start": ("transfers too small to judge",
              "transfers this small depend on the time that they take to start"),
    "shared": ("links shared with other transfers",
               "other transfers share the links at the same time"),
    "assumed": ("only assumed facts", "every figure rests on assumed facts"),
}  # fmt: skip
"""What figures without a verdict have, and a sentence on a run in which all have that."""


def nothing_wrong(run: Run, unjudged: str = "", *, is_waived: bool = False) -> str:
    """Says that nothing is wrong (except what `is_waived`), or why the run is `unjudged`."""
    passed = [cell for one in run.results for cell in one.cells if cell.status == "pass"]
    known = judged_of(run)
    if not passed:
        is_bare = bool(run.tool) and not run.results
        return "the texts tell of a machine, but hold no figure" if is_bare else NOTHING
    if unjudged or not known.judged:
        printed = any(cell.expected and cell.expected.figure for cell in passed)
        why = "there is nothing to compare the figures with"
        if printed or compared_with(run):
            why = "only upper limits, or figures of other machines, are known"
        reason, *more = {cell.not_judged for cell in passed}
        own = None if more else WHY_NOT.get(reason)
        return unjudged or (own[1] if own else why)
    found = f"nothing wrong was found{' but what is waived' if is_waived else ''}"
    if run.finished is None:
        found += " before it was interrupted"
    left = known.measured - known.judged
    waived = sum(cell.verdict == "waived" for cell in passed)
    cpus, others = known.cpus, known.others
    both = f"pairs of CPUs{f' and {others:,} others' if others else ''}" if cpus else ""
    counts = {
        "waived": waived,
        "compared with what was calculated": known.judged - cpus - others - waived,
        f"{both} compared only with each other".lstrip(): cpus or others,
        "not judged": left,
    }
    if left or cpus or others:
        parts = (f"{count:,} {what}" for what, count in counts.items() if count)
        found += f"; of {known.measured:,} cells: {', '.join(parts)}"
    return found
