"""Cells as the search for a cause sees them, and the search: which part do the bad ones share?"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache

import msgspec

from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import Transfer

from .findings import Evidence
from .wiring import Touched, Wiring


class Case(msgspec.Struct, frozen=True, eq=False):
    """A cell with the `number` it has in the whole run, what it touches and, of a bandwidth of one
    transfer or a latency, the `peers` that it should be equal to."""

    number: int
    result: Result
    cell: CellResult
    touched: frozenset[str]
    peers: tuple[str, ...] | None

    @property
    def name(self) -> str:
        return f"{self.result.benchmark} ({self.cell.row}, {self.cell.column})"

    @property
    def times(self) -> tuple[float, ...]:
        """Samples as times of the same work: of a bandwidth, its reciprocals."""
        if self.result.better == "lower":
            return self.cell.samples
        return tuple(1 / sample for sample in self.cell.samples if sample > 0)


LARGE = 256 << 20
"""Bytes from which the start of a copy takes no visible part: figures of larger sizes are equal."""


@lru_cache(maxsize=2)
def cases_of(evidence: Evidence) -> tuple[Case, ...]:
    """Every cell of the run, skipped ones left out. All checks of the same evidence share them."""
    wiring = Wiring(evidence)
    found: list[Case] = []
    number = -1
    for result in evidence.results:
        for cell in result.cells:
            number += 1
            if cell.status == "skip":
                continue
            transfers = cell.transfers
            touched = [wiring.touched(transfer) for transfer in transfers]
            parts = frozenset[str]().union(*(each.parts for each in touched))
            shared = evidence.together and _is_pair(transfers)
            peers = None if result.sweep or shared else _peers(result, cell, transfers, touched)
            found.append(Case(number, result, cell, parts, peers))
    return tuple(found)


def _is_pair(transfers: Sequence[Transfer]) -> bool:
    places = {memory.place for transfer in transfers for memory in transfer.memories}
    return len(places) == 2 and all(place.is_device for place in places)


def _peers(
    result: Result, cell: CellResult, transfers: Sequence[Transfer], touched: Sequence[Touched]
) -> tuple[str, ...] | None:
    if len(transfers) != 1 or transfers[0].both_ways:
        return None
    size = "large" if result.size >= LARGE else str(result.size)
    return (result.benchmark, result.backend, size, cell.definition or "", *touched[0].kinds)


class Blame(msgspec.Struct, frozen=True):
    """The part that explains best, and others that explain as well (they touch the same cells)."""

    part: str
    others: tuple[str, ...]

    @property
    def doubt(self) -> str:
        return f" (or {', '.join(self.others)}: no cell tells them apart)" if self.others else ""


def blame(
    cases: Iterable[Case], loss: Callable[[str], float], candidates: Iterable[str]
) -> Blame | None:
    """The candidate of the least `loss`; of several that touch the same cells, the device, then
    the link that joins two, then the rest."""
    cases = tuple(cases)
    ranked = sorted((loss(part), _rank(part), part) for part in set(candidates))
    if not ranked or ranked[0][0] == math.inf:
        return None
    least = ranked[0][0]
    best = min((rank, part) for value, rank, part in ranked if value <= least + 1e-12)[1]
    mine = _numbers(cases, best)
    others = (part for _, _, part in ranked if part != best)
    return Blame(best, tuple(part for part in others if _numbers(cases, part) == mine))


def _numbers(cases: Iterable[Case], part: str) -> frozenset[int]:
    return frozenset(case.number for case in cases if part in case.touched)


def _rank(part: str) -> int:
    """A device, a link of a fabric, a host node, a PCIe link, a host bridge."""
    if part.startswith(("PCIe link", "host bridge")):
        return 3 if part.startswith("PCIe link") else 4
    if "-" in part:
        return 1
    return 2 if part.startswith("host:") else 0


def struck(bad: Sequence[Case], good: Sequence[Case]) -> Blame | None:
    """The part that all bad cells touch and the fewest good ones do."""

    def loss(part: str) -> float:
        missed = sum(part not in case.touched for case in bad)
        spared = sum(part in case.touched for case in good)
        return 10 * missed + spared

    return blame((*bad, *good), loss, suspects(bad))


def suspects(bad: Sequence[Case]) -> list[str]:
    """The parts that at least half of these cells touch: no other can be the cause of most."""
    counts = Counter(part for case in bad for part in case.touched)
    return [part for part, count in counts.items() if 2 * count >= len(bad)]


def named(cases: Iterable[Case]) -> tuple[str, ...]:
    """All of them: what shows them names a few, and says how many more there are."""
    return tuple(case.name for case in cases)
