"""Finds parts whose samples stall, or scatter, more than those of their peers.

The smallest set of parts that explains the cells best is suspected. Each is then compared with its
peers; the cells of other suspects are none. The evidence is that of a part, not of a cell: a cell
of six samples shows one stall, and forty such cells show what stalls."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

import msgspec

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import BUSIEST, kernel_log
from linkgauge.judge.vendor import tools
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind
from linkgauge.model.memory import Memory
from linkgauge.model.names import and_all
from linkgauge.model.stats.moments import moments
from linkgauge.model.stats.summary import deviation
from linkgauge.model.units import count_of

from .cases import Case, named, timed_cases_of
from .causes import Blame, fewest, remembered, suspects
from .leftover import excess, more_events
from .limits import LEAST_SHOWN, MORE_SCATTER, NOISE, SCATTER, UNSTEADY
from .spikes import Steadiness, by_moment, longest, pooled, steadiness_of
from .table import kinds_of

Cells = Sequence[Steadiness]


class _Suspect(msgspec.Struct, frozen=True):
    """A part whose cells may be unsteady, from the cell with the number `since` on. `tries` is the
    number of cells of which that one was chosen; 1 for all cells."""

    blame: Blame
    since: int
    tries: int = 1

    def has(self, cell: Steadiness) -> bool:
        return self.blame.part in cell.case.touched and cell.case.number >= self.since


def _suspects(
    blames: Sequence[Blame],
    cells: Cells,
    noises: Sequence[Hashable],
    value: Callable[[Steadiness], float],
    sums: Callable[[Steadiness], tuple[float, int]],
    unlikely: Callable[[float, int, float], float],
) -> tuple[_Suspect, ...]:
    """Returns the smallest set of parts that explains which cells are unsteady. A suspect begins
    where `value` changes most. `sums` of a cell has what occurred and in how many samples.
    Cells of the same noise have a level of their own, and each suspect adds to that of its cells;
    `unlikely` is minus the logarithm of the likelihood of such a level."""
    usual = {kind: statistics.median(map(value, some))
             for kind, some in grouped(zip(noises, cells, strict=True)).items()}  # fmt: skip
    candidates = list[_Suspect]()
    for blame in blames:
        own = [(cell.case.number, value(cell) - usual[noise])
               for cell, noise in zip(cells, noises, strict=True)
               if blame.part in cell.case.touched]  # fmt: skip
        candidates += [_Suspect(blame, 0)]
        if since := _onset(own):
            candidates += [_Suspect(blame, since, len(own))]
    affected = {one: [one.has(cell) for cell in cells] for one in candidates}
    counted = [sums(cell) for cell in cells]

    def loss(chosen: tuple[_Suspect, ...]) -> float:
        if len({one.blame.part for one in chosen}) < len(chosen):
            return math.inf
        keys = zip(noises, *(affected[one] for one in chosen), strict=True)
        groups = {key: (sum(events for events, _ in some), sum(samples for _, samples in some))
                  for key, some in grouped(zip(keys, counted, strict=True)).items()}  # fmt: skip
        cost = sum(math.log(one.tries / UNSTEADY) for one in chosen)
        for (events, samples), level in zip(groups.values(), _levels(groups), strict=True):
            cost += unlikely(events, samples, level)
        return cost

    return fewest(candidates, remembered(loss))


def _levels(groups: Mapping[tuple[Hashable, ...], tuple[float, int]]) -> list[float]:
    """Returns the level of each group of cells: the sum of what its kind of cells and each of its
    suspects add, fitted by least squares, one after another. A key has the kind, and whether each
    suspect has the group's cells."""
    levels = [events / samples for events, samples in groups.values()]
    weights = [samples / max(level, NOISE**2) ** 2
               for level, (_, samples) in zip(levels, groups.values(), strict=True)]  # fmt: skip
    noises, *suspects = zip(*groups, strict=True)
    members = [*grouped((noise, at) for at, noise in enumerate(noises)).values()]
    members += [[at for at, has in enumerate(having) if has] for having in suspects]
    added, fitted = [0.0] * len(members), [0.0] * len(levels)
    for _ in range(20):
        for place, within in enumerate(members):
            weight = sum(weights[at] for at in within)
            left = sum((levels[at] - fitted[at]) * weights[at] for at in within)
            more = max(left / weight, -added[place]) if weight else 0.0
            added[place] += more
            for at in within:
                fitted[at] += more
    return fitted


def _onset(values: Sequence[tuple[int, float]]) -> int:
    """Returns the number of the cell after the strongest change in these values (by cumulative
    sums; E. Page, Biometrika 41, 1954)."""
    count, mean = len(values), statistics.fmean(value for _, value in values)
    later, found = 0.0, (0.0, 0)
    for before in range(count - 1, 0, -1):
        number, value = values[before]
        later += value - mean
        found = max(found, (later / math.sqrt(before * (count - before)), number))
    return found[1]


def _sides(one: _Suspect, chosen: Sequence[_Suspect], cells: Cells) -> tuple[Cells, Cells]:
    """Returns the cells that only this suspect affects, or else all that it affects; and its peers,
    which no suspect affects, or else all others."""
    inside = [cell for cell in cells if one.has(cell)]
    others = [each for each in chosen if each != one]
    alone = [cell for cell in inside if not any(each.has(cell) for each in others)]
    rest = [cell for cell in cells if not any(each.has(cell) for each in chosen)]
    peers = [cell for cell in rest if one.blame.part not in cell.case.touched]
    every = [cell for cell in cells if one.blame.part not in cell.case.touched]
    return alone or inside, peers or every


# Stalls.

_WHY = "occasional stalls delay programs that wait for every transfer"
_NO_PEERS = "there is nothing of this kind to compare with, so no part is to blame"


def check_stalls(evidence: Evidence) -> Iterator[Finding]:
    """Yields findings on parts whose cells have samples that sometimes last much longer."""
    cells = steadiness_of(evidence)
    bad = [cell for cell in cells if cell.spikes]
    if not bad or not _are_stalls(bad, cells):
        return
    stall = longest(bad)
    shown = [cell for cell in cells if cell.spikes or _would_show(cell, stall)]
    blames = suspects([cell.case for cell in bad], [cell.case for cell in shown])
    chosen = _suspects(blames, shown, [None] * len(shown), _rate, _events_of, _unlikely_events)
    left, passing = bad, list[Blame]()
    for one in chosen:
        inside, peers = _sides(one, chosen, shown)
        affected = [cell for cell in inside if cell.spikes]
        p = more_events(*([(c.case.kind, (c.episodes, c.count)) for c in side]
                          for side in (inside, peers)))  # fmt: skip
        kind = one.blame.part.kind
        alike = {part for cell in shown for part in cell.case.touched if part.kind == kind}
        if p * len(alike) * one.tries < UNSTEADY and len(affected) > 1:
            if not _is_lasting(inside):
                passing.append(one.blame)
                continue
            left = [cell for cell in left if not one.has(cell)]
            yield _stall(one.blame, affected)
    if len(left) > 1:
        yield _anywhere(left, cells, passing)


def _rate(cell: Steadiness) -> float:
    return cell.episodes / cell.count


def _events_of(cell: Steadiness) -> tuple[float, int]:
    return cell.episodes, cell.count


def _unlikely_events(events: float, samples: int, level: float) -> float:
    level = min(max(level, 1 / (samples + 2)), 1 - 1 / (samples + 2))
    return -events * math.log(level) - (samples - events) * math.log1p(-level)


def _is_lasting(cells: Cells) -> bool:
    """Whether spikes occur during the whole time in which a part was measured, or since the first
    of them: in each quarter of the visits. A neighbour's passing disturbance does not return."""
    visits = sorted(
        (at, cell.case.number, any(place in visit for place in cell.spikes))
        for cell in cells for at, visit in enumerate(cell.visits)
    )  # fmt: skip
    has = [spiky for *_, spiky in visits]
    has = has[has.index(True) :]
    quarter = max(1, len(has) // 4)
    return all(any(has[at : at + quarter]) for at in range(0, len(has) - quarter + 1, quarter))


def _stall(blame: Blame, affected: Cells) -> Finding:
    remedy = (
        "# Look for monitoring that polls the device, interrupts, CPU steal, or a retraining link:",
        kernel_log("aer", "pciehp", "xid"),
        BUSIEST,
    )
    cases = [cell.case for cell in affected]
    return blame.finding("stall", "warn", _longest_of(affected), _WHY, remedy, cases)


def _anywhere(affected: Cells, every: Cells, passing: Sequence[Blame]) -> Finding:
    """Returns the finding for spikes that cannot be blamed on one part. The `passing` parts have
    more of them, but not all the time."""
    alike = grouped((cell.case.kind, cell.case.touched) for cell in every)
    said = "no part has more such samples than its peers"
    if passing:
        said = f"{and_all(str(one.part) for one in passing)} had more than its peers for a while"
    elif all(len(set(alike[cell.case.kind])) == 1 for cell in affected):
        said = _NO_PEERS
    found = f"{_longest_of(affected)}; {said}"
    subject = f"{len(affected)} of {count_of(len(every))}"
    cells = named(cell.case for cell in affected)
    return Finding("stall", "note", subject, found, _WHY, (BUSIEST,), cells)


def _longest_of(affected: Cells) -> str:
    """Returns the longest spike in words: `2 of 128 samples of core_to_core_latency (0, 1) took up
    to 65 times as long as usual`."""
    worst = max(affected, key=lambda cell: cell.longest)
    more = f"; {len(affected) - 1} more of the cells have such samples" if len(affected) > 1 else ""
    return (
        f"{len(worst.spikes)} of {worst.count} samples of {worst.case.name} took up to "
        f"{worst.longest:.3g} times as long as usual{_period(worst)}{more}"
    )


def _would_show(cell: Steadiness, stall: float | None) -> bool:
    """Whether a stall of this many seconds would be visible as a spike in this cell."""
    if stall is None or cell.seconds is None:
        return True
    return 1 + stall / cell.seconds > max(cell.least, 2 * cell.longest - 1)


def _are_stalls(bad: Cells, cells: Cells) -> bool:
    """Whether these cells have stalls and do not just scatter. There must be several cells, and
    without the spikes they must be about as steady as the others."""
    if len(bad) < 2:
        return False
    whole = math.sqrt(statistics.fmean(deviation(cell.times) ** 2 for cell in bad))
    rest, usual = pooled(bad), pooled([cell for cell in cells if not cell.spikes])
    return whole > (2 if rest < max(SCATTER, MORE_SCATTER * usual) else 4) * rest


def _period(cell: Steadiness) -> str:
    """Returns the distance between spikes in words, or an empty text if it is not regular."""
    gaps = {later - earlier for earlier, later in zip(cell.spikes, cell.spikes[1:], strict=False)}
    return f", every {gaps.pop()} samples" if len(gaps) == 1 and gaps != {1} else ""


# Scatter.


def check_scatter(evidence: Evidence) -> Iterator[Finding]:
    """Yields findings on parts whose cells scatter much more than their peers. Also yields notes on
    kinds of figures that always scatter."""
    cells = steadiness_of(evidence)
    bad = [cell for cell in cells if math.sqrt(cell.variance) > SCATTER]
    if len(bad) < 2:
        return
    blames = suspects([cell.case for cell in bad], [cell.case for cell in cells])
    noises = [kinds_of(cell.case.touched) for cell in cells]
    chosen = _suspects(blames, cells, noises, _log_scatter, _squares_of, _unlikely_scatter)
    chance = UNSTEADY / len(blames)
    shaken = [one for one in chosen if _scatters(one, chosen, cells, chance / one.tries)]
    for one in shaken:
        yield _scatter(one, chosen, cells, evidence)
    left = [cell for cell in bad
            if cell.lasting > SCATTER and not any(one.has(cell) for one in shaken)]  # fmt: skip
    yield from _everywhere(left, cells, evidence)


def _log_scatter(cell: Steadiness) -> float:
    return math.log(math.hypot(cell.lasting, NOISE))


def _by_moment(cells: Cells) -> Iterator[tuple[Hashable, float]]:
    for kinds, own in by_moment(cells):
        yield kinds, statistics.fmean(map(_log_scatter, own))


def _squares_of(cell: Steadiness) -> tuple[float, int]:
    return (cell.variance + NOISE**2) * cell.degrees, cell.degrees


def _unlikely_scatter(squares: float, degrees: int, level: float) -> float:
    level = max(level, NOISE**2)
    return (degrees * math.log(level) + squares / level) / 2


def _scatters(one: _Suspect, chosen: Sequence[_Suspect], cells: Cells, chance: float) -> bool:
    """Whether the cells of this suspect scatter more than its peers: all of its cells together, or
    the cells of one kind."""
    inside, peers = _sides(one, chosen, cells)
    by_kind = grouped((kinds_of(cell.case.touched), cell) for cell in inside).values()
    sides = [side for side in (inside, *by_kind) if pooled(side) > SCATTER]
    others = moments(_by_moment(peers))
    beside = (excess(moments(_by_moment(side)), others) for side in sides)
    return any(
        each.gain > math.log(MORE_SCATTER) and each.p * len(sides) < chance
        for each in beside if each is not None
    )  # fmt: skip


def _scatter(
    one: _Suspect, chosen: Sequence[_Suspect], cells: Cells, evidence: Evidence
) -> Finding:
    inside, others = _sides(one, chosen, cells)
    alike = {cell.case.kind for cell in inside}
    peers = [cell for cell in others if cell.case.kind in alike] or others
    name = inside[0].case.name if len(inside) == 1 else f"{len(inside)} cells through it"
    vary, peers_of = ("varies", "its") if len(inside) == 1 else ("vary", "their")
    found = f"{name} {vary} by {pooled(inside):.1%}, {peers_of} peers by {pooled(peers):.1%}"
    why = "something else uses or disturbs the part, so its figures are less certain"
    clocks = [f"{tool}  # look for changing clocks" for tool in tools(evidence, "state")]
    remedy = (*tools(evidence, "users"), BUSIEST, *clocks)
    cases = [cell.case for cell in inside]
    return one.blame.finding("scatter", "warn", found, why, remedy, cases)


def check_few_samples(evidence: Evidence) -> Iterator[Finding]:
    """Yields a finding on cells with too few samples to show whether they stall or scatter. If all
    cells have too few, there is no finding."""
    counts = [n for case in timed_cases_of(evidence) if (n := len(case.times))]
    few = [count for count in counts if count < LEAST_SHOWN]
    if 1 / 4 < len(few) / (len(counts) or 1) < 1:
        found = f"fewer than {LEAST_SHOWN} samples do not show whether a cell stalls or varies"
        why = "so nothing looks for that in these cells: --samples 8 takes enough"
        yield Finding("scatter", "unknown", f"{len(few)} of {count_of(len(counts))}", found, why)


def _everywhere(left: Cells, cells: Cells, evidence: Evidence) -> Iterator[Finding]:
    """Yields a note for each kind of figure that scatters equally on all parts, or that cannot be
    compared."""
    for kind, varying in grouped((_kind(cell.case), cell) for cell in left).items():
        if len(varying) < 2:
            continue
        all_parts = frozenset[str]().union(*(_ends(c.case) for c in cells if _kind(c.case) == kind))
        parts = frozenset[str]().union(*(_ends(cell.case) for cell in varying))
        found = f"they vary by {pooled(varying):.1%} on {_listed(parts)}"
        if len(all_parts) < 2:
            why = _NO_PEERS
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


def _listed(parts: frozenset[str]) -> str:
    return f"{len(parts)} parts" if len(parts) > 3 else and_all(sorted(parts))


CHECKS = (check_stalls, check_scatter)


def unsteady(evidence: Evidence) -> frozenset[str]:
    """Returns the names of the cells that show a part to be unsteady."""
    found = (finding for check in CHECKS for finding in check(evidence))
    return frozenset(cell for each in found if each.severity == "warn" for cell in each.cells)
