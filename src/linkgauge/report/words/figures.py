"""Formats figures, intervals, differences, changes and samples as short texts."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from linkgauge.model.grouped import grouped
from linkgauge.model.units import count_of, format_size, percent, unit_of
from linkgauge.report.blocks import Tone

from .bars import BARS

if TYPE_CHECKING:
    from linkgauge.judge.compare.earlier import Since
    from linkgauge.judge.compare.machine_state import Fact
    from linkgauge.judge.compare.what_changed import Changed
    from linkgauge.model.stats.changes import Direction
    from linkgauge.model.units import Better

_TWICE = 2.0
_TENFOLD = math.log(10)
_FLAT = 1.002


def digits(value: float) -> str:
    """Formats a number with four digits, or with more from 10,000 on."""
    if value >= 1000:
        return f"{value:.0f}"
    return f"{value:#.4g}" if value else "0"


def signed(ratio: float, decimals: int = 1) -> str:
    """Formats a ratio as a change: `+4.0%`, `-12.3%`, or, of 2 and more, as a factor, `×2.5`."""
    return f"{100 * (ratio - 1):+.{decimals}f}%" if ratio < _TWICE else times(ratio)


def times(ratio: float) -> str:
    return f"×{ratio:.3g}"


def difference(ratio: float, better: Better, other: str = "") -> str:
    """Formats a ratio: `5.1% less`, `2.5 times as much` or, for times, `12% longer than before`."""
    if ratio < _TWICE:
        than = f" than {other}" if other else ""
        less, more = ("less", "more") if better == "higher" else ("shorter", "longer")
        return f"{percent(abs(ratio - 1))} {less if ratio < 1 else more}{than}"
    of = f" as {other}" if other else ""
    return f"{ratio:.3g} times as {'much' if better == 'higher' else 'long'}{of}"


def loss_below(fraction: float, better: Better) -> str:
    """Formats which losses go unnoticed: `a loss below 12%`, or `a loss of half` if `hides_all`."""
    if hides_all(fraction, better):
        return "a loss of half"
    if better == "lower" and fraction >= _TWICE - 1:
        return f"a time below {difference(1 + fraction, better)}"
    return f"a loss below {percent(fraction)}"


def may_have_lost(fraction: float, better: Better) -> str:
    """Formats the largest loss that a comparison does not exclude: `it may have lost 62%`."""
    if hides_all(fraction, better):
        return "the two differ too much by themselves to exclude a loss of half"
    if better == "lower":
        return f"it may take {1 + fraction:.3g} times as long"
    return f"it may have lost {percent(fraction)}"


def hides_all(fraction: float, better: Better) -> bool:
    """Whether a loss of `fraction` makes a rate less than 1/10, or a time more than tenfold."""
    from linkgauge.model.stats.changes import log_of_loss

    return log_of_loss(fraction, better) > _TENFOLD


def with_reach(figure: float, low: float | None, high: float | None, unit: str) -> str:
    """Formats `55.40 ±0.5%`: a figure, and the wider half of its interval."""
    text = digits(figure / unit_of(unit).scale)
    if low is None or high is None:
        return text
    return f"{text} ±{percent(max(high - figure, figure - low) / figure)}"


def course(figures: Sequence[float], most: int) -> str:
    """Draws a bar for each figure. If there are more than `most`, a bar is a median of several."""
    count = min(most, len(figures))
    ends = [len(figures) * number // count for number in range(count + 1)] if count else []
    middles = [statistics.median(figures[begin:end]) for begin, end in pairwise(ends)]
    least, largest = min(middles, default=0.0), max(middles, default=0.0)
    if largest <= least * _FLAT:
        return BARS[len(BARS) // 2] * len(middles)
    steps = (int((middle - least) / (largest - least) * len(BARS)) for middle in middles)
    return "".join(BARS[min(step, len(BARS) - 1)] for step in steps)


# What changed between runs, in words.

MOST_FACTS = 3
TONES: dict[Direction, Tone] = {
    "worse": "bad", "better": "good", "same": "dim", "unknown": "warn",
}  # fmt: skip
SAME = "~"


def moved(fact: Fact) -> str:
    return " → ".join(value or "unknown" for value in fact.values)


def said(fact: Fact, names: Sequence[str]) -> str:
    """Formats a fact's values: `580.1 (before); 590.2 (after)`."""
    owners = grouped(zip(fact.values, names, strict=True))
    return "; ".join(f"{value or 'unknown'} ({', '.join(of)})" for value, of in owners.items())


def said_of(group: Changed) -> str:
    """Formats a change: `-17.1% in all 28 cells with sim:0 (-16.9% to -18.4% each)`."""
    form = times if max(group.least, group.ratio, group.most) >= _TWICE else signed
    least, most = form(group.least), form(group.most)
    ends = f" ({least} to {most} each)" if least != most else ""
    of, shared = group.of, group.shared
    count = f"all {of} cells" if group.cells == of > 1 else f"{group.cells} of {of} cells"
    words = [count] if of > 1 else []
    if shared.benchmark is not None:
        words.append(f"{'of ' if of > 1 else ''}{shared.benchmark}")
    if shared.is_one_place:
        words.append(f"({shared.row}, {shared.column})")
    elif shared.row is not None:
        words.append(f"in row {shared.row}")
    elif shared.column is not None:
        words.append(f"in column {shared.column}")
    words += [f"with {shared.device}"] if shared.device is not None else []
    words += [f"at {format_size(shared.size)}"] if shared.size else []
    return f"{form(group.ratio)} in {' '.join(words)}{ends}"


def since_line(one: Since) -> str:
    """Formats changes: `against 12 earlier runs: worse: -4.0% in all 28 cells with cuda:3`."""
    said = [f"{one.largest.direction}: {said_of(one.largest)}"] if one.largest else []
    said += [f"{count_of(one.more, 'more cell')} changed"] if one.more else []
    said += [f"no change is proven in {count_of(one.cells)}"] if not said else []
    facts = [f"{fact.name} {moved(fact)}" for fact in one.facts[:MOST_FACTS]]
    left = len(one.facts) - len(facts)
    facts += [f"{left} more facts of the machine"] if left else []
    changed = f"; the machine differs: {'; '.join(facts)}" if facts else ""
    return f"against {count_of(one.runs, 'earlier run')}: {'; '.join(said)}{changed}"
