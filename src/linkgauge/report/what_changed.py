"""What changed between runs, in words."""

from __future__ import annotations

from linkgauge.judge.earlier import Since
from linkgauge.judge.what_changed import Changed
from linkgauge.model.stats.changes import Direction
from linkgauge.model.units import count_of, format_size

from .blocks import Tone, moved
from .figures import signed

MOST_FACTS = 3
TONES: dict[Direction, Tone] = {
    "worse": "bad", "better": "good", "same": "dim", "unknown": "warn",
}  # fmt: skip
"""Of what a comparison finds, wherever it is shown."""
SAME = "~"


def said_of(group: Changed) -> str:
    """`-17.1% (-16.9% to -18.4%) in all 28 cells with sim:0`."""
    least, most = signed(group.least), signed(group.most)
    ends = f" ({least} to {most})" if least != most else ""
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
    return f"{signed(group.ratio)}{ends} in {' '.join(words)}"


def since_line(one: Since) -> str:
    """`against 12 earlier runs: worse: -4.0% in all 28 cells with cuda:3; driver 570 → 580`."""
    said = [f"{one.largest.direction}: {said_of(one.largest)}"] if one.largest else []
    said += [f"{count_of(one.more)} more changed"] if one.more else []
    said += [f"no change is proven in {count_of(one.cells)}"] if not said else []
    facts = [f"{fact.name} {moved(fact)}" for fact in one.facts[:MOST_FACTS]]
    left = len(one.facts) - len(facts)
    facts += [f"{left} more facts of the machine differ"] if left else []
    return f"against {count_of(one.runs, 'earlier run')}: {'; '.join((*said, *facts))}"
