"""What is said of AI workloads besides their figures: what bounds them and what would change it,
the parts of their time, latencies of tokens, and what carried them out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from linkgauge.judge.bounds import Bound, advice_on, bound_of
from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import Place
from linkgauge.model.workload import WorkDone, Workload

from .blocks import Line, Span, line, plain
from .matrix import Matrix

_MILLI = 1e-3
_NO_PART = "no part alone"
_LATENCIES = ("request", "first token", "between tokens")


class _Known(NamedTuple):
    """A cell with what it asked for and what it shows."""

    cell: CellResult
    asked: Workload
    done: WorkDone
    bound: Bound | None


def _known(result: Result) -> Iterator[_Known]:
    for cell in result.cells:
        if cell.work is not None and cell.workload is not None:
            yield _Known(cell, cell.workload, cell.work, bound_of(cell.work))


def workload_lines(result: Result) -> Iterator[Line]:
    """Lines below the figures; none of results without workloads."""
    known = list(_known(result))
    if not known:
        return
    yield from _bound_lines(known)
    yield from _part_lines(known)
    yield from _use_lines(known)
    yield from _server_lines(known)
    yield from _how_lines(known)
    yield from _share_lines(known)


def bound_lines(result: Result) -> Iterator[Line]:
    """What bounds each row, and what would change it."""
    if known := list(_known(result)):
        yield from _bound_lines(known)


def _bound_lines(known: Sequence[_Known]) -> Iterator[Line]:
    for row, own in groupby(known, lambda one: one.cell.row):
        yield from _bounds_of(row, list(own))
    yield from _advice(known)


def _bounds_of(row: str, cells: Sequence[_Known]) -> Iterator[Line]:
    """What bounds the cells of a row: neighbours that the same bounds are said at once."""
    said = []
    for kind, own in groupby(cells, lambda one: one.bound and (one.bound.kind or _NO_PART)):
        alike = list(own)
        if kind is None:
            continue
        shares = sorted(one.bound.share for one in alike if one.bound)
        ends = dict.fromkeys((f"{shares[0]:.0%}", f"{shares[-1]:.0%}"))
        columns = dict.fromkeys((alike[0].cell.column, alike[-1].cell.column))
        said.append(f"{kind} at {' to '.join(columns)} ({' to '.join(ends)} of the time)")
    if said:
        yield line(Span(f"{row} ", "name"), "bounded by ", ", ".join(said))


def _advice(known: Sequence[_Known]) -> Iterator[Line]:
    """What would change it, once for each."""
    found: dict[str, str] = {}
    for one in known:
        if one.bound is not None and (advice := advice_on(one.bound, one.asked)) is not None:
            found.setdefault(advice, one.bound.kind or "")
    for advice, kind in found.items():
        yield line(Span(f"{kind}: ", "strong"), advice)


def _part_lines(known: Sequence[_Known]) -> Iterator[Line]:
    """The parts of a training step, each with its share, and what its collectives cost."""
    for one in known:
        if one.asked.kind == "training" and one.done.stages:
            yield line(Span(f"{one.cell.place} ", "name"), ", ".join(_parts(one.done)))


def _parts(done: WorkDone) -> Iterator[str]:
    for stage in done.stages:
        if stage.summary is not None:
            took = stage.summary.median
            yield f"{stage.name} {took / _MILLI:.3g} ms ({took / done.seconds:.0%})"
    if done.split_error is not None:
        yield f"their sum is within {done.split_error:.1%} of the step"
    if done.communication is not None:
        share = done.communication / done.seconds
        yield f"communication alone {done.communication / _MILLI:.3g} ms ({share:.0%})"
    if done.exposed is not None:
        yield f"exposed {done.exposed / _MILLI:.3g} ms"


def _use_lines(known: Sequence[_Known]) -> Iterator[Line]:
    """How busy the link and the device are, of the rates that each reaches alone."""
    for one in known:
        if one.done.link_use is not None:
            said = f"link {one.done.link_use:.0%} busy"
            if one.done.device_use is not None:
                said += f", device {one.done.device_use:.0%}"
            yield line(Span(f"{one.cell.place} ", "name"), said)


def _server_lines(known: Sequence[_Known]) -> Iterator[Line]:
    """The tokens of a server's answers."""
    for one in known:
        if one.done.tokens_rate is not None:
            yield line(Span(f"{one.cell.place} ", "name"), f"{one.done.tokens_rate:.4g} tokens/s")


def _how_lines(known: Sequence[_Known]) -> Iterator[Line]:
    """What carried them out, once for each that differs."""
    found: dict[tuple[str, ...], list[_Known]] = {}
    for one in known:
        found.setdefault(one.done.how, []).append(one)
    for how, alike in found.items():
        if how:
            first, more = alike[0].cell.place, len(alike) - 1
            cells = f"{first} and {more} more" if more else f"{first}"
            yield plain(f"{cells}: {'; '.join(how)}", "dim")


def _share_lines(known: Sequence[_Known]) -> Iterator[Line]:
    """What the time of a traced loop went to, and the file that has the trace."""
    for one in known:
        if one.done.shares:
            shares = ", ".join(f"{share.name} {share.fraction:.0%}" for share in one.done.shares)
            yield line(Span(f"{one.cell.place} ", "name"), f"{shares} ({one.done.trace})")


def latency_matrices(result: Result) -> Iterator[tuple[str, Matrix]]:
    """Percentiles of the time to the first token and from one to the next, in milliseconds."""
    known = list(_known(result))
    for name in _LATENCIES if known else ():
        for percent in ("p50", "p99"):
            yield from _matrix(
                result, f"{name}, {percent} (ms)", known, _percentile(name, f"{percent}")
            )


def _percentile(name: str, percent: str) -> Callable[[WorkDone], float | None]:
    def read(done: WorkDone) -> float | None:
        found = (one.summary for one in done.stages if one.name == name and one.summary)
        summary = next(found, None)
        return None if summary is None else float(getattr(summary, percent)) / _MILLI

    return read


def _matrix(
    result: Result,
    title: str,
    known: Sequence[_Known],
    figure: Callable[[WorkDone], float | None],
) -> Iterator[tuple[str, Matrix]]:
    values = ((one.cell.place, figure(one.done)) for one in known)
    figures: dict[Place, float] = {at: value for at, value in values if value is not None}
    if figures:
        rows = tuple(dict.fromkeys(place.row for place in figures))
        columns = tuple(dict.fromkeys(place.column for place in figures))
        yield title, Matrix(result.benchmark, rows, columns, figures, None, len(figures))
