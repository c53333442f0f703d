"""Counts the cells of a run: how many were measured, and how many have each verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from linkgauge.judge.outcome import Outcome
from linkgauge.model.documents.result import CellResult, NotJudged, Run
from linkgauge.report.blocks import TONES, Tile, Tone
from linkgauge.report.forms import cells_of
from linkgauge.report.results import SIMULATED_TILE
from linkgauge.report.words.expectations import judged_of
from linkgauge.report.words.groups import SEVERITIES
from linkgauge.report.words.worst import BROKEN

_WHY_NOT: dict[NotJudged, str] = {
    "start": "too small",
    "shared": "links in use by others",
    "assumed": "rests on assumed facts",
}
_NO_REFERENCE = "no reference"


def tally(run: Run, outcome: Outcome) -> Iterator[Tile]:
    """Yields the number of measured cells, and the number of cells with each verdict."""
    statuses = Counter(cell.status for _, cell in cells_of(run.results))
    measured = statuses["pass"] + statuses["fail"]
    yield Tile(f"{measured:,}" if measured else "nothing", "measured")
    if outcome.verdict and measured:
        yield from _judged(run)
    skipped = statuses["skip"] + sum(not result.cells for result in run.results)
    severities = Counter(one.severity for one in outcome.findings if outcome.verdict)
    counts: list[tuple[int, str, Tone]] = [
        *((statuses[status], status, "bad") for status in BROKEN),
        (skipped, "skipped", "dim"),
        *(
            (count, f"{severity} {'finding' if count == 1 else 'findings'}", tone)
            for severity, tone in SEVERITIES.items()
            if (count := severities[severity])
        ),
    ]
    yield from _counted(counts)
    if run.finished is None:
        yield Tile("interrupted", "", "warn")
    if run.simulated:
        yield SIMULATED_TILE


def _counted(counts: Iterable[tuple[int, str, Tone]]) -> Iterator[Tile]:
    yield from (Tile(f"{count:,}", name, tone) for count, name, tone in counts if count)


def _judged(run: Run) -> Iterator[Tile]:
    """Yields the number of cells with each verdict."""
    passed = [cell for _, cell in cells_of(run.results) if cell.status == "pass"]
    verdicts = Counter(cell.verdict for cell in passed)
    known = judged_of(run)
    well, low = verdicts["ok"] - known.cpus - known.others, verdicts["low"]
    yield Tile(f"{well:,}", "ok", "good" if well else "dim")
    degraded = verdicts["degraded"], "degraded by links below their best", TONES["degraded"]
    peers = "as fast as their peers"
    pairs = known.cpus, f"pairs of CPUs {peers}", TONES["ok"]
    yield from _counted([degraded, pairs, (known.others, peers, TONES["ok"])])
    yield Tile(f"{low:,}", "low", "warn" if low else "dim")
    why = f"not judged ({_why_not(passed)})" if verdicts["not judged"] else ""
    yield from _counted([
        (verdicts["perhaps low"], "perhaps low", "warn"), (verdicts["high"], "high", "simulated"),
        (verdicts["not judged"], why, "dim"),
    ])  # fmt: skip


def _why_not(passed: Sequence[CellResult]) -> str:
    """Returns the reasons why cells are not judged, such as `no reference`, or `3 too small, 2 no
    reference`."""
    cells = [cell for cell in passed if cell.verdict == "not judged"]
    counts = Counter(_WHY_NOT.get(cell.not_judged or "path", _NO_REFERENCE) for cell in cells)
    if len(counts) == 1:
        return next(iter(counts))
    return ", ".join(f"{count} {why}" for why, count in counts.most_common())
