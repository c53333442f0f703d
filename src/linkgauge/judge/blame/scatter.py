"""Finds parts whose cells have samples that scatter more than those of their peers."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Hashable, Iterator, Mapping, Sequence
from operator import itemgetter

import msgspec

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import BUSIEST
from linkgauge.judge.vendor import tools
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind
from linkgauge.model.memory import Memory
from linkgauge.model.names import and_all
from linkgauge.model.units import count_of

from .alike import CHANCE, classes, more_scatter
from .cases import Case, named, timed_cases_of
from .causes import Blame, fewest, remembered, suspects
from .relative_rates import noise_of
from .spikes import LEAST, NOISE, SCATTER, Steadiness, by_moment, pooled, steadiness_of

_MORE = 1.5
"""The least ratio of a part's scatter to that of its peers. The noise that any machine may have is
added to both."""


class _Shaken(msgspec.Struct, frozen=True):
    """A part whose cells may scatter, from the cell with the number `since` on."""

    blame: Blame
    since: int

    def strikes(self, cell: Steadiness) -> bool:
        return self.blame.part in cell.case.touched and cell.case.number >= self.since


_MANY_FEW = 0.25
"""The share of cells with too few samples to show scatter from which that is reported."""
_ROUNDS = 20
"""Rounds of the least squares, one part at a time."""
_SCATTERING = 8.0
"""The cost of blaming a part, as a logarithm of likelihood: one in 3000."""


_CLEARLY = 0.25
"""The logarithm from which a cell varies clearly more than usual. If all cells of a kind touch the
part, the usual scatter hides most of it."""


def check_scatter(evidence: Evidence) -> Iterator[Finding]:
    """Yields findings on parts whose cells scatter much more than their peers. Also yields notes on
    kinds of figures that always scatter."""
    cells = steadiness_of(evidence)
    bad = [cell for cell in cells if math.sqrt(cell.variance) > SCATTER]
    if len(bad) < 2:
        return
    blames = suspects([cell.case for cell in bad], [cell.case for cell in cells])
    shaken = _proven(_attributed(blames, cells), cells, CHANCE / len(blames))
    for one in shaken:
        yield _scatter(one, shaken, cells, evidence)
    left = [cell for cell in bad
            if cell.lasting > SCATTER and not any(one.strikes(cell) for one in shaken)]  # fmt: skip
    yield from _everywhere(left, cells, evidence)


def check_few_samples(evidence: Evidence) -> Iterator[Finding]:
    """Yields a finding on cells with too few samples to show whether they stall or scatter. If all
    cells have too few, there is no finding."""
    counts = [n for case in timed_cases_of(evidence) if (n := len(case.times))]
    few = [count for count in counts if count < LEAST]
    if _MANY_FEW < len(few) / (len(counts) or 1) < 1:
        found = f"fewer than {LEAST} samples of a cell do not show whether it stalls or varies"
        why = "so nothing looks for that in these cells: --samples 8 takes enough"
        yield Finding("scatter", "unknown", f"{len(few)} of {count_of(len(counts))}", found, why)


def _proven(
    suspected: Sequence[_Shaken], cells: Sequence[Steadiness], chance: float
) -> list[_Shaken]:
    """Returns the suspects that are proven to scatter more than their peers. The cells of a suspect
    are no peers of another suspect. Two suspects that touch each other's peers are proven together,
    or not at all."""
    left, proven = list(suspected), list[_Shaken]()
    while left:
        groups: list[tuple[_Shaken, ...]] = [(each,) for each in left]
        p, some = min(((_chance(of, proven, cells), of) for of in groups), key=itemgetter(0))
        if p >= chance:
            groups = list(itertools.combinations(left, 2))
            found = (((len(left) - 1) * _chance(of, proven, cells), of) for of in groups)
            p, some = min(found, key=itemgetter(0), default=(1.0, ()))
        if p >= chance:
            break
        proven += some
        left = [one for one in left if one not in some]
    return [one for one in suspected if one in proven]


def _chance(
    some: Sequence[_Shaken], proven: Sequence[_Shaken], cells: Sequence[Steadiness]
) -> float:
    """Returns the probability that chance alone makes the cells of these suspects scatter so much.
    It is the largest over the suspects."""
    return max(_by_chance(one, [*proven, *(o for o in some if o != one)], cells) for one in some)


def _by_chance(one: _Shaken, proven: Sequence[_Shaken], cells: Sequence[Steadiness]) -> float:
    """Returns the probability that chance alone makes the cells of this suspect scatter so much.
    All of its cells are tested together, and also each kind of cell for itself."""
    rest = [cell for cell in cells if not any(each.strikes(cell) for each in proven)]
    outside = [cell for cell in rest if one.blame.part not in cell.case.touched]
    inside = _alone(one, proven, cells)
    by_kind = grouped((noise_of(cell.case.touched), cell) for cell in inside).values()
    sides = [side for side in (inside, *by_kind) if pooled(side) > SCATTER]
    beside = (more_scatter(classes(_deviations(side), _deviations(outside))) for side in sides)
    found = [each.p for each in beside if each is not None and each.ratio > _MORE]
    return len(sides) * min(found) if found else 1.0


def _deviations(cells: Sequence[Steadiness]) -> Iterator[tuple[Hashable, float]]:
    for kinds, own in by_moment(cells):
        yield kinds, statistics.geometric_mean(math.hypot(one.lasting, NOISE) for one in own)


def _varies(cell: Steadiness) -> float:
    return math.sqrt(cell.variance + NOISE**2)


def _alone(
    one: _Shaken, shaken: Sequence[_Shaken], cells: Sequence[Steadiness]
) -> list[Steadiness]:
    """Returns the cells that only this suspect affects. If there are none, returns all cells that
    it affects."""
    inside = [cell for cell in cells if one.strikes(cell)]
    others = [each for each in shaken if each != one]
    return [c for c in inside if not any(each.strikes(c) for each in others)] or inside


def _attributed(blames: Sequence[Blame], cells: Sequence[Steadiness]) -> tuple[_Shaken, ...]:
    """Returns the smallest set of parts that explains which cells scatter, and how much."""

    def loss(shaken: tuple[_Shaken, ...]) -> float:
        """Returns the loss of a set of parts, which is minus the logarithm of the likelihood. A
        part adds its variance to that of its cells."""
        if len({each.blame.part for each in shaken}) < len(shaken):
            return math.inf
        with_parts = zip(cells, noises, *(struck[each] for each in shaken), strict=True)
        groups = grouped(((noise, *parts), cell) for cell, noise, *parts in with_parts)
        found: dict[tuple[Hashable, ...], tuple[float, int]] = {
            by: (pooled(group) ** 2 + NOISE**2, sum(cell.degrees for cell in group))
            for by, group in groups.items()
        }
        return sum(_SCATTERING + bool(each.since) for each in shaken) + sum(
            degrees * (math.log(expected) + variance / expected - 1) / 2
            for (variance, degrees), expected in zip(
                found.values(), _sums_of_parts(found), strict=True
            )
        )

    noises = [noise_of(cell.case.touched) for cell in cells]
    by_noise = grouped(zip(noises, map(_varies, cells), strict=True))
    usual = {noise: statistics.median(some) for noise, some in by_noise.items()}
    candidates = list[_Shaken]()
    for blame in blames:
        own = [(cell.case.number, min(_CLEARLY, math.log(_varies(cell) / usual[noise])))
               for cell, noise in zip(cells, noises, strict=True)
               if blame.part in cell.case.touched]  # fmt: skip
        candidates += (_Shaken(blame, since) for since in sorted({0, _onset(own)}))
    struck = {each: [each.strikes(cell) for cell in cells] for each in candidates}
    return fewest(candidates, remembered(loss))


def _onset(logs: Sequence[tuple[int, float]]) -> int:
    """Returns the number of the cell after the strongest change in these logarithms (by cumulative
    sums; E. Page, Biometrika 41, 1954)."""
    count, mean = len(logs), statistics.fmean(log for _, log in logs)
    later, found = 0.0, (0.0, 0)
    for before in range(count - 1, 0, -1):
        number, log = logs[before]
        later += log - mean
        found = max(found, (later / math.sqrt(before * (count - before)), number))
    return found[1]


def _sums_of_parts(found: Mapping[tuple[Hashable, ...], tuple[float, int]]) -> list[float]:
    """Returns the variance that each group of cells should have. It is the sum of what the group's
    kind of noise and each of its parts add. The summands are fitted by least squares. A key of
    `found` describes a group: its kind of noise, and whether each part belongs to it. A value has
    the measured variance and its degrees of freedom."""
    variances = [v for v, _ in found.values()]
    weights = [degrees / v**2 for v, degrees in found.values()]
    noises, *parts = zip(*found, strict=True)
    members = [*grouped((noise, at) for at, noise in enumerate(noises)).values()]
    members += [[at for at, has in enumerate(having) if has] for having in parts]
    added = [0.0] * len(members)
    sums = [0.0] * len(variances)
    for _ in range(_ROUNDS):
        for place, within in enumerate(members):
            weight = sum(weights[at] for at in within)
            if weight:
                left = sum((variances[at] - sums[at]) * weights[at] for at in within) / weight
                more = max(left, -added[place])
                added[place] += more
                for at in within:
                    sums[at] += more
    return [max(one, NOISE**2) for one in sums]


def _scatter(
    one: _Shaken, shaken: Sequence[_Shaken], cells: Sequence[Steadiness], evidence: Evidence
) -> Finding:
    inside = _alone(one, shaken, cells)
    alike = {cell.case.kind for cell in inside}
    others = [cell for cell in cells if one.blame.part not in cell.case.touched]
    peers = [cell for cell in others if cell.case.kind in alike]
    peers = [cell for cell in peers if not any(each.strikes(cell) for each in shaken)] or peers
    name = inside[0].case.name if len(inside) == 1 else f"{len(inside)} cells through it"
    vary, peers_of = ("varies", "its") if len(inside) == 1 else ("vary", "their")
    found = f"{name} {vary} by {pooled(inside):.1%}, {peers_of} peers by {pooled(peers):.1%}"
    why = "something else uses or disturbs the part, so its figures are less certain"
    clocks = [f"{tool}  # look for changing clocks" for tool in tools(evidence, "state")]
    remedy = (*tools(evidence, "users"), BUSIEST, *clocks)
    cases = [cell.case for cell in inside]
    return one.blame.finding("scatter", "warn", found, why, remedy, cases)


def _everywhere(
    left: Sequence[Steadiness], cells: Sequence[Steadiness], evidence: Evidence
) -> Iterator[Finding]:
    """Yields a note for each kind of figure that scatters equally on all parts, or that cannot be
    compared."""
    for kind, varying in grouped((_kind(cell.case), cell) for cell in left).items():
        if len(varying) < 2:
            continue
        all_parts = frozenset[str]().union(*(_ends(c.case) for c in cells if _kind(c.case) == kind))
        parts = frozenset[str]().union(*(_ends(cell.case) for cell in varying))
        found = f"they vary by {pooled(varying):.1%} on {_listed(parts)}"
        if len(all_parts) < 2:
            why = "there is nothing of this kind to compare with, so no part is to blame"
        elif evidence.machine.known.host.hypervisor:
            why = "no part varies more than its peers: others use the host of this virtual machine"
        else:
            why = "no part varies more than its peers: look for what else this machine does"
        cells_of = named(cell.case for cell in varying)
        yield Finding("scatter", "note", kind, found, why, (BUSIEST,), cells_of)


_OVER_PCIE: tuple[Kind, ...] = ("PCIe link", "PCIe link above")


def _kind(case: Case) -> str:
    """Returns the kind of figure of a cell, in words."""
    what = "copies" if case.result.better == "higher" else "latencies"
    devices = {end for end in _memories(case) if end.is_device}
    if not devices:
        return f"{what} within the host"
    if len(devices) < len(_memories(case)):
        over_pcie = any(part.kind in _OVER_PCIE for part in case.touched)
        return f"{what} over PCIe" if over_pcie else f"{what} between host and devices"
    return f"{what} between devices" if len(devices) > 1 else f"{what} within devices"


def _memories(case: Case) -> frozenset[Memory]:
    """Returns the memories between which the cell moves bytes. For work that moves no bytes,
    returns the place that does the work."""
    transfers = case.cell.transfers[:1] if case.cell.report.is_first else case.cell.transfers
    ends = (end for one in transfers for end in (*one.memories,) or (one.engine.owner,))
    return frozenset(end.place for end in ends)


def _ends(case: Case) -> frozenset[str]:
    """Returns the devices that a cell touches. For a cell that only uses the host, returns its
    nodes or CPUs."""
    ends = _memories(case)
    return frozenset(map(str, {end for end in ends if end.is_device} or ends))


_MOST_LISTED = 3


def _listed(parts: frozenset[str]) -> str:
    return f"{len(parts)} parts" if len(parts) > _MOST_LISTED else and_all(sorted(parts))
