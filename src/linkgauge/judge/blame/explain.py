"""Finds the fewest parts that explain most losses of a table. A blamed part is slower by a constant
factor, in all cells or from one cell on, or gets slower with each cell. The error of an explanation
is the sum of squared logarithms of unexplained losses. Losses may also describe how much samples
vary or stall."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from operator import attrgetter

import msgspec

from linkgauge.model.errors import PHASES, Phase
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part

from .cases import Case
from .causes import Blame, fewest, suspects
from .excess import weighted_median
from .limits import LEAST_LOSS, MOST_TRIED, PART, SLOW, SPARED
from .table import Row, onset


class Suspect(msgspec.Struct, frozen=True):
    """A part that is slow from cell number `since` on or, if it `drifts`, slower with each cell."""

    part: Part
    since: int = 0
    drifts: bool = False

    def has(self, case: Case) -> bool:
        return self.part in case.touched and case.number >= self.since


Suspects = tuple[Suspect, ...]


class Fit(msgspec.Struct, frozen=True):
    """How well suspects explain the losses. `levels` holds each suspect's loss as a logarithm; if a
    suspect drifts, its loss for each cell."""

    unexplained: float
    cost: float
    levels: dict[Suspect, float]


def without(suspect: Suspect, chosen: Suspects) -> Suspects:
    at = chosen.index(suspect)
    return chosen[:at] + chosen[at + 1 :]


class Search:
    """Searches for parts to blame. Parts that counted errors (`seen`) cost less to blame."""

    def __init__(
        self, rows: Sequence[Row], parts: Mapping[Part, Blame], seen: frozenset[Part] = frozenset(),
        *, ordered: bool = True, drifts: bool = True,
    ) -> None:  # fmt: skip
        self._seen = seen
        self._sizes = Counter(map(attrgetter("peers"), rows))
        self._well: dict[Hashable, list[Row]] = {}
        self._nothing = 0.0
        used = map(attrgetter("parts"), filter(attrgetter("slow"), rows))
        slow = frozenset[Part]().union(*used) & parts.keys()
        self.touching: dict[Part, list[Row]] = {part: [] for part in parts if part in slow}
        explained = dict.fromkeys(self.touching, 0.0)
        for row in rows:
            loss = row.weight * row.lost**2
            self._nothing += loss
            if not row.slow:
                self._well.setdefault(row.peers, []).append(row)
            for part in slow & row.parts:
                self.touching[part].append(row)
                explained[part] += loss if row.slow else -SPARED
        self._steps = cache(self._find_steps)
        self._fit = cache(self._find_fit)
        likely = sorted(explained, key=explained.__getitem__, reverse=True)
        self.candidates = [
            suspect for part in likely[:MOST_TRIED]
            for suspect in _ways_to_be_slow(part, self.touching[part])
            if ordered or not (suspect.drifts or suspect.since)
            if drifts or not suspect.drifts
        ]  # fmt: skip
        self._places = {one: place for place, one in enumerate(self.candidates)}
        self.chosen: Suspects = fewest(self.candidates, self.loss)
        self.best = self.fit(self.chosen)

    def as_good(self, suspect: Suspect, more: float = PART) -> list[Part]:
        """Returns the parts that explain as much as `suspect` at an extra cost below `more`."""
        rest, parts = without(suspect, self.chosen), set(map(attrgetter("part"), self.chosen))
        best, found = self.best, list[Part]()
        for one in self.candidates:
            if one.part not in parts:
                fit = self.fit((*rest, one))
                is_near = abs(fit.unexplained - best.unexplained) < SPARED / 4
                if is_near and fit.cost < best.cost + more:
                    found.append(one.part)
        return found

    def loss(self, suspects: Suspects) -> float:
        fit = self.fit(suspects)
        return fit.unexplained + fit.cost

    def fit(self, suspects: Suspects) -> Fit:
        return self._fit(tuple(sorted(suspects, key=self._places.__getitem__)))

    def _find_fit(self, suspects: Suspects) -> Fit:
        affected: dict[Row, dict[Suspect, float]] = {}
        for suspect in suspects:
            for row, steps in self._steps(suspect).items():
                affected.setdefault(row, {})[suspect] = steps
        found, levels = dict[Suspect, dict[Hashable, float]](), dict[Suspect, float]()
        parts, cost = set[Part](), 0.0
        for one in suspects:
            of = found[one] = self._levels(one, affected)
            level = levels[one] = statistics.median(of.values()) if of else 0.0
            most = max(self._steps(one).values(), default=0) if level else 0
            if one.part in parts or level * most > math.log1p(-LEAST_LOSS):
                return Fit(math.inf, 0.0, levels)
            parts.add(one.part)
            is_seen, is_late = one.part in self._seen, bool(one.since or one.drifts)
            cost += PART * (1 - is_seen / 2 + is_late / 2)
        left = self._nothing
        for row, by in affected.items():
            own, is_usual, sure = list[float](), False, math.inf
            for one, steps in by.items():
                own.append(steps * found[one].get(row.peers, levels[one]))
                is_usual |= row.peers in found[one]
                # How much a drift costs by then is less sure.
                sure = PART if one.drifts else sure
            # The loss may be in the range that the suspects explain. An expected figure may be a
            # tenth too high.
            unsure = math.log(SLOW) if row.low else 0.0
            least = max(sum(own) + unsure - row.lost, row.lost - min(own), 0.0) ** 2
            # Another part may be the bottleneck of this cell, but hardly if not of its equals.
            is_odd = is_usual and not row.slow and row.off <= -min(own)
            least = min(least, row.lost**2 + (sure if is_odd else SPARED))
            left += row.weight * (least - row.lost**2)
        return Fit(left, cost, levels)

    def _find_steps(self, suspect: Suspect) -> dict[Row, float]:
        since = [row for row in self.touching[suspect.part] if row.number >= suspect.since]
        if not suspect.drifts:
            # What some cells of a class show counts against a part that all of them use.
            mixed = {row.peers for row in since if row.slow}
            own = [row for row in since if row.peers in mixed or self._tells(suspect, row)]
            return dict.fromkeys(own, 1)
        down = grouped((row.peers, row) for row in since if row.lost < math.log1p(-LEAST_LOSS))
        # Each cell and the one that is half of its class later; ends alone may be noisy.
        lines = [((late.lost - early.lost) / step, step * min(early.weight, late.weight))
                 for own in down.values()
                 for early, late in zip(own, own[(len(own) + 1) // 2 :], strict=False)
                 if (step := late.number - early.number)]  # fmt: skip
        fall = min(weighted_median(lines), 0.0) if lines else 0.0
        # What else bounds a class hides its loss at first: each loss says where its line begins.
        starts = {peers: statistics.median(row.number - row.lost / fall for row in own)
                  for peers, own in down.items() if fall and own[1:]}  # fmt: skip
        begin: dict[Hashable, float] = {}
        for peers, own in grouped((row.peers, row) for row in since).items():
            # What all peers share slows their fastest, too: it is the first of them.
            is_shared = len(own) == self._sizes[peers] and not own[0].low
            first = own[0].number if is_shared else suspect.since
            begin[peers] = max(first, starts.get(peers, min(starts.values(), default=first)))
        return {row: max(0.0, row.number - begin[row.peers]) for row in since}

    def _tells(self, suspect: Suspect, row: Row) -> bool:
        return row.low or any(
            suspect.part not in peer.parts or peer.number < suspect.since
            for peer in self._well.get(row.peers, ())
        )

    def _levels(
        self, suspect: Suspect, affected: Mapping[Row, Mapping[Suspect, float]]
    ) -> dict[Hashable, float]:
        """Returns a suspect's loss (a logarithm) by class, equal in classes that hardly differ."""
        slow = [row for row in self._steps(suspect)
                if row.slow and (suspect.drifts or self._tells(suspect, row))]  # fmt: skip
        alone = [row for row in slow if len(affected[row]) == 1] or slow
        values = [(row.peers, (row.lost / (affected[row][suspect] or 1),
                               row.weight * affected[row][suspect])) for row in alone]  # fmt: skip
        whole = weighted_median([value for _, value in values]) if values else 0.0
        levels: dict[Hashable, float] = {}
        for peers, some in grouped(values).items():
            own = 0.0 if suspect.drifts else weighted_median(some)
            gain = sum(weight * ((one - whole) ** 2 - (one - own) ** 2) for one, weight in some)
            levels[peers] = own if gain > SPARED else whole
        return levels


def _ways_to_be_slow(part: Part, touching: Sequence[Row]) -> Iterator[Suspect]:
    yield Suspect(part)
    slow = [row for row in touching if row.slow]
    kinds, ways = {row.peers for row in slow}, {row.parts for row in slow}
    # Only a cell of the same kind or over the same parts shows that the part was well before.
    well = [row.number for row in touching
            if not row.slow and (row.peers in kinds or row.parts in ways)]  # fmt: skip
    begun = [row.number for row in slow if well and row.number > well[0]]
    most = onset(touching, [-row.relative for row in touching])
    first = {number for number in (most, *begun[:1]) if number in begun}
    # Cells of other kinds since the last that was well may be slow, too.
    for since in first | {1 + max(n for n in well if n < number) for number in first}:
        yield Suspect(part, since)
    for own in (slow, *grouped(((row.peers, row.parts), row) for row in slow).values()):
        if own[-1].relative < own[0].relative + math.log1p(-LEAST_LOSS / 3):
            yield Suspect(part, drifts=True)
            return


def causes(
    bad: Sequence[Case],
    good: Sequence[Case],
    *,
    stays: bool = False,
    seen: frozenset[Part] = frozenset(),
) -> tuple[list[tuple[Blame, list[Case]]], list[Case]]:
    """Returns the fewest parts that explain the bad cells, each with its cells, and the bad cells
    that remain. All cells of a part must fail in the same phase, unless the part `stays` bad: then
    good cells after its first bad cell speak strongly against it."""
    clear = math.sqrt(2 * PART)
    ended: dict[Phase | None, list[Case]]
    ended = {None: [*bad]} if stays else grouped((case.cell.phase, case) for case in bad)
    blamed: dict[Part, Blame] = {}
    found: list[tuple[Part, Case]] = []
    for phase, own in ended.items():
        past = (None, *(PHASES[PHASES.index(phase) + 1 :] if phase else ()))
        well = [case for case in (*good, *bad) if case not in own and case.cell.phase in past]
        rows = [
            Row(case=case, peers=None, lost=-clear * is_bad, relative=-clear * is_bad, slow=is_bad,
                low=True, off=math.inf, weight=4.0 if stays and not is_bad else 1.0)
            for is_bad, some in ((True, own), (False, well)) for case in some
        ]  # fmt: skip
        rows.sort(key=lambda row: row.number)
        blames = suspects(rows, seen)
        search = Search(rows, blames, seen, drifts=False)
        for one in search.chosen:
            blame = blames[one.part].beside(map(blames.__getitem__, search.as_good(one, SPARED)))
            blamed.setdefault(one.part, blame)
            found += [(one.part, case) for case in own if one.part in case.touched]
    left = [case for case in bad if case.touched.isdisjoint(blamed)]
    return [(blamed[part], own) for part, own in grouped(found).items()], left
