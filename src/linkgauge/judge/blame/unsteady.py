"""Finds parts that stall or scatter more than their peers. Parts are judged instead of cells: a
cell of six samples may show one stall, but only many cells show which part stalls."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import BUSIEST, kernel_log
from linkgauge.judge.vendor import tools
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind
from linkgauge.model.names import and_all
from linkgauge.model.stats.moments import Moments
from linkgauge.model.units import count_of

from .cases import Case, listed, named, timed_cases_of
from .causes import Blame, suspects
from .excess import Side, excess
from .explain import Search, Suspect
from .limits import ENOUGH, MORE_SCATTER, NOISE, SCATTER, SHARED, SIGMAS, SPARED, SPIKE, UNSTEADY
from .spikes import Steadiness, pooled, steadiness_of
from .table import Row, kinds_of

Cells = Sequence[Steadiness]


class _Measure(NamedTuple):
    """A measure of unsteadiness. `error` is the standard deviation of `value` by chance. A cell
    that `is_bad` exceeds steady cells by at least `least`, in `fewest` cells or more. `usual` is
    the value of steady cells of a kind, given that of the host's copies (infinite: only others of
    the kind show it). Healthy copies by devices do not exceed `calm`, on shared hosts `shared`."""

    value: Callable[[Steadiness], float]
    error: Callable[[Steadiness], float]
    is_bad: Callable[[Steadiness], bool]
    least: float
    fewest: int
    usual: Callable[[Case, float], float]
    calm: float
    shared: float


def _odd_parts(cells: Cells, of: _Measure) -> Iterator[tuple[Blame, Cells, Cells]]:
    alike = grouped(((kinds_of(c.case), c.case.result.better), c) for c in cells).values()
    within = [of.value(cell) for cell in cells if _is_within(cell.case, _HOST)]
    host = min(of.shared, max(of.calm, _quartile(within or [of.shared])))
    rows = [row for own in alike for row in _rows(own, of, host)]
    blames = suspects(rows)
    search = Search(rows, blames, drifts=False)
    for suspect in search.chosen:
        equivalent = len({s.part for s in search.candidates if s.part.kind == suspect.part.kind})
        ways = [suspect, *(one for one in search.candidates if one.part == suspect.part)]
        for way in ways:
            inside, peers = _sides(way, search.chosen, cells)
            tries = equivalent * (len(search.touching[way.part]) if way.since else 1)
            # What began in mid-run, and spared no cell since, is of the moment, not of the part.
            is_of_part = not way.since or any(one.case.number > way.since for one in peers)
            if is_of_part and _chance(inside, peers, of) * tries < UNSTEADY:
                others = map(blames.__getitem__, search.as_good(suspect))
                yield blames[suspect.part].beside(others), inside, peers
                break


def _chance(inside: Cells, peers: Cells, of: _Measure) -> float:
    """Returns the probability that chance alone makes cells so unsteady; 1 if they hardly are."""
    sides = list(_compared(inside, peers, of))
    found = excess(sides, statistics.median(map(of.error, inside)))
    is_shown = sum(side.inside.n for side in sides) >= of.fewest
    return found.p if found and is_shown and found.gain >= of.least else 1.0


def _quartile(values: Sequence[float]) -> float:
    return sorted(values)[len(values) // 4]


def _rows(cells: Cells, of: _Measure, host: float) -> Iterator[Row]:
    """Yields rows. Chance alone causes half of the loss that a row may leave unexplained."""
    values = {cell: of.value(cell) for cell in cells}
    lowest, unit = _quartile([*values.values()]), math.sqrt(SPARED) / 2
    # Where all use one part, no cell of the kind shows what is usual without it.
    is_lone = frozenset.intersection(*(cell.case.touched for cell in cells))
    top = min(lowest, of.usual(cells[0].case, host if is_lone else of.shared))
    bad = {cell for cell in cells if of.is_bad(cell) and values[cell] > top + of.least}
    steady = [values[cell] for cell in cells if cell not in bad and lowest <= top]
    usual = statistics.fmean(steady or [top])
    for cell in cells:
        error = of.error(cell)
        lost = min(0.0, usual - values[cell]) / error * unit
        yield Row(case=cell.case, peers=kinds_of(cell.case), lost=lost, relative=lost,
                  weight=error / math.hypot(error, of.least), slow=cell in bad,
                  low=lowest > top, off=math.inf)  # fmt: skip


def _compared(inside: Cells, peers: Cells, of: _Measure) -> Iterator[Side]:
    """Yields comparisons by class or, if no cell has peers, with the most that is healthy."""
    kinds = {cell.case.kind for cell in inside} & {cell.case.kind for cell in peers}

    def by_kind(cells: Cells) -> dict[Hashable, list[float]]:
        values: dict[Hashable, list[float]] = {}
        for cell in cells:
            known, value = cell.case.kind, of.value(cell)
            if not kinds and cell.case.result.better == "higher":
                known = _INSIDE if _is_within(cell.case, _INSIDE) else _HOST
            values.setdefault(known, []).append(max(value, of.calm) if known is _HOST else value)
        return values

    own, others = by_kind(inside), by_kind(peers)
    if own.keys().isdisjoint(others) and _HOST in own:
        others[_HOST] = [of.shared] * len(own[_HOST])
    for known, some in own.items():
        if known in others:
            yield Side(None, Moments.over(some), Moments.over(others[known]))


_INSIDE, _HOST = frozenset[Kind](("device", "link", "switch")), frozenset[Kind](("node", "link"))
"""The kinds of parts of devices and their fabric, which nobody else uses, and of the host alone."""


def _is_within(case: Case, kinds: frozenset[Kind]) -> bool:
    return case.result.better == "higher" and kinds_of(case) <= kinds


def _sides(one: Suspect, chosen: Sequence[Suspect], cells: Cells) -> tuple[Cells, Cells]:
    others = [cell for cell in cells if not one.has(cell.case)]
    calm = [cell for cell in others if not any(each.has(cell.case) for each in chosen)]
    return [cell for cell in cells if one.has(cell.case)], calm or others


def _among_peers(said: str, affected: Cells, every: Cells) -> str:
    kinds = {cell.case.kind for cell in affected}
    equivalent = [cell.case.touched for cell in every if cell.case.kind in kinds]
    shared = frozenset.intersection(*equivalent)
    if shared == frozenset.union(*equivalent):
        return "there is no similar part to compare with, so no part is to blame"
    those = listed(sorted(shared, key=str))
    more = f"; all of these cells use {those}, which may cause it: it has no peer to compare with"
    return said + more if shared else said


# Stalls.

_WHY = "occasional stalls delay programs that wait for every transfer"
_STALLS = _Measure(
    # The root of a rate of events is off by the same in all cells of as many samples.
    value=lambda cell: math.sqrt(cell.episodes / cell.count),
    error=lambda cell: 1 / (2 * math.sqrt(cell.count)),
    is_bad=lambda cell: bool(cell.spikes),
    least=0.0,
    fewest=2,
    usual=lambda case, host: 0.0,
    calm=math.sqrt(SCATTER),
    shared=math.sqrt(SHARED),
)


def check_stalls(evidence: Evidence) -> Iterator[Finding]:
    cells = steadiness_of(evidence)
    bad = [cell for cell in cells if cell.spikes]
    if len(bad) < 2:
        return
    single = [cell for cell in bad if len(cell.case.cell.transfers) == 1 and _seconds(cell)]
    stall = statistics.median([(one.longest - 1) * _seconds(one) for one in single] or [math.inf])
    shown = [cell for cell in cells if cell.spikes or _would_show(cell, stall)]
    left, passing = bad, list[str]()
    for blame, inside, _ in _odd_parts(shown, _STALLS):
        affected = [cell for cell in inside if cell.spikes]
        if len(affected) > 1 and not _is_lasting(inside):
            passing.append(str(blame.part))
        elif len(affected) > 1:
            left = [cell for cell in left if cell not in affected]
            look = "# Look for a monitor that polls the device, many interrupts, CPU steal, or a "
            remedy = (f"{look}link that retrains:", kernel_log("aer", "pciehp", "xid"), BUSIEST)
            own = [cell.case for cell in affected]
            yield blame.finding("stall", "warn", _longest_of(affected), _WHY, remedy, own)
    if len(left) > 1:
        more = "more such samples than its peers"
        said = _among_peers(f"no part has {more}", left, cells)
        said = f"{and_all(passing)} had more than its peers for a while" if passing else said
        subject, cases = f"{len(left)} of {count_of(len(cells))}", named(cell.case for cell in left)
        found = f"{_longest_of(left)}; {said}"
        yield Finding("stall", "note", subject, found, _WHY, (BUSIEST,), cases)


def _seconds(cell: Steadiness) -> float:
    """Returns the seconds that a sample lasts, or 0 for a latency."""
    of, is_rate = cell.case.cell, cell.case.result.better == "higher"
    return (of.bytes or 0) * (of.loops or 0) * statistics.median(cell.case.times) * is_rate


def _would_show(cell: Steadiness, stall: float) -> bool:
    """Whether a stall of this many seconds would be a spike in this cell. Long samples hide it."""
    least = max(SPIKE, SIGMAS * math.sqrt(cell.variance), 2 * (cell.longest - 1))
    return _seconds(cell) * least <= stall


def _is_lasting(cells: Cells) -> bool:
    """Whether spikes occur in each quarter since the first one, unlike a passing disturbance."""
    repetitions = sorted(
        (at, cell.case.number, any(place in repetition for place in cell.spikes))
        for cell in cells for at, repetition in enumerate(cell.repetitions)
    )  # fmt: skip
    has = [spiky for *_, spiky in repetitions]
    has = has[has.index(True) :]
    quarter = max(1, len(has) // 4)
    return all(any(has[at : at + quarter]) for at in range(0, len(has) - quarter + 1, quarter))


def _longest_of(affected: Cells) -> str:
    worst = max(affected, key=lambda cell: cell.longest)
    more = f"; {count_of(len(affected) - 1, 'other cell')} had such samples" if affected[1:] else ""
    gaps = {later - earlier for earlier, later in itertools.pairwise(worst.spikes)}
    period = f", {gaps.pop()} samples apart" if len(gaps) == 1 and gaps != {1} else ""
    return (
        f"{len(worst.spikes)} of {worst.count} samples of {worst.case.name} took up to "
        f"{worst.longest:.3g} times as long as usual{period}{more}"
    )


# Scatter.

_SCATTER = _Measure(
    value=lambda cell: math.log(math.hypot(cell.lasting, NOISE)),
    error=lambda cell: 1 / math.sqrt(2 * cell.degrees),
    is_bad=lambda cell: cell.lasting > SCATTER,
    least=math.log(MORE_SCATTER),
    fewest=ENOUGH,
    usual=lambda case, host: math.log(NOISE) if _is_within(case, _INSIDE) else _shared(case, host),
    calm=math.log(math.hypot(SCATTER, NOISE)),
    shared=math.log(math.hypot(SHARED, NOISE)),
)


def _shared(case: Case, host: float) -> float:
    return host if case.result.better == "higher" else math.inf


def check_scatter(evidence: Evidence) -> Iterator[Finding]:
    cells = steadiness_of(evidence)
    left = [cell for cell in cells if cell.lasting > SCATTER]
    if len(left) < 2:
        return
    for blame, inside, peers in _odd_parts(cells, _SCATTER):
        left = [cell for cell in left if cell not in inside]
        yield _scatter(blame, inside, peers, evidence)
    for kind, varying in grouped((_kind(cell.case), cell) for cell in left).items():
        if len(varying) > 1:
            parts = frozenset[str]().union(*(_ends(cell.case) for cell in varying))
            on = f"{len(parts)} parts" if len(parts) > 3 else and_all(sorted(parts))
            found = f"they vary by {pooled(varying):.1%} on {on}"
            why = "look for what else this machine does"
            if evidence.machine.known.host.hypervisor:
                why = "others may use the host of this virtual machine"
            why = _among_peers(f"no part varies more than its peers: {why}", varying, cells)
            cases = named(cell.case for cell in varying)
            yield Finding("scatter", "note", kind, found, why, (BUSIEST,), cases)


def _scatter(blame: Blame, inside: Cells, others: Cells, evidence: Evidence) -> Finding:
    equivalent = {cell.case.kind for cell in inside}
    peers = [cell for cell in others if cell.case.kind in equivalent] or others
    name = inside[0].case.name if len(inside) == 1 else f"{len(inside)} cells through it"
    vary, peers_of = ("varies", "its") if len(inside) == 1 else ("vary", "their")
    found = f"{name} {vary} by {pooled(inside):.1%}, {peers_of} peers by {pooled(peers):.1%}"
    why = "something else uses or disturbs the part, so its figures are less certain"
    clocks = [f"{tool}  # look for changing clocks" for tool in tools(evidence, "state")]
    remedy = (*tools(evidence, "users"), BUSIEST, *clocks)
    return blame.finding("scatter", "warn", found, why, remedy, [cell.case for cell in inside])


def check_few_samples(evidence: Evidence) -> Iterator[Finding]:
    counts = [n for case in timed_cases_of(evidence) if (n := len(case.times))]
    few = [count for count in counts if count < ENOUGH]
    if 1 / 4 < len(few) / (len(counts) or 1) < 1:
        found = f"fewer than {ENOUGH} samples do not show whether a cell stalls or varies"
        why = "so nothing looks for that in these cells: --samples 8 takes enough"
        yield Finding("scatter", "unknown", f"{len(few)} of {count_of(len(counts))}", found, why)


def _kind(case: Case) -> str:
    what = "copies" if case.result.better == "higher" else "latencies"
    devices, every = _ends(case), case.cell.places
    if not any(place.is_device for place in every):
        return f"{what} within the host"
    if len(devices) < len(every):
        over_pcie = any(part.kind in ("PCIe link", "PCIe link above") for part in case.touched)
        return f"{what} over PCIe" if over_pcie else f"{what} between host and devices"
    return f"{what} between devices" if len(devices) > 1 else f"{what} within devices"


def _ends(case: Case) -> frozenset[str]:
    places = case.cell.places
    return frozenset(map(str, [place for place in places if place.is_device] or places))


CHECKS = (check_stalls, check_scatter)


def unsteady(evidence: Evidence) -> frozenset[str]:
    found = (finding for check in CHECKS for finding in check(evidence))
    return frozenset(cell for each in found if each.severity == "warn" for cell in each.cells)
