"""A baseline in words, and as limits.yml."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec
from rich.console import RenderableType
from rich.text import Text

from linkgauge.judge.baseline import Baseline, BaselineCell
from linkgauge.model.printable import escaped
from linkgauge.model.stats.changes import log_of_loss
from linkgauge.model.units import UNITS, count_of, unit_of

from .figures import digits, percent
from .wrapping import Hanging

MOST = 10
_ABOVE = "# Made of a baseline by linkgauge: medians of runs, and room for what they vary by."
_FAR = 3.0
"""Deviations of runs from their median that a limit leaves room for, at least."""


def baseline_lines(baseline: Baseline) -> Iterator[RenderableType]:
    """What was made of how many runs, how much they vary, and which ones are outliers."""
    runs, cells = baseline.runs, baseline.cells
    hosts = {run.machine.host.hostname for run in runs}
    several = f" on {len(hosts)} machines" if len(hosts) > 1 else ""
    count = "1 run" if len(runs) == 1 else f"{len(runs)} runs"
    yield Text(f"baseline of {count}{several}, {count_of(len(cells))}")
    known = sorted((c for c in cells if c.deviation is not None), key=lambda c: c.deviation or 0.0)
    if known:
        middle, most = known[len(known) // 2], known[-1]
        line = f"runs vary by {percent(middle.deviation or 0)} (the middle cell); most: "
        yield Hanging(Text(f"{line}{most.name}, {percent(most.deviation or 0)}"), 4)
    else:
        yield Text("one run does not show how much runs vary: give several", "yellow")
    for name, number in baseline.outliers.items():
        own = [cell.name for cell in cells if name in cell.outliers]
        listed = ", ".join(own[:MOST]) + (" …" if len(own) > MOST else "")
        yield Hanging(Text(f"outlier: {name} in {count_of(number)}: {listed}", "yellow"), 4)


def baseline_limits(baseline: Baseline, least: float) -> str:
    """limits.yml: for each benchmark its worst cell's median, less the larger one of the least loss
    and of what its runs vary by."""
    lines: list[str] = []
    benchmarks: dict[tuple[str, str], list[BaselineCell]] = {}
    for cell in baseline.cells:
        benchmarks.setdefault((cell.benchmark, cell.unit), []).append(cell)
    for (benchmark, unit), cells in benchmarks.items():
        if unit not in UNITS:
            lines.append(f"  # {benchmark}: limits do not know {unit_of(unit).shown}")
            continue
        name = escaped(msgspec.json.encode(benchmark)).decode()  # a text of JSON is one of YAML
        lines.append(f'  - {{benchmark: {name}, limit: "{_bound(unit, cells, least)}"}}')
    is_empty = all(line.lstrip().startswith("#") for line in lines)
    return "\n".join((_ABOVE, f"limits:{' []' if is_empty else ''}", *lines, ""))


def _bound(unit: str, cells: Sequence[BaselineCell], least: float) -> str:
    shown, scale = unit_of(unit).shown, unit_of(unit).scale
    better = cells[0].better
    bounds = []
    for cell in cells:
        room = max(log_of_loss(least, better), _FAR * (cell.deviation or 0.0))
        bounds.append(cell.median * math.exp(-room if better == "higher" else room))
    worst = min(bounds) if better == "higher" else max(bounds)
    return f"median {'>=' if better == 'higher' else '<='} {_number(worst / scale)} {shown}"


def _number(value: float) -> str:
    """Without an exponent that limits cannot read."""
    return digits(value).rstrip(".") if value >= 1e-3 else f"{value:.3e}"
