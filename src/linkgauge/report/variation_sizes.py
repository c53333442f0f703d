"""What settings change over several sizes, as a sentence: from which size on one is better."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from linkgauge.judge.by_size import Span, Spans, paths_alike
from linkgauge.model.stats.changes import Direction
from linkgauge.model.units import format_size
from linkgauge.model.variation import Setting, VariedCell

from .sentences import first_of

_WORDS: dict[Direction, str] = {
    "better": "better",
    "worse": "worse",
    "same": "~",
    "unknown": "not compared",
}


def size_lines(cells: Sequence[VariedCell], settings: Sequence[Setting]) -> Iterator[Text]:
    """Lines for each setting but the first, of the cells of one benchmark at all sizes."""
    for number, setting in enumerate(settings[1:], 1):
        alike = list(paths_alike(cells, number))
        for found, paths in alike:
            line = Text.assemble("  ", (setting.name, "bold"))
            if len(alike) > 1 or len(paths) == 1:
                line.append(f" {first_of([str(path) for path in paths])}", "cyan")
            else:
                line.append(f" all {len(paths)} paths", "cyan")
            yield line.append(f": {_sentence(found)}")


def _sentence(found: Spans) -> str:
    if len(found) == 1:
        return f"{_WORDS[found[0].direction]} at every size"
    first, *middle, last = found
    return ", ".join(
        (
            f"{_WORDS[first.direction]} up to {format_size(first.sizes[-1])}",
            *map(_between, middle),
            f"{_WORDS[last.direction]} from {format_size(last.sizes[0])} on",
        )
    )


def _between(span: Span) -> str:
    ends = " to ".join(map(format_size, dict.fromkeys((span.sizes[0], span.sizes[-1]))))
    return f"{_WORDS[span.direction]} {'at' if len(span.sizes) == 1 else 'from'} {ends}"
