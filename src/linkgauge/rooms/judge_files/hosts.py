"""Judges the figures of several hosts together, and compares each host with the others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from statistics import median

from msgspec.structs import replace

from linkgauge.judge.outcome import outcome_of
from linkgauge.model.cell_id import spoken
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.documents.tool_run import HostFigures

from .judging import run_of_texts
from .readers import ReadText

_USUAL = 0.9
"""The least share of the other hosts' median that a figure of a healthy host reaches."""
_LARGE = 1 << 20
"""The size in bytes below which the time to start decides; such figures vary between hosts."""
_Key = tuple[object, ...]


def run_of_hosts(texts: Sequence[ReadText], machine: str | None, label: str) -> list[Run]:
    """Returns a run for each host in the texts, the worst host first. Raises InputError if nothing
    can be judged."""
    by_host = _by_host(texts)
    if len(by_host) < 2:
        return [run_of_texts(texts, machine, label)]
    runs = {host: run_of_texts(some, machine, label) for host, some in by_host.items()}
    compared = [_compared(host, run, runs) for host, run in runs.items()]
    worst = sorted(compared, key=lambda one: (-one.low, one.share or 1.0))
    return [_with_peers(runs[one.host], one.host, compared) for one in worst]


def _with_peers(run: Run, host: str, peers: Sequence[HostFigures]) -> Run:
    return replace(run, label=host, tool=run.tool and replace(run.tool, peers=tuple(peers)))


def with_verdicts(runs: Sequence[Run], judged: Callable[[Run], Run]) -> tuple[list[Run], int]:
    """Returns the judged runs of all hosts, and the exit code of the worst. Each run lists the
    verdicts of all hosts. The exit code of a single run is 0, because the run's own screen
    decides."""
    if len(runs) < 2:
        return [judged(run) for run in runs], 0
    alone = {run.label: judged(_with_peers(run, run.label, ())) for run in runs}
    words = {host: _verdict(run) for host, run in alone.items()}
    peers = runs[0].tool.peers if runs[0].tool else ()
    known = [replace(one, verdict=words[one.host]) for one in peers]
    code = int("low" in words.values())
    return [judged(_with_peers(run, run.label, known)) for run in runs], code


def _verdict(run: Run) -> str:
    if outcome_of(run).code:
        return "low"
    is_any = any(cell.verdict == "ok" for result in run.results for cell in result.cells)
    return "ok" if is_any else "not judged"


def _by_host(texts: Sequence[ReadText]) -> dict[str, list[ReadText]]:
    """Returns the texts of each host. A text without figures describes all hosts. A text of an
    unnamed host counts for an earlier unnamed host, unless both have the same figures."""
    found, keys = dict[str, list[ReadText]](), dict[str, set[_Key]]()
    for text in texts:
        if not text.has_figures:
            continue
        own = {one[:3] + one[4:6] for log in text.logs for one in log.figures}
        name = text.host or _hostname(text)
        if not name:
            name = next((host for host in found if not keys[host] & own), "")
            name = name or PurePath(text.name).stem
            name = text.name if keys.get(name, set()) & own else name
        found.setdefault(name, []).append(text)
        keys.setdefault(name, set()).update(own)
    shared = [text for text in texts if not text.has_figures]
    return {host: [*own, *shared] for host, own in found.items()}


def _hostname(text: ReadText) -> str:
    """Returns the name of the host, or nothing if the text names none or several."""
    named = {*(host for log in text.logs for host in log.hosts)}
    named |= {one.hostname for one in text.facts if one.hostname}
    return named.pop() if len(named) == 1 else ""


def _compared(host: str, run: Run, runs: Mapping[str, Run]) -> HostFigures:
    others = [dict(_figures(other)) for name, other in runs.items() if name != host]
    shares = dict[str, float]()
    for key, (result, cell, figure) in _figures(run):
        theirs = [other[key][2] for other in others if key in other]
        if theirs:
            share = figure / median(theirs)
            name = spoken(result, cell)
            shares[name] = share if result.better == "higher" else 1 / share
    low = {name: share for name, share in shares.items() if share < _USUAL}
    worst = min(low, key=lambda name: low[name], default="")
    return HostFigures(
        host=host, medians=dict(_medians(run)), cells=len(shares), low=len(low), worst=worst,
        share=low.get(worst),
    )  # fmt: skip


def _figures(run: Run) -> Iterator[tuple[_Key, tuple[Result, CellResult, float]]]:
    for result in run.results:
        for cell in result.cells:
            if cell.headline and (cell.bytes or result.size) >= min(_LARGE, result.size):
                of = len(cell.transfers), str(cell.operation)
                key = (result.benchmark, result.size, *cell.place, *of)
                yield key, (result, cell, cell.headline)


def _medians(run: Run) -> Iterator[tuple[str, float]]:
    for result in run.results:
        figures = [cell.headline for cell in result.cells if cell.headline]
        if result.average or (figures and not result.sweep):
            yield result.benchmark, result.average or median(figures)
