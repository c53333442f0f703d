"""Faults of a simulated machine, and how to write them.

    fault      = kind target { name "=" value }
    target     = a device (`sim:3`), a host node (`host:0`), a link by its name, or `*`
    cells      = N | N ".." | N ".." N      cells' numbers in the whole plan, from 0

An example is `slow sim:0-sim:1 rate=25% cells=3..9`. A fault affects all cells with a transfer that
reads, writes or crosses its target, or runs on the target's engine. `str()` returns a fault in this
form. docs/faults.md describes all kinds of faults."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Container, Iterable, Sequence
from decimal import Decimal
from functools import partial
from operator import attrgetter
from signal import Signals
from typing import Any, ClassVar

import msgspec

from linkgauge.model.errors import PHASES, InputError, NotationError, Phase
from linkgauge.model.names import hint
from linkgauge.model.units import parse_fraction, parse_size

ALL = "*"
_MOST_DRIFT = math.log(1e6)
"""The limit of drift: a rate stays between a millionth and a million times its healthy value."""


class OrdinalRange(msgspec.Struct, frozen=True):
    """Cells by number in the plan: `first` to `last` (included; None: to the end)."""

    first: int = 0
    last: int | None = None

    def __contains__(self, cell: int) -> bool:
        return self.first <= cell and (self.last is None or cell <= self.last)

    def before(self, number: int) -> int:
        end = number if self.last is None else min(number, self.last + 1)
        return max(0, end - self.first)

    def __str__(self) -> str:
        if self.first == self.last:
            return str(self.first)
        return f"{self.first}..{'' if self.last is None else self.last}"


class Fault(msgspec.Struct, frozen=True):
    """A scheduled fault. `target` is a device, a host node, a link, or `*` for all of them."""

    meaning: ClassVar[str]
    example: ClassVar[str]

    target: str
    cells: OrdinalRange = OrdinalRange()

    def aims_at(self, names: Container[str]) -> bool:
        return self.target == ALL or self.target in names

    def left(self, cell: int) -> float:
        """Returns the fraction of the full rate that the fault leaves in this cell."""
        return 1.0

    def __str__(self) -> str:
        given = (
            f" {field.encode_name}={PARAMETERS[field.encode_name].write(value)}"
            for field in _parameters(type(self))
            if (value := getattr(self, field.name)) != field.default
        )
        return f"{type(self).__name__.lower()} {self.target}{''.join(given)}"


class Slow(Fault, frozen=True):
    meaning = "a link, or a device with all its links, runs at a fraction of its rate"
    example = "slow sim:0 rate=25%"

    rate: float = 0.5

    def left(self, cell: int) -> float:
        return self.rate


class Drift(Fault, frozen=True):
    """A drift: each cell has (1 + `per_cell`) × the rate of the cell before."""

    meaning = "the rate falls or rises from cell to cell"
    example = "drift sim:0 per_cell=-0.1%"

    per_cell: float = -0.001

    def left(self, cell: int) -> float:
        exponent = (cell - self.cells.first) * math.log1p(self.per_cell)
        return math.exp(max(-_MOST_DRIFT, min(exponent, _MOST_DRIFT)))


class Jitter(Fault, frozen=True):
    meaning = "the samples vary more"
    example = "jitter sim:0 sigma=5%"

    sigma: float = 0.05


class Stall(Fault, frozen=True):
    """A stall: one in `every` samples of a cell takes longer than the others, by `seconds`."""

    meaning = "the transfer stands still every few samples, which shows in the slowest 1%"
    example = "stall sim:0 every=4 for=0.05"

    every: int = 5
    seconds: float = msgspec.field(default=0.01, name="for")


class Flip(Fault, frozen=True):
    """A flip of bit `bit` of the byte at `offset`. Transfers of fewer bytes are not affected."""

    meaning = "a bit of what was copied flips between the last sample and the check"
    example = "flip sim:0 offset=54321 bit=3"

    offset: int = 0
    bit: int = 0


class Hot(Fault, frozen=True):
    meaning = "a device reports this temperature"
    example = "hot sim:0 celsius=91 cells=20.."

    celsius: float = 95.0


class Busy(Fault, frozen=True):
    meaning = "a device is reported to be at work for another process"
    example = "busy sim:0 cells=0..9"


class Strike(Fault, frozen=True):
    phase: Phase = "measure"

    def is_due(self, cell: int, phase: Phase) -> bool:
        return phase == self.phase and cell in self.cells


class Hang(Strike, frozen=True):
    meaning = "the call never returns"
    example = "hang sim:0 phase=warm-up cells=0"


class Crash(Strike, frozen=True):
    meaning = "a real signal kills the worker process"
    example = "crash sim:0 signal=KILL cells=0"

    signal: Signals = Signals.SIGSEGV


class Lost(Strike, frozen=True):
    """The loss of a device, in a phase of the first cell in `cells` and in all later cells."""

    meaning = "the device is lost from that cell on: every call that touches it fails"
    example = "lost sim:0 cells=10"

    def is_due(self, cell: int, phase: Phase) -> bool:
        first = PHASES.index(self.phase if cell == self.cells.first else "allocate")
        return cell >= self.cells.first and PHASES.index(phase) >= first


class NoMem(Strike, frozen=True):
    meaning = "allocation fails"
    example = "nomem host:0 cells=0..3"

    phase: Phase = "allocate"


_KINDS = Slow, Drift, Jitter, Stall, Flip, Hot, Busy, Hang, Crash, Lost, NoMem
FAULTS: dict[str, type[Fault]] = {kind.__name__.lower(): kind for kind in _KINDS}
"""All kinds of faults by name, in the order of `--list-faults`."""


def rate_left(faults: Iterable[Fault], cell: int) -> float:
    """Returns the fraction of the full rate that all the faults together leave in a cell."""
    return math.prod(fault.left(cell) for fault in faults if cell in fault.cells)


def least_rate(faults: Sequence[Fault], cells: Iterable[int]) -> float:
    """Returns the lowest fraction of the full rate that the faults leave in one of the cells."""
    return min((rate_left(faults, cell) for cell in cells), default=math.inf) if faults else 1.0


class Parameter(msgspec.Struct, frozen=True):
    """A parameter of faults. `read` parses a value or raises InputError; `write` formats it."""

    meaning: str
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def _decimal(value: float) -> str:
    return format(Decimal(repr(value)), "f")


def _match(pattern: str, text: str, form: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text, re.ASCII)
    if not match:
        raise InputError(f"expected {form}")
    return match


def _whole(least: int, most: int, form: str, text: str) -> int:
    number = int(_match(r"[0-9]{1,9}", text, form)[0])
    if not least <= number <= most:
        raise InputError(f"expected {form}")
    return number


def _fraction(text: str) -> float:
    _match(r"[0-9.]{1,30}%?", text, "a fraction such as 0.5 or 50%")
    value = parse_fraction(text, "fraction")
    if value < 1e-6:
        raise InputError(f"fraction {text!r} is less than 0.0001%")
    return value


def _signed_fraction(text: str) -> float:
    value = _fraction(text.removeprefix("-"))
    return -value if text.startswith("-") else value


def _seconds(text: str) -> float:
    form = "seconds such as 0.05"
    seconds = float(_match(r"[0-9]{1,6}(\.[0-9]{1,9})?", text, form)[0])
    if seconds == 0:
        raise InputError(f"expected {form}")
    return seconds


def _celsius(text: str) -> float:
    return float(_match(r"[0-9]{1,3}(\.[0-9])?", text, "degrees such as 90")[0])


def _cells(text: str) -> OrdinalRange:
    form = "ordinals in the plan such as 5, 5.. or 5..9"
    first, dots, last = _match(r"([0-9]{1,9})(\.\.)?([0-9]{1,9})?", text, form).groups()
    if last is not None and not dots:
        raise InputError(f"expected {form}")
    cells = OrdinalRange(int(first), int(last) if last else None if dots else int(first))
    if cells.last is not None and cells.last < cells.first:
        raise InputError(f"no cells {text}: the last comes before the first")
    return cells


def _named(values: dict[str, Any], text: str) -> Any:
    if text not in values:
        raise InputError(f"expected {_listed(values)}")
    return values[text]


def _phase(phase: Phase) -> str:
    return phase.replace(" ", "-")


PARAMETERS: dict[str, Parameter] = {
    "cells": Parameter("the affected cells, counted from 0 over the whole plan", _cells, str),
    "phase": Parameter(
        "the phase of the cell in which the fault occurs",
        # In the first phase, `plan`, a cell has touched nothing yet.
        partial(_named, {_phase(phase): phase for phase in PHASES[1:]}),
        _phase,
    ),
    "rate": Parameter("the rate that remains, as a share", _fraction, _decimal),
    "per_cell": Parameter("change of the rate per cell, -0.1% or 0.1%", _signed_fraction, _decimal),
    "sigma": Parameter("standard deviation, as a share of the median", _fraction, _decimal),
    "every": Parameter(
        "samples between stalls", partial(_whole, 1, 10**9, "a number of samples, 1 or more"), str
    ),
    "for": Parameter("the seconds that a stall lasts", _seconds, _decimal),
    "celsius": Parameter("the temperature, in °C", _celsius, "{:g}".format),
    "offset": Parameter(
        "the byte that changes, from 0", lambda text: 0 if text == "0" else parse_size(text), str
    ),
    "bit": Parameter("the bit that flips in it", partial(_whole, 0, 7, "a bit, 0 to 7"), str),
    "signal": Parameter(
        "the signal that kills the worker",
        partial(_named, {"SEGV": Signals.SIGSEGV, "KILL": Signals.SIGKILL}),
        lambda signal: str(signal.name).removeprefix("SIG"),
    ),
}
"""All parameters of faults by name. `parameters` returns those of one kind."""


def _parameters(kind: type[Fault]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(kind)[1:]  # the first is the target


def parameters(kind: type[Fault]) -> dict[str, str]:
    return {
        field.encode_name: PARAMETERS[field.encode_name].write(field.default)
        for field in _parameters(kind)
    }


_TOKEN = re.compile(r"\S+", re.ASCII)
_ASSIGNMENT = re.compile(r"([a-z_]+)=(.*)", re.DOTALL)


def parse_fault(text: str) -> Fault:
    """Parses a fault, not checking its target. Raises NotationError with the error's place."""
    tokens = list(_TOKEN.finditer(text))
    if not tokens:
        raise NotationError(f"expected a fault: {_listed(FAULTS)}", text, len(text))
    kind = FAULTS.get(tokens[0][0])
    if kind is None:
        problem = f"unknown fault {tokens[0][0]!r}{hint(tokens[0][0], FAULTS)}"
        raise NotationError(problem, text, tokens[0].start())
    if len(tokens) == 1 or _ASSIGNMENT.fullmatch(tokens[1][0]):
        at = len(text) if len(tokens) == 1 else tokens[1].start()
        problem = (
            f"the fault {tokens[0][0]!r} needs a target: a device such as sim:0, a link or *; "
            f"for example --fault '{kind.example}'"
        )
        raise NotationError(problem, text, at)
    known = dict(map(attrgetter("encode_name", "name"), _parameters(kind)))
    values: dict[str, Any] = {}
    for token in tokens[2:]:
        match = _ASSIGNMENT.fullmatch(token[0])
        if not match or match[1] not in known:
            problem = f"{kind.__name__.lower()} takes {_listed(known)}, each as NAME=VALUE"
            raise NotationError(problem, text, token.start())
        name, at = match[1], token.start() + match.start(2)
        try:
            value = PARAMETERS[name].read(match[2])
        except InputError as error:
            raise NotationError(f"{name}: {error}", text, at) from error
        if kind is Lost and name == "cells" and value.last != value.first:
            raise NotationError("a lost device stays lost: give one cell", text, at)
        if known[name] in values:
            raise NotationError(f"{name} appears twice", text, token.start())
        values[known[name]] = value
    return kind(tokens[1][0], **values)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(names)
