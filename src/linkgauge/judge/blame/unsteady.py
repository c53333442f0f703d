"""Finds parts whose samples stall, or scatter, more than those of their peers.

The smallest set of parts that explains the cells best is suspected. Each is then compared with its
peers; the cells of other suspects are none. The evidence is that of a part, not of a cell: a cell
of six samples shows one stall, and forty such cells show what stalls."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from linkgauge.judge.findings import Evidence, Finding
from linkgauge.judge.remedies import BUSIEST, kernel_log
from linkgauge.judge.vendor import tools
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Kind
from linkgauge.model.memory import Memory
from linkgauge.model.names import and_all
from linkgauge.model.stats.moments import Moments
from linkgauge.model.stats.summary import deviation
from linkgauge.model.units import count_of

from .cases import Case, listed, named, timed_cases_of
from .causes import Blame, suspects
from .excess import Side, excess
from .explain import Search, Suspect
from .limits import ENOUGH, MORE_SCATTER, NOISE, SCATTER, SPARED, UNSTEADY
from .spikes import Steadiness, pooled, steadiness_of
from .table import Row, kinds_of

Cells = Sequence[Steadiness]


class _Odd(NamedTuple):
    """A part whose cells are less steady than those of its peers, with these cells and the
    peers'."""

    blame: Blame
    inside: Cells
    peers: Cells


class _Measure(NamedTuple):
    """What is compared of cells: a `value` with the standard deviation `error` that chance gives
    it, which exceeds that of steady cells by `least` or more in a cell that `is_bad`. `usual` is
    the value of steady cells of a kind, infinite if only others of the kind show it."""

    value: Callable[[Steadiness], float]
    error: Callable[[Steadiness], float]
    is_bad: Callable[[Steadiness], bool]
    least: float
    usual: Callable[[Case], float]


def _odd_parts(cells: Cells, of: _Measure) -> Iterator[_Odd]:
    """Yields the parts that explain which cells are unsteady, if all cells of a part together, or
    those of one kind, differ from the cells of its peers by more than chance."""
    rows = [row for own in grouped((kinds_of(cell.case), cell) for cell in cells).values()
            for row in _rows(own, of)]  # fmt: skip
    blames = {one.part: one for one in suspects(
        [row.case for row in rows if row.slow], [row.case for row in rows])}  # fmt: skip
    search = Search(rows, list(blames.values()), drifts=False)
    for suspect in search.chosen:
        inside, peers = _sides(suspect, search.chosen, cells)
        alike = sum(part.kind == suspect.part.kind for part in blames)
        tries = alike * (len(search.touching[suspect.part]) if suspect.since else 1)
        sides = list(_compared(inside, peers, of))
        if sum(side.inside.n for side in sides) < ENOUGH:
            continue
        found = excess(sides, statistics.median(map(of.error, inside)))
        if found and found.gain >= of.least and found.p * tries < UNSTEADY:
            # Of parts that explain the rows equally well, the one that most bad cells use.
            bad = [cell.case.touched for cell in cells if of.is_bad(cell)]
            first, *others = sorted(
                (suspect.part, *search.as_good(suspect)),
                key=lambda part: -sum(part in one for one in bad),
            )
            blame = blames[first].beside(blames[part] for part in others)
            yield _Odd(blame, inside, peers)


def _rows(cells: Cells, of: _Measure) -> Iterator[Row]:
    """Yields the rows of cells of one kind. A row is slow by as much as its cell is less steady
    than the steadiest quarter of them. Chance accounts for half the loss that a blamed part may
    leave unexplained. A row counts less if parts may differ by more than chance alone."""
    values = [of.value(cell) for cell in cells]
    lowest = sorted(values)[len(values) // 4]
    top, unit = min(lowest, of.usual(cells[0].case)), math.sqrt(SPARED) / 2
    bad = [of.is_bad(cell) and value > top + of.least
           for cell, value in zip(cells, values, strict=True)]  # fmt: skip
    usual = statistics.fmean(
        [value for value, is_bad in zip(values, bad, strict=True) if not is_bad] or [top]
    )
    for cell, value, is_bad in zip(cells, values, bad, strict=True):
        error = of.error(cell)
        lost = min(0.0, usual - value) / error * unit
        yield Row(case=cell.case, peers=kinds_of(cell.case), lost=lost, relative=lost,
                  weight=error / math.hypot(error, of.least), slow=is_bad,
                  low=lowest > top, off=math.inf)  # fmt: skip


def _compared(inside: Cells, peers: Cells, of: _Measure) -> Iterator[Side]:
    """Yields both sides of each kind of cells, with a value for each moment, and those of the cells
    that have no peers of their kind beside the others that nobody disturbs."""
    own, others = ({
        kind: Moments.over(statistics.fmean(map(of.value, cells)) for cells in some)
        for kind, some in grouped(
            (cells[0].case.kind, cells)
            for cells in grouped((cell.moment, cell) for cell in side).values()
        ).items()
    } for side in (inside, peers))  # fmt: skip
    for kind in own.keys() & others.keys():
        yield Side(None, own[kind], others[kind])
    calm = [[of.value(cell) for cell in side if _is_inside(cell.case) and cell.case.kind not in out]
            for side, out in ((inside, others), (peers, ()))]  # fmt: skip
    if all(calm):
        yield Side(None, Moments.over(calm[0]), Moments.over(calm[1]))


def _is_inside(case: Case) -> bool:
    """Whether nothing outside the devices and their fabric carries the cell out, so that nobody
    else disturbs it."""
    return case.result.better == "higher" and kinds_of(case) <= _INSIDE


_INSIDE = frozenset[Kind](("device", "link", "switch"))


def _sides(one: Suspect, chosen: Sequence[Suspect], cells: Cells) -> tuple[Cells, Cells]:
    """Returns the cells that only this suspect affects, or else all that it affects; and its peers,
    which no suspect affects, or else all others."""
    inside = [cell for cell in cells if one.has(cell.case)]
    others = [each for each in chosen if each != one]
    alone = [cell for cell in inside if not any(each.has(cell.case) for each in others)]
    every = [cell for cell in cells if one.part not in cell.case.touched]
    rest = [cell for cell in every if not any(each.has(cell.case) for each in others)]
    return alone or inside, rest or every


# Stalls.

_WHY = "occasional stalls delay programs that wait for every transfer"


def check_stalls(evidence: Evidence) -> Iterator[Finding]:
    """Yields findings on parts whose cells have samples that sometimes last much longer."""
    cells = steadiness_of(evidence)
    bad = [cell for cell in cells if cell.spikes]
    if not bad or not _are_stalls(bad, cells):
        return
    left, passing = bad, list[Blame]()
    for odd in _odd_parts(cells, _STALLS):
        affected = [cell for cell in odd.inside if cell.spikes]
        if len(affected) > 1 and not _is_lasting(odd.inside):
            passing.append(odd.blame)
        elif len(affected) > 1:
            left = [cell for cell in left if cell not in affected]
            yield _stall(odd.blame, affected)
    if len(left) > 1:
        yield _anywhere(left, cells, passing)


_STALLS = _Measure(
    # The root of a rate of events is off by the same in all cells of as many samples.
    value=lambda cell: math.sqrt(cell.episodes / cell.count),
    error=lambda cell: 1 / (2 * math.sqrt(cell.count)),
    is_bad=lambda cell: bool(cell.spikes),
    least=0.0,
    usual=lambda case: 0.0,
)


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
    said = _without_peers(affected, every)
    if passing:
        said = f"{and_all(str(one.part) for one in passing)} had more than its peers for a while"
    said = said or "no part is shown to have more such samples than its peers"
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
    shaken = list(_odd_parts(cells, _SCATTER))
    for odd in shaken:
        yield _scatter(odd, evidence)
    left = [cell for cell in bad if cell.lasting > SCATTER
            and not any(cell in odd.inside for odd in shaken)]  # fmt: skip
    yield from _everywhere(left, cells, evidence)


_SCATTER = _Measure(
    value=lambda cell: math.log(math.hypot(cell.lasting, NOISE)),
    error=lambda cell: 1 / math.sqrt(2 * cell.degrees),
    is_bad=lambda cell: cell.lasting > SCATTER,
    least=math.log(MORE_SCATTER),
    usual=lambda case: math.log(NOISE) if _is_inside(case) else math.inf,
)


def _scatter(odd: _Odd, evidence: Evidence) -> Finding:
    inside, others = odd.inside, odd.peers
    alike = {cell.case.kind for cell in inside}
    peers = [cell for cell in others if cell.case.kind in alike] or others
    name = inside[0].case.name if len(inside) == 1 else f"{len(inside)} cells through it"
    vary, peers_of = ("varies", "its") if len(inside) == 1 else ("vary", "their")
    found = f"{name} {vary} by {pooled(inside):.1%}, {peers_of} peers by {pooled(peers):.1%}"
    why = "something else uses or disturbs the part, so its figures are less certain"
    clocks = [f"{tool}  # look for changing clocks" for tool in tools(evidence, "state")]
    remedy = (*tools(evidence, "users"), BUSIEST, *clocks)
    cases = [cell.case for cell in inside]
    return odd.blame.finding("scatter", "warn", found, why, remedy, cases)


def check_few_samples(evidence: Evidence) -> Iterator[Finding]:
    """Yields a finding on cells with too few samples to show whether they stall or scatter. If all
    cells have too few, there is no finding."""
    counts = [n for case in timed_cases_of(evidence) if (n := len(case.times))]
    few = [count for count in counts if count < ENOUGH]
    if 1 / 4 < len(few) / (len(counts) or 1) < 1:
        found = f"fewer than {ENOUGH} samples do not show whether a cell stalls or varies"
        why = "so nothing looks for that in these cells: --samples 8 takes enough"
        yield Finding("scatter", "unknown", f"{len(few)} of {count_of(len(counts))}", found, why)


def _everywhere(left: Cells, cells: Cells, evidence: Evidence) -> Iterator[Finding]:
    """Yields a note for each kind of figure that scatters equally on all parts, or that cannot be
    compared."""
    for kind, varying in grouped((_kind(cell.case), cell) for cell in left).items():
        if len(varying) < 2:
            continue
        parts = frozenset[str]().union(*(_ends(cell.case) for cell in varying))
        found = f"they vary by {pooled(varying):.1%} on {_listed(parts)}"
        why = "no part varies more than its peers: look for what else this machine does"
        if evidence.machine.known.host.hypervisor:
            why = "no part varies more than its peers: others use the host of this virtual machine"
        why = _without_peers(varying, cells) or why
        cells_of = named(cell.case for cell in varying)
        yield Finding("scatter", "note", kind, found, why, (BUSIEST,), cells_of)


def _without_peers(affected: Cells, every: Cells) -> str:
    """Returns, in words, that nothing tells whether parts are to blame that all cells of these
    kinds use; an empty text if there are none."""
    kinds = {cell.case.kind for cell in affected}
    alike = [cell.case.touched for cell in every if cell.case.kind in kinds]
    shared = frozenset.intersection(*alike)
    if shared == frozenset.union(*alike):
        return "there is nothing of this kind to compare with, so no part is to blame"
    said = f"{listed(sorted(shared, key=str))}: there is nothing of this kind to compare with"
    return f"all of their kind use {said}" if shared else ""


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
