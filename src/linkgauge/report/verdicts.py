"""The verdict on several cells in a word or two: never better than the worst of them, and a cell
that is not judged is not ok."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from linkgauge.model.result import CellResult, Result, Run, Status, Verdict

from .expectations import HELD, held_below

_WORST_FIRST: tuple[Status | Verdict, ...] = ("error", "timeout", "fail", "low", "high")


class Word(NamedTuple):
    """What to say, and what it stands for: `part` where some cells are judged and others are not,
    `held` where all are ok on links that run below their best."""

    text: str
    kind: Status | Verdict | Literal["part", "held"]


def is_judged(cell: CellResult) -> bool:
    return cell.status == "pass" and cell.verdict != "unknown"


def is_unjudged(cell: CellResult) -> bool:
    return cell.status == "pass" and cell.verdict == "unknown"


class Judged(NamedTuple):
    """How many figures were measured, how many of them are held against something, and how many of
    these against equal cells of the run alone."""

    measured: int
    judged: int
    as_peers: int


def judged_of(run: Run) -> Judged:
    passed = [cell for result in run.results for cell in result.cells if cell.status == "pass"]
    as_peers = sum(cell.is_as_peers for cell in passed)
    return Judged(len(passed), sum(map(is_judged, passed)), as_peers)


def word_of(results: Iterable[Result], cells: Sequence[CellResult]) -> Word | None:
    """Of these cells of the results, and of results without cells; None where none is judged."""
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
    return Word(f"ok{HELD}", "held") if any(map(held_below, passed)) else Word("ok", "ok")


def nothing_wrong(run: Run) -> Word:
    """Of a run without any failure. Nothing measured is not well, and nor is what nothing was held
    against."""
    known = judged_of(run)
    if not known.measured:
        return Word("nothing was measured", "skip")
    if not known.judged:
        return Word("no figure has a reference", "unknown")
    of = f" in the {known.judged} of {known.measured} figures that have a reference"
    found = "nothing wrong was found" + (of if known.judged < known.measured else "")
    if run.finished is None:
        found += " before it was interrupted"
    if known.as_peers:
        found += f"; {known.as_peers} figures are held against equal cells of this run alone"
    return Word(found, "ok")
