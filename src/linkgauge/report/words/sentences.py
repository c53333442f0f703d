"""Makes the sentences of notes, for screens and for `warnings` in run.json."""

from __future__ import annotations

import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from linkgauge.model.names import range_of
from linkgauge.model.notes import (
    Concurrent,
    Imprecise,
    NearCache,
    Note,
    NotRepeated,
    Profiled,
    Remark,
    Unjudged,
)
from linkgauge.model.units import approximate_size, format_size

QUIET = "stop other programs"
NAMED = 6


def first_of(names: Sequence[str], separator: str = " ", most: int = NAMED) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return separator.join(names[:most]) + more


def sentence(note: Note) -> str:
    match note:
        case Concurrent(others):
            return f"measured at the same time as {others} other pairs"
        case Imprecise(asked, reached, samples, budget):
            found = "no interval" if reached is None else f"±{reached:.2%}"
            why = "the time budget was used" if budget is True else QUIET
            return f"precision of ±{asked:.2%} missed: {found} after {samples} samples; {why}"
        case NotRepeated(reason):
            return f"not repeated: {reason}"
        case Unjudged(limit, where, why):
            return f"cannot judge limit {limit} ({where}): {why}"
        case NearCache(size):
            return near_cache(note, [size])
        case Profiled(by):
            return f"measured under {by}: do not compare it with other figures"
        case Remark(text):
            return text


def near_cache(note: NearCache, sizes: Collection[int]) -> str:
    ends = range_of(format_size, sizes)
    fit = max(sizes) < note.cache
    how = "fit in" if fit else f"are less than {note.times} times"
    figures = "figure" if len(sizes) == 1 else "figures"
    return (
        f"{ends} {how} the last-level cache ({approximate_size(note.cache)}): "
        f"the {figures} may be{'' if fit else ' partly'} the cache's"
    )


# How the person at the terminal calls linkgauge.

NAME = "linkgauge"


def program() -> str:
    """Returns `linkgauge` if a shell finds it, else the path by which the user started it."""
    from shutil import which

    typed = sys.argv[0]
    return NAME if Path(typed).name != NAME or which(NAME) else typed
