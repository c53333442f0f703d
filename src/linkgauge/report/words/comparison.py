"""Says in one sentence how the host's memory compares: with what its DIMMs allow, else with
published figures of processors of its family, else how to tell what it should reach."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linkgauge.model.documents.result import CellResult, Run
from linkgauge.model.hardware.gaps import NEEDS_ROOT
from linkgauge.model.notes import NearCache
from linkgauge.model.units import LATENCY, STREAM, Unit
from linkgauge.report.matrix import brief

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
    """Returns the sentence on a run of a real host's own memory. The text is empty for other runs,
    such as those of accelerators or of simulated machines."""
    here = _figures(run)
    if run.simulated or "read" not in here or any(one.backend != "host" for one in run.results):
        return ""
    host = run.machine.known.host
    if host.memory_rate:
        rate, share = brief(host.memory_rate, STREAM.symbol), here["read"] / host.memory_rate
        reads = f"all CPUs read {brief(here['read'], STREAM.symbol)} {STREAM.shown}"
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
    """Whether the sentence on a run's memory names a figure to compare with."""
    said = compared(run)
    return bool(said) and not said.startswith(_UNKNOWN)


def may_be_cached(run: Run) -> str:
    """Returns a sentence if buffers fit, or nearly fit, in the whole last-level cache, so that the
    figures may be the cache's. The text is empty for the same runs as that of `compared`."""
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


def _said(kind: Kind, found: tuple[Published, ...], here: float | None) -> str:
    words, unit = _WORDS[kind]
    ends = min(one.low for one in found), max(one.high for one in found)
    shown = " to ".join(dict.fromkeys(brief(end, unit.symbol) for end in ends))
    where = f" {found[0].where}" if found[0].where else ""
    cpus = " by its CPUs" if kind == "read" else ""
    measured = "" if here is None else f", here {brief(here, unit.symbol)}{cpus}"
    return f"{words}{where} {shown} {unit.shown}{measured}"


def _figures(run: Run) -> dict[Kind, float]:
    """Returns the run's figures of the kinds that are published."""
    return {kind: figure for kind, figure in _found(run) if figure is not None}


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
