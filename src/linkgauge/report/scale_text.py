"""How a collective scales, as text and as CSV: a line for each number of devices, the knee, the
floor, and the pairs that were measured alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from linkgauge.benchmarks.collectives import row_of
from linkgauge.judge.scaling import FALLEN
from linkgauge.model.scaling import Count, Scaling
from linkgauge.model.units import BANDWIDTH, format_size

from .blocks import Span, line
from .csv_text import csv_text
from .matrix import ABSENT, shown
from .render.terminal import styled
from .run_text import simulated
from .sweep_text import line_lines
from .worst import Ending
from .wrapping import Hanging

BAR = 20
"""Characters of an efficiency of 100 %."""
INDENT = 4
"""Columns before what goes on of a line."""
MOST_PROBLEMS = 8
"""Of more that did not pass, the first are shown."""
MOST_PAIRS = 16
"""Of more pairs measured alone, the slow ones are shown."""
COLUMNS = ("gpus", "size", "seconds", "algbw", "busbw", "expected", "unit", "simulated")


def scale_lines(scaling: Scaling) -> Iterator[RenderableType]:
    """All that is to be said of it."""
    yield _head(scaling)
    if scaling.counts:
        yield from _measured(scaling)
    for problem in scaling.problems[:MOST_PROBLEMS]:
        style = "yellow" if problem.startswith("skip") else "bold red"
        yield Hanging(Text(problem, style=style), INDENT)
    if len(scaling.problems) > MOST_PROBLEMS:
        yield Text(f"and {len(scaling.problems) - MOST_PROBLEMS} more that did not pass")


def _measured(scaling: Scaling) -> Iterator[RenderableType]:
    heads = f"{'algbw':>10}{'busbw':>10}{'expected':>10}{'floor us':>10}  efficiency"
    yield Text(f"{scaling.member + 's':>5}{heads}", style="italic")
    for count in scaling.counts:
        yield _row(count)
    yield from (Hanging(line, INDENT) for line in _expectations(scaling))
    yield Text()
    yield from map(styled, line_lines([c.line for c in scaling.counts if c.line is not None]))
    yield from (Hanging(line, INDENT) for line in told_lines(scaling))


def told_lines(scaling: Scaling) -> Iterator[Text]:
    """The latency floor, the knee, and the pairs that were measured alone."""
    yield _floor(scaling)
    yield _knee(scaling)
    yield from _pairs(scaling)


def _head(scaling: Scaling) -> Text:
    work = scaling.collective
    sizes = [point.size for count in scaling.counts for point in count.points]
    ends = " to ".join(map(format_size, dict.fromkeys((min(sizes), max(sizes))))) if sizes else ""
    name = Text.assemble((work.collective, "bold"), f"  {scaling.backend}  {row_of(work)}  {ends}")
    name.append("  GB/s of each " + scaling.member)
    if scaling.finished is None:
        name.append("  (interrupted)", "yellow")
    return name.append("  ").append(simulated()) if scaling.simulated else name


def _row(count: Count) -> Text:
    """The largest size's algbw; the plateau of busbw, and what is expected: `<` where that is only
    a bound."""
    algbw = max(point.algbw for point in count.points)
    line = Text(f"{count.gpus:>5}{_rate(algbw):>10}{_rate(count.plateau):>10}")
    line.append(f"{_expected(count):>10}{(count.floor or 0) * 1e6:>10.2f}")
    if count.efficiency is None:
        return line
    bar = "█" * round(min(count.efficiency, 1.5) * BAR)
    return line.append(f"  {count.efficiency:>4.0%} ").append(bar, "cyan")


def _expected(count: Count) -> str:
    if count.expected.achievable is not None:
        return _rate(count.expected.achievable)
    bound = count.expected.theoretical
    return ABSENT if bound is None else f"<{_rate(bound)}"


def _expectations(scaling: Scaling) -> Iterator[Text]:
    """Why so much is expected, once for all that have the same reason."""
    by_reason: dict[str, list[str]] = {}
    for count in scaling.counts:
        if count.gpus > 1:
            by_reason.setdefault(count.expected.because, []).append(str(count.gpus))
    for reason, counts in by_reason.items():
        yield Text(f"expected of {', '.join(counts)}: {reason}", style="dim")


def _rate(rate: float | None) -> str:
    return ABSENT if rate is None else shown(rate, BANDWIDTH.symbol)


def _floor(scaling: Scaling) -> Text:
    each = [f"{(c.floor or 0) * 1e6:.2f} us of {c.gpus}" for c in scaling.counts]
    return Text(f"latency floor: {', '.join(each)}")


def _knee(scaling: Scaling) -> Text:
    several = [count for count in scaling.counts if count.plateau is not None]
    if not several:
        return Text(f"one {scaling.member} shares no link: only time and algbw mean anything")
    knee = scaling.knee
    if knee is None:
        most = several[-1].gpus
        return Text(
            f"no knee: up to {most} {scaling.member}s, no count is below {FALLEN:.0%} of the best "
            "before it"
        )
    why = knee.because or "the machine's map does not explain it"
    return Text.assemble(
        ("knee", "yellow"),
        f" at {knee.gpus} {scaling.member}s: {knee.left:.0%} of the busbw of {knee.best}: {why}",
    )


def _pairs(scaling: Scaling) -> Iterator[Text]:
    if scaling.below:
        counts = ", ".join(map(str, scaling.below))
        yield Text.assemble(("below what is expected", "yellow"), f": {counts} {scaling.member}s")
    shown_pairs = scaling.pairs
    if len(shown_pairs) > MOST_PAIRS:
        rates = [one.rate for one in shown_pairs]
        ends = f"{_rate(min(rates))} to {_rate(max(rates))} GB/s"
        yield Text(f"  {len(shown_pairs)} pairs, each alone: {ends}")
        shown_pairs = tuple(one for one in shown_pairs if one.slow)
    for one in shown_pairs:
        expected = f" of {_rate(one.expected)} expected" if one.expected is not None else ""
        line = Text(f"  {one.pair} alone: {_rate(one.rate)} GB/s{expected}")
        yield line.append("  slow link", "bold red") if one.slow else line
    if scaling.pairs and not any(one.slow for one in scaling.pairs):
        yield Text("  each pair alone is as fast as expected, but not all together")


def ending_of(scaling: Scaling) -> Ending:
    """The verdict on the numbers of devices of which something is expected. One device shares no
    link, so nothing is expected of it."""
    several = [count for count in scaling.counts if count.gpus > 1]
    verdicts = Counter(count.verdict for count in several)
    member = scaling.member
    tally = f"{len(several)} numbers of {member}s, {verdicts['ok']} ok, {verdicts['low']} low"
    if verdicts["unknown"]:
        tally += f", {verdicts['unknown']} not judged (no reference)"
    if low := [count for count in several if count.verdict == "low"]:
        counts = ", ".join(str(count.gpus) for count in low)
        worst = min(count.efficiency or 0.0 for count in low)
        text = f" {counts} {member}s reach {worst:.0%} of the expected busbw"
        return Ending(line(Span("low", "warn"), text), tally, is_low=True)
    if not verdicts["ok"]:
        text = f": no number of {member}s has a reference"
        return Ending(line(Span("not judged", "dim"), text), tally)
    of = f"{verdicts['ok']} of {len(several)}" if verdicts["unknown"] else f"all {len(several)}"
    text = f": {of} numbers of {member}s reach the expected busbw"
    return Ending(line(Span("ok", "good"), text), tally)


def scale_csv(scaling: Scaling) -> str:
    """A line for each number of devices and size, in base units."""
    return csv_text((COLUMNS, *_csv_rows(scaling)))


def _csv_rows(scaling: Scaling) -> Iterator[tuple[object, ...]]:
    for count in scaling.counts:
        for at in count.points:
            figures = (at.seconds, at.algbw, at.busbw, count.expected.achievable)
            yield (count.gpus, at.size, *figures, BANDWIDTH.symbol, scaling.simulated)
