"""Shows a run's plan: what it would measure, and how much memory and time it would take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from linkgauge.engine.budget import OfPlan, Promise, expected_seconds, promise_of
from linkgauge.engine.plan import Plan, most_seconds, peak_memory
from linkgauge.model.settings import Settings
from linkgauge.model.units import approximate_size, count_of, format_duration
from linkgauge.report.blocks import Block, Entry, Prose, Span, line, plain
from linkgauge.report.results import SIMULATED, table, where
from linkgauge.report.words.sentences import first_of


class DryRun(msgspec.Struct, frozen=True):
    """What a run would measure.

    plan: The tables of cells.
    peak_memory: The most bytes that the run takes at once, by memory.
    most_seconds: The most seconds that the run takes; null if that depends on the samples.
    budget: The seconds on a quiet machine, and the limit in seconds; null without a budget.
    usual: The seconds that such runs on this machine took last; null if there are none.
    expected: The seconds that the run takes, estimated from the plan; null if unknown.
    repeated_for: The seconds for which the run is repeated; null if it is not repeated."""

    plan: Plan
    peak_memory: dict[str, int]
    most_seconds: float | None
    budget: Promise | None = None
    usual: float | None = None
    expected: float | None = None
    repeated_for: float | None = None


def dry_run(
    plan: Plan, settings: Settings, asked: float | OfPlan | None, usual: float | None = None
) -> DryRun:
    repeated = None if settings.soak is None else settings.soak.seconds
    budget = promise_of(plan, settings, asked)
    most = most_seconds(plan, settings) if budget is None else budget.most
    expected = expected_seconds(plan, settings, budget)
    return DryRun(plan, peak_memory(plan), most, budget, usual, expected, repeated)


def plan_blocks(dry: DryRun) -> Iterator[Block]:
    plan = dry.plan
    rows: list[Sequence[str | Entry]] = []
    for planned in plan:
        rows.append((Entry(f"{planned.benchmark}{where(planned)}", tone="strong"), ""))
        rows += [("", _cell("", planned.reason))] if planned.reason is not None else []
        rows += [(str(cell.place), _cell(str(cell), cell.reason)) for cell in planned.cells]
    mark = SIMULATED if any(planned.simulated for planned in plan) else ""
    caption = line(Span("What a run would measure ", "strong"), mark)
    heads = ("cell", "transfers (xN: moves N times the size)")
    yield table("", heads, rows)._replace(caption=caption)
    count = sum(1 for planned in plan for cell in planned.cells if cell.reason is None)
    sizes = [f"{name} {approximate_size(size)}" for name, size in dry.peak_memory.items()]
    held = first_of(sizes, ", ")
    yield Prose([plain(f"{count_of(count)}; memory at most: {held or 'none'}; {time_of(dry)}")])


def time_of(dry: DryRun) -> str:
    """Formats the usual and the longest time of a run, if they are known."""
    most = dry.most_seconds if dry.budget is None else dry.budget.most
    said = []
    if dry.usual is not None:
        said.append(f"about {format_duration(dry.usual)}, as in its latest runs here")
    elif dry.expected is not None:
        said.append(f"about {format_duration(max(1, round(dry.expected)))}")
    if most is not None and (dry.budget is not None or not said):
        busy = " if the machine is busy" if dry.budget is not None and said else ""
        said.append(f"at most {format_duration(most)}{busy}")
    time = (", " if dry.usual is None else "; ").join(said)
    if dry.repeated_for is not None:
        return f"a round takes {time}; repeated for {format_duration(dry.repeated_for)}"
    return time or "time depends on the samples"


def _cell(text: str, reason: str | None) -> Entry:
    return Entry(text) if reason is None else Entry(f"{text}  skip: {reason}".strip(), tone="warn")
