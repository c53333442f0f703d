"""Compares the host's memory bandwidth with what its DIMMs allow, or with published figures."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.hardware.gaps import NEEDS_ROOT
from linkgauge.model.names import range_of
from linkgauge.model.notes import NearCache
from linkgauge.model.transfer import Transfer
from linkgauge.model.units import LATENCY, STREAM, Unit, count_of, format_figure, unit_of

from .sentences import near_cache

if TYPE_CHECKING:
    from linkgauge.judge.expected.published import Kind, Published

COMPARES = "compare: "
_UNKNOWN = f"{COMPARES}what this memory should reach is not known"
_TELL = "state the rate of its DIMMs: linkgauge devices --yaml > hardware.yml, then --hardware"
_SUDO = "sudo reads the rate of its DIMMs"
_SOURCES = "docs/expect-host.md has the sources"
_WORDS: dict[Kind, tuple[str, Unit]] = {
    "latency": ("latency of memory", LATENCY),
    "cores": ("latency between two cores", LATENCY),
    "read": ("reads of all cores of a socket", STREAM),
    "copy": ("copy by one thread", STREAM),
}


def compared(run: Run) -> str:
    """Returns the comparison, or an empty text if the run is not of a real host's memory."""
    if run.simulated or any(one.backend != "host" for one in run.results):
        return ""
    here = {kind: figure for kind, figure in _found(run) if figure is not None}
    if "read" not in here:
        return ""
    host = run.machine.known.host
    if host.memory_rate:
        share = here["read"] / host.memory_rate
        rate = format_figure(host.memory_rate, STREAM.symbol)
        reads = f"all CPUs read {format_figure(here['read'], STREAM.symbol)} {STREAM.shown}"
        return f"{COMPARES}{reads}, {share:.0%} of the {rate} that all DIMMs together allow"
    from linkgauge.judge.expected.published import published_of
    from linkgauge.model.hardware.cpu_families import family_of

    family, known = family_of(host.cpu_code), published_of(host.cpu_code)
    needs_root = any(
        "memory_rate" in gap.fields and gap.why.endswith(NEEDS_ROOT) for gap in host.unknown
    )
    more = _SUDO if needs_root else ""
    if family is None or not known:
        how = " or ".join(filter(None, (more, _TELL)))
        return f"{_UNKNOWN}: {how}"
    like = next((one.like for found in known.values() for one in found if one.like), family.name)
    said = "; ".join(_said(kind, found, here.get(kind)) for kind, found in known.items())
    end = "; ".join(filter(None, (_SOURCES, more)))
    return f"{COMPARES}published of {like}: {said} ({end})"


def compared_with(run: Run) -> bool:
    said = compared(run)
    return bool(said) and not said.startswith(_UNKNOWN)


def may_be_cached(run: Run) -> str:
    """Returns a note if the last-level cache may hold a part of the buffers, else an empty text."""
    near = [
        note
        for result in run.results
        for cell in result.cells
        for note in cell.notes
        if isinstance(note, NearCache)
    ]
    if not near or not compared(run):
        return ""
    return near_cache(near[0], {note.size for note in near})


def _said(kind: Kind, found: Sequence[Published], here: float | None) -> str:
    words, unit = _WORDS[kind]
    ends = [end for one in found for end in (one.low, one.high)]
    shown = range_of(partial(format_figure, unit=unit.symbol), ends)
    where = f" {found[0].where}" if found[0].where else ""
    cpus = " by its CPUs" if kind == "read" else ""
    measured = "" if here is None else f", here {format_figure(here, unit.symbol)}{cpus}"
    return f"{words}{where} {shown} {unit.shown}{measured}"


def _found(run: Run) -> Iterator[tuple[Kind, float | None]]:
    for cell in (cell for result in run.results for cell in result.cells):
        does, first = cell.does, cell.transfers[0]
        if does.name == "ping-pong":
            yield "cores", cell.headline
        elif does.follows_pointers and len(cell.transfers) == 1 and first.scale == 1:
            yield "latency", cell.headline
        elif does.array is not None and does.array.kind == "read" and _is_by_all(cell):
            yield "read", cell.headline
        elif does.array is not None and does.array.kind == "copy" and first.engine.count == 1:
            yield "copy", cell.headline


def _is_by_all(cell: CellResult) -> bool:
    return all(transfer.engine.count is None for transfer in cell.transfers)


_PEAK = " by the fastest copy loop"


def in_words(result: Result, cell: CellResult) -> str:
    """Describes a cell of the host's own memory or CPUs, or returns an empty text for others."""
    if result.backend != "host" or not cell.transfers:
        return ""
    does, first = cell.does, cell.transfers[0]
    if does.array is not None:
        how = _PEAK if does.mode == "peak" else ""
        return f"{does.array.kind}{how}, {_threads(cell)}{_place(result, cell)}"
    if does.name == "primes":
        return f"primes up to 10,000, {_threads(cell)}"
    if does.name == "ping-pong":
        alone = len(result.cells) == 1
        return f"latency between {'two cores' if alone else f'CPUs {cell.row} and {cell.column}'}"
    if does.follows_pointers and cell.transfers == (first,) and _is_of_memory(first):
        return f"latency of memory{_from(result, cell)}"
    return ""


def unit_in_words(result: Result, cell: CellResult) -> str:
    """Returns the unit of a cell's figure, which is `times/s` for the benchmark `primes`."""
    return "times/s" if cell.does.name == "primes" else unit_of(result.unit).shown


def _is_of_memory(transfer: Transfer) -> bool:
    return transfer.source.is_host and transfer.destination.is_null and transfer.scale == 1


def _threads(cell: CellResult) -> str:
    """Formats the number of a cell's threads. If no number is set, each CPU has a thread."""
    counts = [transfer.engine.count for transfer in cell.transfers]
    known = sum(count or 0 for count in counts)
    if known == 1:
        return "one thread"
    if None in counts or cell.does.fills_time:
        alone = "the only CPU" if cell.column == "1" else f"all {cell.column} CPUs"
        return alone if cell.column.isdecimal() else "all CPUs"
    return count_of(known, "thread")


def _from(result: Result, cell: CellResult) -> str:
    threads, memory = _nodes(cell.transfers[0])
    return f" of node {memory}, CPU of node {threads}" if _place(result, cell) else ""


def _place(result: Result, cell: CellResult) -> str:
    several = len({node for one in result.cells for t in one.transfers for node in _nodes(t)}) > 1
    if not several or len(cell.transfers) > 1:
        return ""
    threads, memory = _nodes(cell.transfers[0])
    return f" of node {threads}" + ("" if threads == memory else f" on memory of node {memory}")


def _nodes(transfer: Transfer) -> tuple[int, int]:
    threads = transfer.engine.owner.index or 0
    memories = [memory.index for memory in transfer.memories if memory.index is not None]
    return threads, memories[0] if memories else threads
