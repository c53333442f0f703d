"""Parses bounds, such as `≥ 50 GB/s`, of limits and waivers.

    limit     = [ statistic ] ( "≥" | ">=" | "≤" | "<=" ) bound
    statistic = "median" | "p50" | "p95" | "p99" | "slow_p95" | "slow_p99" | "min" | "max" | "mean"
    bound     = number unit | number [ "%" ] ( "×" | "x" | "*" | "of" ) expected
    unit      = "B/s" | "kB/s" | "MB/s" | "GB/s" | "TB/s" | "ns" | "us" | "µs" | "ms" | "s"
              | "GFLOP/s" | "TFLOP/s" | "events/s" | "tokens/s" | "requests/s" | "%"
    expected  = "achievable" | "theoretical"

The statistic defaults to the median. `p95` and `p99` mean `slow_p95` and `slow_p99`, because a
plain high percentile of bandwidths would be among the fastest samples."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import msgspec

from linkgauge.model.notation import Cursor
from linkgauge.model.units import BANDWIDTH, HIDDEN, LATENCY, STEP, STREAM

_STATISTICS = ("median", "p50", "p95", "p99", "slow_p95", "slow_p99", "min", "max", "mean")
Units = Mapping[str, tuple[str, float]]
UNITS: Units = {
    "B/s": ("B/s", 1.0), "kB/s": ("B/s", 1e3), "MB/s": ("B/s", 1e6), "GB/s": ("B/s", 1e9),
    "TB/s": ("B/s", 1e12), "ns": ("s", 1e-9), "us": ("s", 1e-6), "µs": ("s", 1e-6),
    "μs": ("s", 1e-6), "ms": ("s", 1e-3), "s": ("s", 1.0), "GFLOP/s": ("FLOP/s", 1e9),
    "TFLOP/s": ("FLOP/s", 1e12), "events/s": ("1/s", 1.0), "tokens/s": ("tokens/s", 1.0),
    "requests/s": ("requests/s", 1.0),
}  # fmt: skip
_EXPECTED = ("achievable", "theoretical")
_AT_LEAST, _AT_MOST = ("≥", ">="), ("≤", "<=")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
_WORD = re.compile(r"[A-Za-zµμ_]+(?:/s)?[0-9]*")
QUANTITY = {
    STREAM.symbol: BANDWIDTH.symbol, STEP.symbol: LATENCY.symbol, HIDDEN.symbol: "%",
}  # fmt: skip
"""The units that count as the same unit in limits."""


class StatisticLimit(msgspec.Struct, frozen=True):
    """A bound on a statistic of a cell's samples: lower if `at_least` is true, else upper. `value`
    is in `unit` (B/s, s, FLOP/s, 1/s, tokens/s, requests/s, or % for a share of hidden time) or, if
    `of` names an expected figure, a share of this figure."""

    statistic: str
    at_least: bool
    value: float
    unit: str | None = None
    of: str | None = None


def parse_bound(text: str, where: str = "", units: Units = UNITS) -> StatisticLimit:
    """Parses a bound. Raises NotationError, which points at the place of the error."""
    parser = _LimitParser(text, where)
    parser.units = units
    return parser.bound()


class _LimitParser(Cursor):
    """Parses the grammar at the top of this file: `bound` reads a whole limit."""

    units = UNITS
    blanks = frozenset(" \t\u00a0")
    word = re.compile(".", re.DOTALL)

    def bound(self) -> StatisticLimit:
        statistic = self.one_of(_WORD, _STATISTICS) or "median"
        at_least = self.direction()
        value = self.number()
        share = self.take("%")
        times = self.take("×") or self.take("*") or self.one_of(_WORD, ("x", "of")) is not None
        if share and not times:
            self.end("expected '×' or 'of'")
            bound = StatisticLimit(statistic, at_least, value / 100, "%")
        elif times:
            of = self.known(_EXPECTED, "an expected figure")
            bound = StatisticLimit(statistic, at_least, value / (100 if share else 1), of=of)
        else:
            unit, scale = self.units[self.known(self.units, "a unit")]
            bound = StatisticLimit(statistic, at_least, value * scale, unit)
        self.end("expected the end of the limit")
        return bound

    def direction(self) -> bool:
        for sign in (*_AT_LEAST, *_AT_MOST):
            if self.take(sign):
                return sign in _AT_LEAST
        raise self.error("expected '≥' (>=) or '≤' (<=)")

    def number(self) -> float:
        self.blank()
        at, found = self.at, self.matched(_NUMBER)
        if found is None or len(found) > 40:
            raise self.error("expected a number", at)
        return float(found)

    def known(self, names: Collection[str], what: str) -> str:
        found = self.one_of(_WORD, names)
        if found is None:
            raise self.error(f"expected {what} ({', '.join(names)})")
        return found
