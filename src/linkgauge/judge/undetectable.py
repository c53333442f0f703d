"""Finds, for each part of the machine, the largest loss that the figures would not show. A cell
shows a loss if it is slower than its expected figure, than earlier runs, or than its fastest peers
that do not use the part. All cells of a part may also show a loss together."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from operator import attrgetter

from linkgauge.judge.blame.cases import listed
from linkgauge.judge.blame.leftover import Comparison, compared
from linkgauge.judge.blame.limits import CHANCE, LEAST_LOSS, PART, SHOWN, SLOW, SPARED
from linkgauge.judge.blame.lonely import alone, shows
from linkgauge.judge.blame.table import Row, rows_of
from linkgauge.judge.expected.expect import Expectations
from linkgauge.judge.expected.link_sharing import LinkSharing
from linkgauge.judge.findings import ANY, Evidence, Finding, Undetectable
from linkgauge.judge.verdict import bounds
from linkgauge.model.grouped import grouped
from linkgauge.model.hardware.part import Part
from linkgauge.model.transfer import Transfer

SIZES = (0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


@lru_cache(maxsize=1)
def undetectable_of(evidence: Evidence) -> tuple[Undetectable, ...]:
    """Returns the losses of measured parts that would go unnoticed, by kind of part."""
    if not (rows := rows_of(evidence)):
        return ()
    by_part = grouped((part, row) for row in rows for part in row.parts if not part.both_ways)
    ordered = sorted(rows, key=attrgetter("figure"), reverse=True)
    classes = grouped((row.peers, row) for row in ordered)
    comparison = {one.part: one for one in compared(rows, by_part) if not one.since}
    lone = alone(rows) if evidence.earlier is not None else ()
    least = cache(partial(_least, Expectations(evidence.machine)))
    sharing = LinkSharing(evidence.machine.wiring, evidence.results[0])
    loads = cache(partial(_loads, sharing))

    @cache
    def top(peers: Hashable, part: Part) -> float:
        return next((row.figure for row in classes[peers] if part not in row.parts), 0.0)

    losses = dict[Part, float]()
    for part, own in by_part.items():
        if part.kind not in ("group", "machine"):
            shown = dict[Row, tuple[float, float, bool]]()
            for row in own:
                best, load = top(row.peers, part), loads(row.case.cell.transfers).get(part, 1.0)
                # The smallest loss that the cell's figure alone shows.
                bounds_of = (SLOW * best * math.exp(-2 * row.off), least(row))
                needed = [1 - bound / row.figure for bound in bounds_of if bound]
                if part in lone and shows(evidence, row.number):
                    needed.append(SHOWN)
                shown[row] = min(1.0, load), min(needed, default=ANY), bool(best)
            losses[part] = _undetectable(shown, comparison.get(part), len(by_part))
    if losses and all(loss == ANY for loss in losses.values()):
        return ()
    losses |= dict.fromkeys(_not_crossed(evidence, losses), ANY)
    found = grouped((part.kind, part) for part, loss in losses.items() if loss > LEAST_LOSS)
    return tuple(
        Undetectable(kind, {str(part): losses[part] for part in sorted(parts, key=str)})
        for kind, parts in sorted(found.items())
    )


def _loads(sharing: LinkSharing, transfers: Sequence[Transfer]) -> dict[Part, float]:
    """Returns the shares of links' rates that transfers use, as far as they are known."""
    found: dict[Part, float] = {}
    for transfer in transfers:
        for wire, _, load in sharing.crossed(transfer):
            found[wire.part] = found.get(wire.part, 0.0) + load
    return found


def _undetectable(
    rows: Mapping[Row, tuple[float, float, bool]], comparison: Comparison | None, parts: int
) -> float:
    """Returns the largest of `SIZES` that would go unnoticed: 0 if none would, 1 if any would."""
    for before, loss in zip((0.0, *SIZES), SIZES, strict=False):
        # A link that is half used may lose half of its rate without effect.
        lost = {row: max(0.0, 1 - (1 - loss) / fill) for row, (fill, *_) in rows.items()}
        if _is_slow(rows, lost):
            return before
        if comparison is None or (found := comparison.lost(lost)) is None:
            continue
        if found.gain > comparison.least and found.p < CHANCE / parts:
            return before
    return ANY


def _least(expectations: Expectations, row: Row) -> float:
    result, cell, of = row.case.result, row.case.cell, row.case.cell.expected
    if of is None or of.measured or not of.achievable or not cell.bytes:
        return 0.0
    estimate = expectations.of(cell, result.size, result.unit)
    return cell.bytes / (cell.bytes / of.achievable / bounds(estimate)[1] + estimate.start)


def _is_slow(rows: Mapping[Row, tuple[float, float, bool]], lost: Mapping[Row, float]) -> bool:
    gain = 0.0
    for row, (_, needed, has_peers) in rows.items():
        if lost[row] > needed:
            gain += row.weight * math.log1p(-lost[row]) ** 2
        elif has_peers:
            gain -= SPARED
    return gain > PART


def _not_crossed(evidence: Evidence, crossed: Iterable[Part]) -> Iterator[Part]:
    """Yields unused links between two fabric switches of which at least one is used, and the unused
    switch. Leaves out links to an unused switch with devices."""
    known, inner = set(crossed), evidence.machine.wiring.switches
    wires = [wire for wire in evidence.machine.wiring.wires if wire.kind == "fabric"]
    outer = {end for wire in wires for end in (wire.a, wire.b) if not {wire.a, wire.b} <= inner}
    for wire in wires:
        if {wire.a, wire.b} <= inner:
            ends = {Part.fabric_switch(end): end in outer for end in (wire.a, wire.b)}
            left = ends.keys() - known
            if len(left) < 2 and not any(ends[end] for end in left):
                yield from {wire.part, *left} - known


def check_unjudged(evidence: Evidence) -> Iterator[Finding]:
    """Reports parts that no peer, expected figure or earlier run would show to be slow."""
    every = undetectable_of(evidence)
    if parts := [name for one in every for name, loss in one.parts.items() if loss == ANY]:
        subject, they = parts[0], "it is slow"
        if len(parts) > 1:
            subject, they = f"{len(parts)} parts", f"they are slow: {listed(parts)}"
        found = f"no figure shows whether {they}: no similar part exists to compare with, and no "
        found += "expected speed is known"
        why = "only a comparison with an earlier run of this machine shows it (linkgauge gate)"
        yield Finding("unjudged", "unknown", subject, found, why)
