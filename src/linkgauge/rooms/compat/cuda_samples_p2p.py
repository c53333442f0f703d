"""Emulates p2pBandwidthLatencyTest of the CUDA samples (Samples/5_Domain_Specific). For
P2P=Disabled, CUDA's driver copies without peer access; other backends copy through host memory. The
CPU latency is the time that the host takes to enqueue a copy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import permutations

import msgspec

from linkgauge.cli.tool import Where, helpful, show
from linkgauge.cli.tool_options import ToolOptions, help_lines, option, whole
from linkgauge.model.hardware.machine import Device
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Engine, EngineKind, Transfer

from .copy_cells import PARITY, CopyPath, Meter, metered
from .cuda_samples import HELP_OPTION, NOTE, sample_options

_ELEMENT = 4
_ELEMENTS = 40_000_000
_LOOPS = 5
_LATENCY_SIZE, _LATENCY_LOOPS = 16, 100


class PeerOptions(ToolOptions):
    reads: bool = option(
        "--p2p_read", "Also copy by P2P reads. Without it only P2P writes are measured."
    )
    by_sm: bool = option("--sm_copy", "Copy by SMs instead of the Copy Engine where P2P is enabled")
    elements: int = option(
        "--numElems=<NUM_OF_INT_ELEMS>", "Number of integers that a copy moves", whole, _ELEMENTS,
        least=1,
    )  # fmt: skip


HELP = f"""\
Usage:  p2pBandwidthLatencyTest [OPTION]...
Bandwidth and latency of pairs of GPUs with and without P2P

Options:
{help_lines((HELP_OPTION, *PeerOptions.table()), 31)}"""

Pair = tuple[Device, Device]
PairFigures = Mapping[Pair, float]
PairCells = Mapping[Pair, Sequence[Transfer]]
PairTimer = Callable[[Mapping[Pair, Transfer]], dict[Pair, float]]
"""A function that measures the microseconds of each copy."""


@helpful(HELP)
def run(arguments: Sequence[str], where: Where) -> int:
    given = sample_options(PeerOptions, arguments)
    reads = given.reads
    engine: EngineKind = "sm" if given.by_sm else "ce"
    settings = Settings(sizes=(given.elements * _ELEMENT,), samples=1, loops=_LOOPS, engines=PARITY)
    with _opened(where, settings) as meters:
        reached = _bandwidths(*meters, engine, reads)
        codes = [meter.exit_code for meter in meters]
    fewer = msgspec.structs.replace(settings, sizes=(_LATENCY_SIZE,), loops=_LATENCY_LOOPS)
    with _opened(where, fewer, False) as meters:
        _latencies(*meters, engine, reads, reached)
        codes += [meter.exit_code for meter in meters]
    print(NOTE)
    return next((code for code in codes if code), 0)


@contextmanager
def _opened(where: Where, settings: Settings, tells: bool = True) -> Iterator[tuple[Meter, Meter]]:
    """Opens two meters, with and without peer access. They are the same unless the backend is cuda
    and has several devices. If `tells`, prints the name of a simulated machine."""
    with ExitStack() as held:
        closed = meter = held.enter_context(metered(where, settings, tells=tells))
        if meter.context.backend == "cuda" and len(meter.context.devices) > 1:
            engines = msgspec.structs.replace(PARITY, peer_access=False)
            without = msgspec.structs.replace(settings, engines=engines)
            closed = held.enter_context(metered(where, without, tells=False))
        yield meter, closed


def _bandwidths(meter: Meter, closed: Meter, engine: EngineKind, reads: bool) -> frozenset[Pair]:
    """Prints rates with (`meter`) and without (`closed`) peer access. Returns pairs with access."""

    def staged_of(cells: Mapping[Pair, Sequence[Pair]]) -> dict[Pair, float]:
        if closed is not meter:
            copies = {at: [_copy(*pair) for pair in pairs] for at, pairs in cells.items()}
            return _rates(closed, copies)
        legs = {
            at: [leg for pair in pairs for leg in _staged(*pair)] for at, pairs in cells.items()
        }
        return _rates(meter, legs, 1 / 2)  # staged bytes move twice, and count once

    devices = meter.context.devices
    own = [(one, one) for one in devices]
    separate = list(permutations(devices, 2))
    # Measured first: it shows which pairs reach each other.
    writes = _rates(meter, {pair: [_copy(*pair, engine)] for pair in separate}, optional=True)
    reached = frozenset(writes)
    among = [pair for pair in separate if pair in reached]
    show(_introduction(devices, reached))
    # Within a device every byte is read and written.
    local = _rates(meter, {pair: [_copy(*pair)] for pair in own}, 2)
    staged = local | staged_of({pair: [pair] for pair in separate})
    _show("Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)", devices, staged)
    enabled = "Unidirectional P2P=Enabled Bandwidth (P2P {}) Matrix (GB/s)"
    _show(enabled.format("Writes"), devices, staged | writes)
    if reads:
        pulled = _rates(meter, {pair: [_copy(*pair, engine, True)] for pair in among})
        _show(enabled.format("Reads"), devices, staged | pulled)
    local = _rates(meter, {pair: [_copy(*pair)] * 2 for pair in own}, 2)
    staged = local | staged_of({(a, b): [(a, b), (b, a)] for a, b in separate})
    _show("Bidirectional P2P=Disabled Bandwidth Matrix (GB/s)", devices, staged)
    both = _rates(meter, {(a, b): [_copy(a, b, engine), _copy(b, a, engine)] for a, b in among})
    _show("Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)", devices, staged | both)
    return reached


def _latencies(
    meter: Meter, closed: Meter, engine: EngineKind, reads: bool, reached: frozenset[Pair]
) -> None:
    devices = meter.context.devices
    measures = (_times, _enqueuing_times)
    among = [pair for pair in permutations(devices, 2) if pair in reached]
    if closed is not meter:
        copies = {pair: _copy(*pair) for pair in permutations(devices, 2)}
        own = {(one, one): _copy(one, one) for one in devices}
        staged = [measure(meter, own) | measure(closed, copies) for measure in measures]
    else:
        staged = [_staged_times(partial(measure, meter), devices) for measure in measures]
    _show("P2P=Disabled Latency Matrix (us)", devices, *staged)
    for name, pulls in (("Writes", False), ("Reads", True))[: 2 if reads else 1]:
        copies = {pair: _copy(*pair, engine, pulls) for pair in among}
        times = [
            own | measure(meter, copies) for own, measure in zip(staged, measures, strict=True)
        ]
        _show(f"P2P=Enabled Latency (P2P {name}) Matrix (us)", devices, *times)


def _staged_times(measure: PairTimer, devices: Sequence[Device]) -> dict[Pair, float]:
    up = measure({(one, one): CopyPath(one, None).transfer() for one in devices})
    down = measure({pair: _staged(*pair)[1] for pair in permutations(devices, 2)})
    own = measure({(one, one): _copy(one, one) for one in devices})
    # The second leg begins when the first has ended.
    return own | {(a, b): up[a, a] + time for (a, b), time in down.items() if (a, a) in up}


def _show(title: str, devices: Sequence[Device], *matrices: PairFigures) -> None:
    corners = ("D\\D",) if len(matrices) == 1 else ("GPU", "CPU")
    shown = map(partial(_matrix, devices), corners, matrices)
    print(title)
    print("\n\n".join(map("\n".join, shown)), flush=True)


def _copy(row: Device, column: Device, engine: EngineKind = "ce", reads: bool = False) -> Transfer:
    ends = (column, row) if reads else (row, column)
    return CopyPath(*ends, reads).transfer(engine)


def _staged(source: Device, destination: Device) -> list[Transfer]:
    there = parse_memory(destination.memory)
    leg = Transfer(Memory("host", source.near), there, Engine(there, "ce"))
    return [CopyPath(source, None).transfer(), leg]


def _rates(
    meter: Meter, cells: PairCells, factor: float = 1, *, optional: bool = False
) -> dict[Pair, float]:
    """Returns each pair's total GB/s × `factor`, nan after an error. Leaves out skipped pairs."""
    results = meter.measure(list(cells.values()), optional=optional)
    return {
        pair: cell.summary.median / 1e9 * factor if cell.summary is not None else math.nan
        for pair, cell in zip(cells, results, strict=True)
        if cell.status != "skip"
    }


def _times(meter: Meter, copies: Mapping[Pair, Transfer]) -> dict[Pair, float]:
    """Returns the time of each pair's copy in microseconds, or nan after an error."""
    rates = _rates(meter, {pair: [copy] for pair, copy in copies.items()})
    return {pair: _LATENCY_SIZE / rate / 1e3 for pair, rate in rates.items()}


def _enqueuing_times(meter: Meter, copies: Mapping[Pair, Transfer]) -> dict[Pair, float]:
    """Returns the microseconds to enqueue each pair's copy, without pairs that have no figure."""
    cells = [[copy] for copy in copies.values()]
    results = meter.measure(cells, "enqueue", optional=True)
    for cell in results:
        if cell.status == "skip":
            meter.report(f"no CPU latency: {cell.reason}")
    return {
        pair: cell.summary.median * 1e6
        for pair, cell in zip(copies, results, strict=True)
        if cell.summary is not None
    }


def _introduction(devices: Sequence[Device], reached: frozenset[Pair]) -> Iterator[str]:
    yield "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]"
    for device in devices:
        address = (device.pci or "0:0:0.0").partition(".")[0]  # zeros if unknown
        domain, bus, slot = (int(part, 16) for part in address.split(":"))
        yield (
            f"Device: {device.index}, {device.model}, pciBusID: {bus:x}, "
            f"pciDeviceID: {slot:x}, pciDomainID:{domain:x}"
        )
    for one, other in permutations(devices, 2):
        can = "CAN" if (one, other) in reached else "CANNOT"
        yield f"Device={one.index} {can} Access Peer Device={other.index}"
    yield (
        "\n***NOTE: In case a device doesn't have P2P access to other one, it falls back to normal "
        "memcopy procedure.\nSo you can see lesser Bandwidth (GB/s) and unstable Latency (us) in "
        "those cases.\n"
    )
    yield "P2P Connectivity Matrix"
    yield "     D\\D" + "".join(f"{device.index:6}" for device in devices)
    for one in devices:
        yield f"{one.index:6}\t" + "".join(
            f"{int(one == other or (one, other) in reached):6}" for other in devices
        )


def _matrix(devices: Sequence[Device], corner: str, figures: PairFigures) -> Iterator[str]:
    yield f"   {corner}" + "".join(f"{device.index:6} " for device in devices)
    for one in devices:
        values = (figures.get((one, other), math.nan) for other in devices)
        yield f"{one.index:6} " + "".join(f"{value:6.2f} " for value in values)
