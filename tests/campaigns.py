"""Long campaigns as data: campaigns.yml has how many trials each makes, and the rate it holds.

LINKGAUGE_CAMPAIGN=full makes all of them, and prints each rate beside the one that was written down
last; every test run makes a few.
"""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from linkgauge.model.stats.student import beyond

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
SIZE = "full" if FULL else "few"
KEY = "campaign"
"""The property of a test's report that has a rate."""
HEAD = ("| campaign | case | now | bound | measured before |", "|---|---|---|---|---|")


@cache
def known() -> dict[str, dict[str, Any]]:
    listed = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text())
    return {one["name"]: one for one in listed}


def trials(name: str) -> int:
    """How many are made now; of a full campaign, LINKGAUGE_TRIALS where that is given."""
    asked = os.environ.get("LINKGAUGE_TRIALS") if FULL else None
    return int(asked or known()[name]["trials"][SIZE])


def interval(hits: int, of: int, chance: float = 0.05) -> tuple[float, float]:
    """The exact interval of a probability that `hits` of so many trials show (C. Clopper and
    E. Pearson, Biometrika 26, 1934), by Fisher's F."""

    def bound(first: int, second: int, share: float) -> float:
        low, high = 0.0, 1.0
        for _ in range(60):
            p = (low + high) / 2
            below = beyond(first * (1 - p) / (second * p), 2 * second, 2 * first)
            low, high = (p, high) if below < share else (low, p)
        return low

    least = bound(hits, of - hits + 1, chance / 2) if hits else 0.0
    return least, bound(hits + 1, of - hits, 1 - chance / 2) if hits < of else 1.0


class Rate(NamedTuple):
    """What happened in so many of the trials of a campaign, or of one `case` of it."""

    name: str
    happened: int
    of: int
    case: str

    @property
    def bound(self) -> str:
        """`at most 1%`, `at least 99%` or `93% to 98%`."""
        return str(known()[self.name]["bound"][SIZE])

    @property
    def holds(self) -> bool:
        numbers = [float(word[:-1]) for word in self.bound.split() if word.endswith("%")]
        least = 0.0 if self.bound.startswith("at most") else numbers[0]
        most = 100.0 if self.bound.startswith("at least") else numbers[-1]
        return self.of > 0 and least <= 100 * self.happened / self.of <= most

    def __str__(self) -> str:
        before = known()[self.name]["measured"].get(self.case)
        since = known()[self.name]["since"]
        now = f"{self.happened / self.of:.1%} of {self.of:,}" if self.of else "no trial"
        shown = (self.name, self.case, now, self.bound, f"{before}, {since}" if before else "-")
        return f"| {' | '.join(shown)} |"
