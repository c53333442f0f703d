"""Computes bounds for verdicts on collectives from healthy machines (`healthy.yml`). The logarithms
of measured ÷ expected rates are assumed to have a mean for each kind (operation, algorithm, number
of devices) and one deviation for all kinds. A figure below the prediction interval is low."""

from __future__ import annotations

import math
from collections import Counter
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from linkgauge.model.grouped import grouped
from linkgauge.model.operations.collective import Algorithm, Collective, CollectiveName, has_root
from linkgauge.model.stats.student import critical
from linkgauge.model.units import parse_size

from .link_rates import CALL

COUNTS = 512 << 20
"""The size in bytes from which the bounds hold. At smaller sizes, startup times differ more."""
LOW, PERHAPS = 0.01, 0.05
"""The probabilities that the next healthy figure lies outside the intervals, half of them below:
one in 200 is low, one in 40 perhaps low."""
SEVERAL = "several hosts'"
_MARGIN = 0.9
"""Networks are shared, and their protocols differ: over several hosts a figure is low a tenth below
the lowest share that was published of any, and what was published of its kind is ok."""
Devices = str
Kind = tuple[CollectiveName, Algorithm, Devices]


class Bounds(NamedTuple):
    """Shares of the expected rate below which a figure is low or perhaps low, and their basis."""

    low: float
    perhaps: float
    figures: int
    sources: int


class Healthy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Published figures of a healthy machine in GB/s. `reached` has figures by size, `asked` is
    what an operator requires. `machine` and `adapters` (`8 x 400G`) describe one of the `hosts`.
    `ranks` counts all devices. `why` explains a figure far from the expected figure."""

    machine: str
    hosts: int = 1
    adapters: str = ""
    why: str = ""
    ranks: int
    operation: CollectiveName
    algorithm: Algorithm
    expected: float
    source: str
    reached: dict[str, float] = {}
    asked: float | None = None

    @property
    def kind(self) -> Kind:
        return self.operation, self.algorithm, devices_of(self.ranks, self.hosts)

    @property
    def shares(self) -> list[float]:
        """Returns each figure as a share of the expected rate, at most 1, without startup time."""
        work = Collective(self.operation, root=0 if has_root(self.operation) else None)
        moved = [work.bytes_on_bus(parse_size(size), self.ranks) / 1e9 for size in self.reached]
        both = zip(moved, self.reached.values(), strict=True)
        return [min(1.0, size / self.expected / (size / rate - CALL)) for size, rate in both]


def devices_of(ranks: int, hosts: int = 1) -> Devices:
    if hosts > 1:
        return SEVERAL
    return "2" if ranks == 2 else "3 to 8" if ranks <= 8 else "more"


def rows() -> list[Healthy]:
    return msgspec.yaml.decode(Path(__file__).with_suffix(".yml").read_bytes(), type=list[Healthy])


@cache
def table() -> dict[Kind, Bounds]:
    healthy = [row for row in rows() if row.reached]
    logs = grouped((row.kind, math.log(share)) for row in healthy for share in row.shares)
    sources = Counter(row.kind for row in healthy)
    links = [own for kind, own in logs.items() if kind[2] != SEVERAL]
    degrees = sum(len(own) - 1 for own in links)
    squares = sum((one - fmean(own)) ** 2 for own in links for one in own)
    deviation = math.sqrt(squares / degrees)
    found = {}
    for kind, own in logs.items():
        error = deviation * math.sqrt(1 + 1 / len(own))
        low, perhaps = (fmean(own) - critical(p, degrees) * error for p in (LOW, PERHAPS))
        # What a healthy machine was seen to reach is not low.
        ends = math.exp(min(low, *own)), math.exp(perhaps)
        if kind[2] == SEVERAL:
            least = min(min(some) for other, some in logs.items() if other[2] == SEVERAL)
            ends = _MARGIN * math.exp(least), math.exp(min(own))
        found[kind] = Bounds(*ends, len(own), sources[kind])
    return found


def bounds_of(
    operation: CollectiveName, algorithm: Algorithm, ranks: int, hosts: int = 1
) -> Bounds:
    """Returns the bounds for a kind of collective. A kind with fewer than two sources gets the
    lowest bounds of its algorithm (for as many devices, if known)."""
    known, devices = table(), devices_of(ranks, hosts)
    own = known.get((operation, algorithm, devices))
    if own is not None and own.sources > 1:  # one source may describe only its own machine
        return own
    equivalent = {kind: bounds for kind, bounds in known.items() if kind[1] == algorithm}
    return min([b for kind, b in equivalent.items() if kind[2] == devices] or equivalent.values())
