"""Computes how a collective scales with the number of devices, what the links should allow, and the
number of devices where scaling stops (the knee), with its cause."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from linkgauge.judge.expected.dram import Ceilings
from linkgauge.judge.expected.exchange_rates import ExchangeRates
from linkgauge.judge.expected.link_rates import LOOSE
from linkgauge.judge.expected.routes import Paths
from linkgauge.judge.verdict import LOW
from linkgauge.model.by_name import by_name
from linkgauge.model.curves import SizeLine
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.scaling import SCHEMA, At, Count, Knee, Member, PairRate, Scaling
from linkgauge.model.operations.busbw import bandwidths
from linkgauge.model.operations.collective import Collective
from linkgauge.model.stats.hockney import Timed, fit
from linkgauge.model.units import format_size
from linkgauge.uses.pairs_alone import PAIRS

from .benchmarks import kind_of, label_of

FALLEN = 0.9
"""The busbw of healthy rings of NCCL within one fabric varies by a few percent with their
length."""


def scaling_of(run: Run) -> Scaling:
    """Returns the scaling of a run's collective. Leaves out device counts without figures."""
    measured = [result for result in run.results if _work(result) is not None]
    backend = next((result.backend for result in run.results), "")
    work = next((work for result in measured if (work := _work(result))), Collective("all_reduce"))
    rates = _rates(run, work)
    found = [_count(each, work, rates, _member(run, _devices(each))) for each in measured]
    counts = tuple(sorted((one for one in found if one), key=lambda count: count.gpus))
    pairs = _pairs(run.results)
    devices = max((_devices(result) for result in measured), key=len, default=())
    return by_name(
        Scaling,
        run,
        schema=SCHEMA,
        collective=work,
        backend=backend,
        devices=devices,
        counts=counts,
        knee=_knee(counts, pairs, rates, devices),
        below=tuple(count.gpus for count in counts if _is_below(count, rates, devices)),
        pairs=pairs,
        problems=tuple(_problems(run.results)),
        member=_member(run, devices),
    )


def _rates(run: Run, work: Collective) -> ExchangeRates:
    cells = (cell for result in run.results if _work(result) is not None for cell in result.cells)
    notes = next((cell.notes for cell in cells if cell.notes), ())
    return ExchangeRates(Paths(run.machine, Ceilings()), work, notes)


def _member(run: Run, devices: Sequence[str]) -> Member:
    known = run.machine.by_memory
    return kind_of([known[name] for name in devices if name in known])


def pairs_in_doubt(scaling: Scaling, run: Run) -> tuple[tuple[str, str], ...]:
    """Returns the pairs of devices to measure alone: pairs of the first N devices. N is the
    smallest number of devices with a low figure, or where scaling stops for no known cause."""
    numbers = list(scaling.below)
    if scaling.knee is not None and scaling.knee.because is None:
        numbers.append(scaling.knee.gpus)
    if not numbers:
        return ()
    rates = _rates(run, scaling.collective)
    return rates.pairs(scaling.devices[: min(numbers)])


def _problems(results: Sequence[Result]) -> Iterator[str]:
    for result in results:
        if result.reason is not None and not result.cells:
            yield f"skip: {result.title}: {result.reason}"
        for cell in result.cells:
            if cell.status != "pass":
                yield f"{cell.status}: {cell.row}, {cell.column}: {cell.reason}"


def _work(result: Result) -> Collective | None:
    found = (c.operation for c in result.cells if isinstance(c.operation, Collective))
    return next(found, None)


def _devices(result: Result) -> tuple[str, ...]:
    return tuple(str(transfer.engine.owner) for transfer in result.cells[0].transfers)


def _count(result: Result, work: Collective, rates: ExchangeRates, member: Member) -> Count | None:
    devices = _devices(result)
    found = sorted(_points(result, len(devices)), key=lambda each: each[0].size)
    if not found:
        return None
    points = [point for point, _ in found]
    expected = rates.bound(devices)
    best, cell = max(found, key=lambda each: each[0].busbw or 0.0)
    count = Count(
        gpus=len(devices),
        points=tuple(points),
        expected=expected,
        floor=min(point.seconds for point in points),
        plateau=best.busbw,
        at=None if best.busbw is None else best.size,
        line=_line(result, label_of(work, len(devices), member)),
        verdict=cell.verdict,
    )
    share = cell.share(cell.at_best, cell.headline)
    if share is None and count.plateau and expected.figure:
        share = count.plateau / expected.figure
    return replace(count, efficiency=share)


def _is_below(count: Count, rates: ExchangeRates, devices: tuple[str, ...]) -> bool:
    """Whether `count` devices' figure is low or, if not judged, well below the bound of rings."""
    rate, rings = _once_started(count), count.expected.least
    if count.verdict != "not judged" or not rate or not rings or len(count.points) == 1:
        return count.verdict in ("low", "perhaps low")
    is_known = rates.bounds(devices[: count.gpus]).figures
    return rate < (LOW if is_known else LOOSE) * rings


def _points(result: Result, ranks: int) -> Iterator[tuple[At, CellResult]]:
    for cell in result.cells:
        # Of so few bytes that no rank has a share, nothing is left but the start.
        own = bandwidths(cell)
        if own is not None and cell.headline and cell.status == "pass":
            bus = own.bus if ranks > 1 else None
            yield At(_size(cell), cell.headline, own.algorithm, bus), cell


def _size(cell: CellResult) -> int:
    return cell.transfers[0].scale


def _line(result: Result, label: str) -> SizeLine | None:
    timed = [
        Timed(_size(cell), cell.bytes, cell.headline)
        for cell in result.cells
        if cell.headline and cell.bytes and cell.status == "pass"
    ]
    return fit(timed, result.benchmark, result.backend, label)


def _once_started(count: Count) -> float | None:
    """Returns the best bus bandwidth, with the startup time (`count.floor`) subtracted."""
    at = next((point for point in count.points if point.size == count.at), None)
    if at is None or at.busbw is None or count.floor is None or at.seconds <= count.floor:
        return count.plateau
    return at.busbw * at.seconds / (at.seconds - count.floor)


def _knee(
    counts: Sequence[Count], pairs: Sequence[PairRate], rates: ExchangeRates, devices: Sequence[str]
) -> Knee | None:
    before: list[Count] = []
    for count in counts:
        if count.plateau is None:
            continue
        best = max(before, key=lambda one: one.plateau or 0.0, default=None)
        if best is not None and best.plateau and count.plateau < FALLEN * best.plateau:
            because = _cause(best, count, pairs) or rates.change(devices, best.gpus, count.gpus)
            return Knee(count.gpus, best.gpus, count.plateau / best.plateau, because)
        before.append(count)
    return None


def _cause(best: Count, count: Count, pairs: Sequence[PairRate]) -> str | None:
    if slow := [one for one in pairs if one.slow]:
        return f"also slow alone: {' and '.join(one.pair for one in slow)}"
    now, then = _once_started(count), _once_started(best)
    if not now or not then or now < FALLEN * then or count.at is None:
        return None
    seconds = next(point.seconds for point in count.points if point.size == count.at)
    part = (count.floor or 0.0) / seconds
    return f"no link: of {format_size(count.at)}, starting its steps takes {part:.0%} of the time"


def _pairs(results: Sequence[Result]) -> tuple[PairRate, ...]:
    cells = [cell for result in results if result.benchmark == PAIRS for cell in result.cells]
    return tuple(
        PairRate(
            f"{cell.row} -> {cell.column}", cell.headline,
            cell.expected.achievable if cell.expected else None,
            cell.verdict == "low" or cell.peers is not None,
        )
        for cell in cells
        if cell.headline
    )  # fmt: skip
