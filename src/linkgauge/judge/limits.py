"""Defines limits that users write in limits.yml. The file is read without evaluating anything.

    limits:
      - {device: "NVIDIA H200*", benchmark: "host_to_device_memcpy_*", limit: "≥ 50 GB/s"}
      - {benchmark: "*_latency_*", limit: "p99 <= 25 us"}
      - {limit: ">= 0.9 × achievable"}

`device` is a pattern for the device's model (the processor's if only the host takes part),
`benchmark` one for the benchmark's name; both accept `*`, `?` and `[…]` and default to all.

    limit     = [ statistic ] ( "≥" | ">=" | "≤" | "<=" ) bound
    statistic = "median" | "p50" | "p95" | "p99" | "slow_p95" | "slow_p99" | "min" | "max" | "mean"
    bound     = number unit | number [ "%" ] ( "×" | "x" | "*" | "of" ) expected
    unit      = "B/s" | "kB/s" | "MB/s" | "GB/s" | "TB/s" | "ns" | "us" | "µs" | "ms" | "s"
              | "GFLOP/s" | "TFLOP/s" | "events/s" | "tokens/s" | "requests/s" | "%"
    expected  = "achievable" | "theoretical"

The statistic defaults to the median. `p95` and `p99` mean the slow side, `slow_p95` and
`slow_p99`: percentiles of bandwidths themselves would be the fastest samples."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
import yaml
from msgspec.structs import replace

from linkgauge.machine.given import MOST_YAML, read_given, yaml_problem
from linkgauge.model.documents.result import CellResult, Result, Run, worst
from linkgauge.model.errors import InputError
from linkgauge.model.notation import Cursor

_STATISTICS = ("median", "p50", "p95", "p99", "slow_p95", "slow_p99", "min", "max", "mean")
_UNITS = {
    "B/s": ("B/s", 1.0), "kB/s": ("B/s", 1e3), "MB/s": ("B/s", 1e6), "GB/s": ("B/s", 1e9),
    "TB/s": ("B/s", 1e12), "ns": ("s", 1e-9), "us": ("s", 1e-6), "µs": ("s", 1e-6),
    "μs": ("s", 1e-6), "ms": ("s", 1e-3), "s": ("s", 1.0), "GFLOP/s": ("FLOP/s", 1e9),
    "TFLOP/s": ("FLOP/s", 1e12), "events/s": ("1/s", 1.0), "tokens/s": ("tokens/s", 1.0),
    "requests/s": ("requests/s", 1.0),
}  # fmt: skip
_EXPECTED = ("achievable", "theoretical")
_AT_LEAST, _AT_MOST = ("≥", ">="), ("≤", "<=")
_FIELDS = ("device", "benchmark", "limit")
_NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,2})?")
_WORD = re.compile(r"[A-Za-zµμ_]+(?:/s)?[0-9]*")


class StatisticLimit(msgspec.Struct, frozen=True):
    """A limit that a statistic must reach (`at_least`) or must not exceed. `value` is a number in
    `unit` (B/s, s, FLOP/s, 1/s, tokens/s, requests/s, or % for a share of hidden time). If `of`
    names an expected figure, `value` is a share of that figure."""

    statistic: str
    at_least: bool
    value: float
    unit: str | None = None
    of: str | None = None


class Limit(msgspec.Struct, frozen=True):
    """A limit for the devices and benchmarks that match. `text` is the limit as written, and
    `where` its file and line."""

    device: str
    benchmark: str
    bound: StatisticLimit
    text: str
    where: str


def read_limits(path: Path) -> tuple[Limit, ...]:
    """Reads the limits from a file. Raises InputError, which names the line."""
    try:
        text = read_given(path, MOST_YAML).decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not a text file"
        raise InputError(f"cannot read limits {str(path)!r}: {reason}") from error
    return parse_limits(text, path.name)


def parse_limits(text: str, name: str = "limits.yml") -> tuple[Limit, ...]:
    """Returns the limits in a document. `name` is its name in error messages. Raises InputError for
    an invalid limit."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        at = f" line {mark.line + 1}" if mark else ""
        raise InputError(f"{name}{at}: not YAML: {yaml_problem(error)}") from error
    if not isinstance(root, yaml.MappingNode) or [k.value for k, _ in root.value] != ["limits"]:
        raise InputError(f"{name}: expected a list of limits below 'limits:'")
    entries = root.value[0][1]
    if not isinstance(entries, yaml.SequenceNode):
        raise InputError(f"{name} {_line(entries)}: expected a list of limits, each after '- '")
    return tuple(_entry(node, name) for node in entries.value)


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"


def _entry(node: yaml.Node, name: str) -> Limit:
    where = f"{name} {_line(node)}"
    if not isinstance(node, yaml.MappingNode):
        raise InputError(f"{where}: a limit has the fields {', '.join(_FIELDS)}")
    fields: dict[str, str] = {}
    for key, value in node.value:
        at = f"{name} {_line(key)}"
        if not isinstance(key, yaml.ScalarNode):
            raise InputError(f"{at}: a field name must be one of {', '.join(_FIELDS)}")
        if key.value not in _FIELDS:
            raise InputError(
                f"{at}: unknown field {key.value!r}: the fields are {', '.join(_FIELDS)}"
            )
        if key.value in fields:
            raise InputError(f"{at}: {key.value} appears twice")
        if not isinstance(value, yaml.ScalarNode) or not value.value:
            raise InputError(f"{at}: {key.value} must be a string")
        fields[key.value] = value.value
    if "limit" not in fields:
        raise InputError(f'{where}: missing limit, such as limit: "≥ 50 GB/s"')
    bound = parse_bound(fields["limit"], f"{where}: ")
    patterns = (fields.get("device", "*"), fields.get("benchmark", "*"))
    return Limit(*patterns, bound, " ".join(fields["limit"].split()), where)


def parse_bound(text: str, where: str = "") -> StatisticLimit:
    """Returns the bound in a text. Raises NotationError, which points at the error."""
    return _LimitParser(text, where).bound()


class _LimitParser(Cursor):
    """Parses a limit. Each method reads one rule of the grammar above."""

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
            unit, scale = _UNITS[self.known(_UNITS, "a unit")]
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


# Measured figures against what the user asked for.

Objection = Callable[[CellResult], str | None]
"""A function that returns in one line why a measured cell is not good enough; None if it is good
enough."""


def hold(result: Result, objection: Objection) -> Result:
    """Returns the result after a check of its passed cells. Cells to which `objection` objects now
    fail for this reason."""
    cells = tuple(_held(cell, objection) for cell in result.cells)
    return replace(result, cells=cells, status=worst(cell.status for cell in cells))


def hold_run(run: Run, objection: Objection | None) -> Run:
    if objection is None:
        return run
    return replace(run, results=tuple(hold(result, objection) for result in run.results))


def _held(cell: CellResult, objection: Objection) -> CellResult:
    reason = objection(cell) if cell.status == "pass" else None
    return cell if reason is None else replace(cell, status="fail", reason=reason, kind="limit")
