"""A machine with several faults at once, runs of it, and what the doctor makes of them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence, Set

import msgspec

from campaign import (
    PLACES,
    RATES,
    STRIKES,
    UNSTEADY,
    Bed,
    has_peers,
    is_right,
    lost,
    magnitude,
    onset,
    tells,
    told,
)
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence, Finding

MACHINES = ("dgx-h200-8", "ppu-8", "rbln-32")
LEAST_CHANGE = 0.10
"""Part by which a cell's samples must differ for a fault to have changed it."""
LEAST_CELLS = 2
READ = {"link-speed", "link-width", "link-errors", "fabric-links", "fabric-errors"}
"""Checks of what readers read of a link."""


class Outcome(msgspec.Struct, frozen=True):
    """What the doctor made of one draw: which faults it named, and findings of severity `fail`
    that are of none of them. `discarded` were drawn before it (of three faults: one by one)."""

    label: str
    machine: str
    faults: tuple[str, ...]
    named: tuple[bool, ...]
    wrong: tuple[Finding, ...]
    discarded: int
    findings: tuple[Finding, ...] = ()

    @property
    def is_whole(self) -> bool:
        return all(self.named) and not self.wrong

    @property
    def is_harmless(self) -> bool:
        return any(self.named) and not self.wrong


class Scene:
    """A machine with a fault of each kind, and runs of it with some of them."""

    def __init__(self, machine: str, kinds: Sequence[str], dice: random.Random) -> None:
        self.bed = Bed(machine, dice)
        self.kinds = kinds
        self._dice = dice
        self._apart = any(kind in STRIKES for kind in kinds)
        self.healthy = self.bed.run(apart=self._apart, judged=False)
        self._touched = self.bed.names.touched(self.healthy)
        self._cells = sum(1 for _ in self.healthy.cells())
        self._by_place = {
            place: sorted(
                name
                for name, of in self._touched.items()
                if self.bed.names.place(name) == place and 2 <= len(of) < 0.9 * self._cells
            )
            for place in PLACES
        }
        self.targets: list[str] = []
        for kind in kinds:
            self.targets.append(self._target(kind))
        self.faults = [
            self._fault(kind, target) for kind, target in zip(kinds, self.targets, strict=True)
        ]
        self._runs: dict[tuple[str, ...], Evidence] = {}

    def _target(self, kind: str) -> str:
        """Of any place alike, a part that has no fault yet; one with peers, if it is to be
        unsteady."""
        taken, names = set(self.targets), self._by_place
        if kind in UNSTEADY:
            taken |= {name for name, of in self._touched.items() if not has_peers(self.healthy, of)}
        place = self._dice.choice([p for p in names if set(names[p]) - taken])
        return self._dice.choice([name for name in names[place] if name not in taken])

    def _fault(self, kind: str, target: str) -> str:
        struck = sorted(self._touched[target])
        if kind == "slow":
            size = f"rate={self._dice.uniform(0.4, 0.88):.3f}"
        else:
            size = magnitude(kind, struck, self._cells, self._dice)
        return f"{kind} {target} {size}{onset(kind, struck, self._dice)}"

    def run(self, faults: Sequence[str]) -> Evidence:
        key = tuple(faults)
        if key not in self._runs:
            whole = len(key) == len(self.kinds)  # of the others, only what changed counts
            self._runs[key] = self.bed.run(*key, apart=self._apart, judged=whole)
        return self._runs[key]

    @property
    def together(self) -> Evidence:
        return self.run(self.faults)

    def without(self, place: int) -> Evidence:
        return self.run([*self.faults[:place], *self.faults[place + 1 :]])

    def beside(self, place: int) -> Set[int]:
        """The cells that a fault changes beside the others."""
        return changed(self.kinds[place], self.without(place), self.together)

    def hidden(self) -> int | None:
        """The first fault that changes too little, alone or beside the others, or what has nothing
        to be compared with."""
        for place, (kind, fault) in enumerate(zip(self.kinds, self.faults, strict=True)):
            alone = changed(kind, self.healthy, self.run([fault]))
            if min(len(alone), len(self.beside(place))) < LEAST_CELLS:
                return place
            if not self._tells(place):
                return place
        return None

    def _tells(self, place: int) -> bool:
        """Whether a slow part has something to be slow beside, and an unsteady one peers that no
        fault unsettles."""
        if (kind := self.kinds[place]) not in UNSTEADY:
            return tells(kind, self.without(place), self.together, set())
        both = zip(self.targets, self.kinds, strict=True)
        unsteady = [self._touched[target] for target, kind in both if kind in UNSTEADY]
        own = frozenset(self._touched[self.targets[place]])
        return has_peers(self.together, own.union(*unsteady), self.beside(place) & own)

    def redraw_hidden(self, most: int) -> int:
        """Faults that change too little are drawn anew, so many at most; how many were."""
        for discarded in range(most):
            if (place := self.hidden()) is None:
                return discarded
            self.targets[place] = self._target(self.kinds[place])
            self.faults[place] = self._fault(self.kinds[place], self.targets[place])
        return most

    def outcome(self, label: str, discarded: int) -> Outcome:
        together = self.together
        findings = diagnose(together)
        right = [
            {
                f
                for f in findings
                for named in subjects(f)
                if any(
                    is_right(self.bed, as_kind, target, self.beside(place), together, named)
                    for as_kind in (kind, _as_reported(kind, self.without(place), together))
                )
                or is_end(self.bed, kind, target, f)
            }
            for place, (kind, target) in enumerate(zip(self.kinds, self.targets, strict=True))
        ]
        named = tuple(any(f.severity in ("fail", "warn") for f in of) for of in right)
        wrong = tuple(
            f for f in findings if f.severity == "fail" and not any(f in r for r in right)
        )
        faults = tuple(self.faults)
        return Outcome(label, self.bed.machine, faults, named, wrong, discarded, findings)


def subjects(finding: Finding) -> Iterator[Finding]:
    """The finding, once for each part that it names: others that no cell of the run tells from its
    subject (cells that the other fault ended might have) are as good an answer."""
    yield finding
    doubt = re.search(
        r"; the cause may be (.*) instead: the measurements cannot tell", finding.found
    )
    for part in re.split(", | or ", doubt[1]) if doubt else ():
        yield msgspec.structs.replace(finding, about=part)


def _as_reported(kind: str, others: Evidence, together: Evidence) -> str:
    return "slow" if kind == "drift" and len(told(kind, others, together)) <= 2 else kind


def is_end(bed: Bed, kind: str, target: str, finding: Finding) -> bool:
    """Whether it says what was read of a link that ends at a slow switch, which is slow with it."""
    ends = {end for name in bed.names.of_subject(finding.subject) for end in name.split("-")}
    return kind in RATES and finding.check in READ and target in ends


def changed(kind: str, was: Evidence, now: Evidence) -> Set[int]:
    """Numbers of the cells whose samples or status a fault changed."""
    both = enumerate(zip(was.cells(), now.cells(), strict=True))
    return {
        number
        for number, (before, cell) in both
        if before.status != cell.status or lost(kind, before, cell) > LEAST_CHANGE
    }
