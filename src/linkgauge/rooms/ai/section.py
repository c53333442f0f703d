"""Reports the part of the machine that limits each AI workload, with advice."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.grouped import grouped
from linkgauge.model.operations.roofline import Bottleneck, BoundKind, bound_of
from linkgauge.model.operations.workload import WorkDone, Workload
from linkgauge.report.blocks import Line, Span, line, plain

_ADVICE: Mapping[BoundKind, str] = {
    "host link": "keep what is copied on the device, or copy less of it; linkgauge doctor shows "
    "whether the link itself is slow",
    "device link": "overlap gradients with the backward pass, or give each device a larger batch; "
    "linkgauge doctor shows whether a link is slow",
    "memory": "a larger batch shares each read of the weights; narrower numbers read fewer bytes",
    "compute": "the device computes at its full rate: narrower numbers or more devices are faster",
    "launch": "a larger batch, CUDA graphs or torch.compile: the device waits for the host; see "
    "linkgauge latency latency_launch",
}


def advice_on(bound: Bottleneck, work: Workload) -> str | None:
    """Returns how to make a workload faster, or None if no part of the machine limits it."""
    if bound.kind is None:
        return None
    if bound.kind == "compute" and work.numbers == "fp32":
        return "bf16 or fp16 multiply faster than fp32"
    if bound.kind == "host link" and work.kind == "streamed":
        return (
            "keep the weights on the device, or give each pass more tokens: a batch shares the "
            "copies; linkgauge doctor shows whether the link itself is slow"
        )
    return _ADVICE[bound.kind]


# AI workloads: what bounds them and what would change it, the parts of their time, and what
# carried them out.


_MILLI = 1e-3
_NO_PART = "no part alone"


class _AskedCell(NamedTuple):
    cell: CellResult
    asked: Workload
    done: WorkDone
    bound: Bottleneck | None


def _known(result: Result) -> Iterator[_AskedCell]:
    for cell in result.cells:
        if cell.status == "pass" and cell.work is not None and cell.workload is not None:
            yield _AskedCell(cell, cell.workload, cell.work, bound_of(cell.work))


def workload_lines(result: Result, detailed: bool = True) -> Iterator[Line]:
    known = list(_known(result))
    for row, own in groupby(known, lambda one: one.cell.row):
        yield from _bounds_of(row, list(own), result.title)
    yield from _advice(known)
    for one in known if detailed else ():
        if said := "; ".join(filter(None, map(", ".join, _said(one)))):
            yield line(Span(f"{one.cell.place} ", "name"), said)
    yield from _how_lines(known) if detailed else ()


def _said(one: _AskedCell) -> Iterator[Iterable[str]]:
    done = one.done
    if one.asked.kind == "training" and done.stages:
        yield from _parts(done)
    if done.link_use is not None:
        device = () if done.device_use is None else (f"device {done.device_use:.0%}",)
        yield f"link {done.link_use:.0%} busy", *device
    if done.tokens_rate is not None:
        yield (f"{done.tokens_rate:.4g} tokens/s",)
    if done.shares:
        shares = ", ".join(f"{share.name} {share.fraction:.0%}" for share in done.shares)
        yield (f"of the device's time: {shares} ({done.trace})",)


def _parts(done: WorkDone) -> Iterator[Iterable[str]]:
    known = ((stage.name, stage.summary) for stage in done.stages)
    yield [_took(name, summary.median, done) for name, summary in known if summary is not None]
    if done.split_error is not None:
        yield (f"their sum is the step's time within {done.split_error:.1%}",)
    alone = [] if done.communication is None else [done.communication]
    hidden = [] if done.exposed is None else [f"{done.exposed / _MILLI:.3g} ms of it not hidden"]
    yield [*(_took("communication alone", seconds, done) for seconds in alone), *hidden]


def _took(what: str, seconds: float, done: WorkDone) -> str:
    return f"{what} {seconds / _MILLI:.3g} ms ({seconds / done.seconds:.0%})"


def _bounds_of(row: str, cells: Sequence[_AskedCell], title: str) -> Iterator[Line]:
    said = []
    before = "batch " if "batch(column)" in title else ""
    is_of_devices = "devices(column)" in title
    for kind, own in groupby(cells, lambda one: one.bound and (one.bound.kind or _NO_PART)):
        equivalent = list(own)
        if kind is None:
            continue
        shares = sorted(one.bound.share for one in equivalent if one.bound)
        ends = dict.fromkeys((f"{shares[0]:.0%}", f"{shares[-1]:.0%}"))
        columns = dict.fromkeys((equivalent[0].cell.column, equivalent[-1].cell.column))
        at = f"{before}{' to '.join(columns)}"
        at += f" device{'' if at == '1' else 's'}" if is_of_devices else ""
        said.append(f"{kind} at {at} ({' to '.join(ends)} of the time)")
    if said:
        yield line(Span(f"{row} ", "name"), "bounded by ", ", ".join(said))


def _advice(known: Sequence[_AskedCell]) -> Iterator[Line]:
    found: dict[str, str] = {}
    for one in known:
        if one.bound is not None and (advice := advice_on(one.bound, one.asked)) is not None:
            found.setdefault(advice, one.bound.kind or "")
    for advice, kind in found.items():
        yield line(Span(f"{kind}: ", "strong"), advice)


def _how_lines(known: Sequence[_AskedCell]) -> Iterator[Line]:
    for how, equivalent in grouped((one.done.how, one) for one in known).items():
        if how:
            first, more = equivalent[0].cell.place, len(equivalent) - 1
            cells = f"{first} and {more} more" if more else f"{first}"
            yield plain(f"{cells}: {'; '.join(how)}", "dim")
