"""Judges the figures by the bars: pure comparisons, base units, no I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import truediv
from statistics import median
from typing import Literal

from linkgauge.model.documents.result import CellResult, Run
from nvbandwidth_figures import (
    CROSSING,
    DEVICE_TESTS,
    HOST_TESTS,
    TESTS,
    Figures,
    Key,
    is_latency,
    results_of,
)

Verdict = Literal["ok", "MISSED", "not measured"]

HOST_BAR = 0.99
AS_BAR = 0.01
WALL_BAR = 25.0
PRECISION_BAR = 0.01


@dataclass(frozen=True)
class Bar:
    """The range of ratios that pass, ends included."""

    text: str
    least: float
    most: float = math.inf

    def judge(self, ratio: float) -> Verdict:
        return "ok" if self.least <= ratio <= self.most else "MISSED"


def device_bar(test: str) -> Bar:
    """The bar by what does the work: copy engines, kernels, or one thread chasing pointers."""
    if is_latency(test):
        return Bar("within 3 %", 0.97, 1.03)
    return Bar("≥ 0.998", 0.998) if test.endswith("_sm") else Bar("≥ 0.99", 0.99)


def spread_bar(test: str) -> float:
    """Limit of the spread of a device-only cell's medians, relative to their median."""
    return 0.03 if is_latency(test) else 0.01


def spread(values: Sequence[float]) -> float | None:
    """(max - min) ÷ median; None for fewer than two values."""
    middle = median(values) if len(values) > 1 else 0.0
    return (max(values) - min(values)) / middle if middle else None


def by_key(runs: Iterable[Mapping[Key, float]], tests: Sequence[str]) -> dict[Key, list[float]]:
    """Each figure of these tests over the runs, in the tests' order, rows and columns by number."""
    gathered: dict[Key, list[float]] = {}
    for run in runs:
        for key, value in run.items():
            if key.test in tests:
                gathered.setdefault(key, []).append(value)
    return dict(sorted(gathered.items(), key=lambda one: _rank(one[0], tests)))


def _rank(key: Key, tests: Sequence[str]) -> tuple[int, int, int, str]:
    return tests.index(key.test), int(key.row), int(key.column), key.part


def medians(runs: Iterable[Mapping[Key, float]], tests: Sequence[str]) -> Figures:
    """The median of each figure over the runs."""
    return {key: median(values) for key, values in by_key(runs, tests).items()}


def worst(verdicts: Sequence[Verdict]) -> Verdict:
    """A missed bar, then one that could not be measured; without verdicts, not measured."""
    if "MISSED" in verdicts:
        return "MISSED"
    return "ok" if verdicts and "not measured" not in verdicts else "not measured"


@dataclass(frozen=True)
class DeviceRow:
    """One test: both tools' figures over the cells that both measured, and their ratios."""

    test: str
    bar: str
    verdict: Verdict
    ours: tuple[float, ...]
    theirs: tuple[float, ...]
    alone: tuple[Key, ...]
    """Figures that only one of the tools has."""

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(map(truediv, self.ours, self.theirs))


def compare_devices(ours: Figures, theirs: Figures) -> list[DeviceRow]:
    """A row for each device-only test."""
    return [_device_row(test, ours, theirs) for test in DEVICE_TESTS]


def _device_row(test: str, ours: Figures, theirs: Figures) -> DeviceRow:
    bar = device_bar(test)
    keys = by_key([ours, theirs], [test])
    both = [key for key in keys if key in ours and key in theirs]
    alone = tuple(key for key in keys if key not in both)
    verdicts = [bar.judge(ours[key] / theirs[key]) for key in both]
    verdicts += ["not measured" for _ in alone]
    left, right = (tuple(figures[key] for key in both) for figures in (ours, theirs))
    return DeviceRow(test, bar.text, worst(verdicts), left, right, alone)


@dataclass(frozen=True)
class RoundsRow:
    """One cell over rounds: medians, spreads (none below two rounds) and what held."""

    key: Key
    ours: float | None
    theirs: float | None
    our_spread: float | None
    their_spread: float | None
    bar: str
    verdict: Verdict
    clause: str = ""

    @property
    def ratio(self) -> float | None:
        if self.ours is None or self.theirs is None:
            return None
        return self.ours / self.theirs


def compare_hosts(ours: Sequence[Figures], theirs: Sequence[Figures]) -> list[RoundsRow]:
    """A row for each cell that crosses to the host: near enough, or within their own spread."""
    return [_judge_host(row) for row in _rounds_rows(ours, theirs, HOST_TESTS)]


def _judge_host(row: RoundsRow) -> RoundsRow:
    bar = f"≥ {HOST_BAR}, or within their spread"
    if row.ratio is None:
        return _judged(row, bar, "not measured")
    if row.ratio >= HOST_BAR:
        return _judged(row, bar, "ok", "ratio")
    if row.their_spread is not None and row.ratio >= 1 - row.their_spread:
        return _judged(row, bar, "ok", "their spread")
    return _judged(row, bar, "MISSED")


def compare_tuned(
    ours: Sequence[Figures], theirs: Sequence[Figures], bars: Mapping[str, float]
) -> list[RoundsRow]:
    """A row for each cell of the tests that tuning must speed up."""
    return [
        _judged(row, bar.text, "not measured" if row.ratio is None else bar.judge(row.ratio))
        for row in _rounds_rows(ours, theirs, tuple(bars))
        for bar in [Bar(f"≥ {bars[row.key.test]}", bars[row.key.test])]
    ]


def _judged(row: RoundsRow, bar: str, verdict: Verdict, clause: str = "") -> RoundsRow:
    spreads = row.our_spread, row.their_spread
    return RoundsRow(row.key, row.ours, row.theirs, *spreads, bar, verdict, clause)


def _rounds_rows(
    ours: Sequence[Figures], theirs: Sequence[Figures], tests: Sequence[str]
) -> list[RoundsRow]:
    """Rows yet to be judged; a test without any figure has one row with no place."""
    left, right = by_key(ours, tests), by_key(theirs, tests)
    keys = set(left) | set(right)
    keys |= {Key(test, "", "-1", "-1") for test in set(tests) - {key.test for key in keys}}
    return [
        _unjudged(key, left.get(key, []), right.get(key, []))
        for key in sorted(keys, key=lambda key: _rank(key, tests))
    ]


def _unjudged(key: Key, left: list[float], right: list[float]) -> RoundsRow:
    return RoundsRow(
        key,
        median(left) if left else None,
        median(right) if right else None,
        spread(left),
        spread(right),
        "",
        "not measured",
    )


def compare_as(ours: Sequence[Figures], theirs: Sequence[Figures]) -> list[RoundsRow]:
    """A row for each cell: those within and between devices may differ by at most AS_BAR, those
    that cross to the host by at most the spread of nvbandwidth's runs."""
    return [_judge_as(row) for row in _rounds_rows(ours, theirs, TESTS)]


def _judge_as(row: RoundsRow) -> RoundsRow:
    crosses = row.key.test in CROSSING
    most = row.their_spread if crosses else AS_BAR
    bar = "within their spread" if crosses else f"within {AS_BAR:.0%}"
    if row.ratio is None or most is None:
        return _judged(row, bar, "not measured")
    return _judged(row, bar, "ok" if abs(row.ratio - 1) <= most else "MISSED")


def misses(runs: Sequence[Figures], theirs: Sequence[Figures]) -> list[int]:
    """For each run, the number of cells that cross to the host and are further from the median of
    nvbandwidth's runs of the other rounds than those are from each other. For nvbandwidth's own
    runs this is the number expected by chance."""
    return [
        sum(
            row.key.test in CROSSING and row.verdict == "MISSED"
            for row in compare_as([run], [*theirs[:turn], *theirs[turn + 1 :]])
        )
        for turn, run in enumerate(runs)
    ]


@dataclass(frozen=True)
class SuiteRun:
    """One run of all tests. `exact` cells are those whose 95 % interval is narrow enough."""

    round: int
    seconds: float
    cells: int
    exact: int
    not_verified: int
    not_pass: int

    @property
    def verdict(self) -> Verdict:
        if not self.cells:
            return "not measured"
        whole = self.exact == self.cells and not self.not_verified and not self.not_pass
        return "ok" if whole and self.seconds <= WALL_BAR else "MISSED"


def half_width(cell: CellResult) -> float | None:
    """Half of the 95 % interval relative to the median; None if there is no interval."""
    summary = cell.summary
    if summary is None or summary.ci95 is None or summary.median <= 0:
        return None
    return (summary.ci95[1] - summary.ci95[0]) / 2 / summary.median


def examine_suite(number: int, seconds: float, run: Run) -> SuiteRun:
    """The quality of one run. Latencies copy nothing, so they only fail verification if known to be
    wrong."""
    cells = [(result.benchmark, cell) for result in results_of(run) for cell in result.cells]
    widths = [half_width(cell) for _, cell in cells]
    return SuiteRun(
        number,
        seconds,
        cells=len(cells),
        exact=sum(width is not None and width <= PRECISION_BAR for width in widths),
        not_verified=sum(not _is_verified(test, cell) for test, cell in cells),
        not_pass=sum(cell.status != "pass" for _, cell in cells),
    )


def _is_verified(test: str, cell: CellResult) -> bool:
    return cell.verified is not False if is_latency(test) else cell.verified is True


@dataclass(frozen=True)
class SpreadRow:
    """One test: the worst spread of its cells' medians over the runs.

    Device-only cells have a `limit`; other cells are compared with nvbandwidth's own spread of that
    cell, and `theirs` is the widest of those.
    """

    test: str
    cells: int
    wider: int
    ours: float | None
    theirs: float | None
    limit: float | None
    verdict: Verdict


def compare_spreads(ours: Sequence[Figures], theirs: Sequence[Figures]) -> list[SpreadRow]:
    """A row for each of the 35 tests; bidirectional cells by their totals."""
    left, right = (
        {key: spread(values) for key, values in by_key(runs, DEVICE_TESTS + HOST_TESTS).items()}
        for runs in (ours, theirs)
    )
    return [_spread_row(test, left, right) for test in (*DEVICE_TESTS, *HOST_TESTS)]


def _spread_row(
    test: str, ours: Mapping[Key, float | None], theirs: Mapping[Key, float | None]
) -> SpreadRow:
    keys = [key for key in ours if key.test == test and not key.part]
    limit = None if test in HOST_TESTS else spread_bar(test)
    limits = [theirs.get(key) if limit is None else limit for key in keys]
    verdicts = [_within(ours[key], most) for key, most in zip(keys, limits, strict=True)]
    return SpreadRow(
        test,
        len(keys),
        verdicts.count("MISSED"),
        _largest(ours[key] for key in keys),
        _largest(theirs.get(key) for key in keys),
        limit,
        worst(verdicts),
    )


def _within(value: float | None, most: float | None) -> Verdict:
    if value is None or most is None:
        return "not measured"
    return "ok" if value <= most else "MISSED"


def _largest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
