"""What a comparison of runs and the gate say of a cell, wherever they say it."""

from __future__ import annotations

from linkgauge.judge.disturbance import Disturbance
from linkgauge.judge.gate import GateCell
from linkgauge.judge.run_comparison import CellChange
from linkgauge.model.units import percent, unit_of
from linkgauge.report.figures import digits

_LEAST_P = 1e-99


def why(one: GateCell) -> str:
    """What is wrong with a cell, or what is not known of it, in one line."""
    current = one.current
    match one.verdict:
        case "missing":
            return f"the current runs lack it; {_figure(one.baseline.figure, one)} in the baseline"
        case "worse status" if current is not None:
            reason = f": {current.reason}" if current.reason else ""
            return f"{current.status}, was {one.baseline.status}{reason}"
        case "inconclusive" if one.disturbance is not None:
            return f"{_lost(one)}; the machine was not the same: {_disturbed(one.disturbance)}"
        case "blind" if one.largest is not None:
            return f"{_lost(one)}; it may have lost {a_loss(one.largest)}"
        case "blind":
            return "nothing tells how much runs vary: give several runs"
        case "not enough":
            return f"{_lost(one)}; {lacking(one.cell.changes[0])}"
    return _lost(one)


def _lost(one: GateCell) -> str:
    """`5.1 % less: 55.40 → 52.60 GB/s (p 0.0002)`."""
    change = one.cell.changes[0].change
    if one.loss is None or change is None or one.current is None:
        return "no figure on both sides"
    word = "less" if (one.loss > 0) == (one.cell.better == "higher") else "more"
    figures = f"{_digits(one.baseline.figure, one)} → {_figure(one.current.figure, one)}"
    return f"{percent(abs(one.loss))} {word}: {figures} (p {p_value(change.holm)})"


def _figure(figure: float | None, one: GateCell) -> str:
    return f"{_digits(figure, one)} {unit_of(one.cell.unit).shown}"


def _digits(figure: float | None, one: GateCell) -> str:
    return "-" if figure is None else digits(figure / unit_of(one.cell.unit).scale)


def _disturbed(one: Disturbance) -> str:
    """Who disturbed what."""
    if one.apart is not None:
        before, after = (f"{seconds * 1e9:.0f} ns" for seconds in one.apart)
        return f"its host ran virtual CPUs {after} apart, {before} in the baseline"
    number = "" if one.pid is None else f" (pid {one.pid})"
    if one.device is not None:
        return f"another process{number} used {one.device} in one of them"
    who = f"{one.process}{number}" if one.process else "a process that this one cannot see"
    return f"{who} and others kept {one.current:.1f} CPUs busy, {one.baseline:.1f} in the baseline"


def lacking(one: CellChange) -> str:
    """What it takes to tell."""
    if one.needed is None:
        return ""
    more = one.needed.more
    runs = f"not enough runs: {more_runs(more)}" if more else "too noisy for any number of runs"
    return f"{runs}; may miss a loss below {a_loss(one.needed.detectable)}"


def more_runs(more: tuple[int, int]) -> str:
    """`3 more`, if more of the second side suffice."""
    first, other = more
    return f"{first} more of the first side, {other} of the other" if first else f"{other} more"


def a_loss(fraction: float) -> str:
    """In percent; of a time, a loss has no end."""
    return percent(fraction) if fraction < 10 else "over 1000%"


def p_value(p: float) -> str:
    """0.003; 2e-05; below what floating-point numbers tell, < 1e-99."""
    if p < _LEAST_P:
        return f"< {_LEAST_P:.0e}"
    return f"{p:.2g}" if p >= 1e-3 else f"{p:.0e}"
