"""The sentences of notes, for people and for `warnings` in run.json."""

from __future__ import annotations

from collections.abc import Sequence

from linkgauge.model.notes import Beside, Imprecise, Note, NotRevisited, Remark, Unjudged

QUIETEN = "give more --max-time or quieten the machine"
NAMED = 6
"""Most cells or subjects that are named."""


def first_of(names: Sequence[str], separator: str = " ") -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return separator.join(names[:NAMED]) + more


def sentence(note: Note) -> str:
    match note:
        case Beside(others):
            return f"measured at the same time as {others} other pairs"
        case Imprecise(asked, reached, samples):
            found = "no interval" if reached is None else f"±{reached:.2%}"
            return f"precision of ±{asked:.2%} missed: {found} after {samples} samples; {QUIETEN}"
        case NotRevisited(reason):
            return f"not visited again: {reason}"
        case Unjudged(limit, where, why):
            return f"limit {limit} ({where}) cannot be judged: {why}"
        case Remark(text):
            return text
