"""From which size on a setting is better: how a comparison goes over the sizes of a path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from linkgauge.model.stats.changes import Direction
from linkgauge.model.transfer import Place
from linkgauge.model.variation import VariedCell


class Span(NamedTuple):
    """Consecutive measured sizes, in ascending order, over which the direction is the same."""

    direction: Direction
    sizes: tuple[int, ...]


Spans = tuple[Span, ...]


def spans(cells: Sequence[VariedCell], number: int) -> Spans:
    """Those of setting `number` over the sizes of one path's `cells`."""
    directions = sorted((cell.size, cell.settings[number].direction) for cell in cells)
    return tuple(
        Span(direction, tuple(size for size, _ in alike))
        for direction, alike in groupby(directions, lambda one: one[1])
    )


def paths_alike(cells: Sequence[VariedCell], number: int) -> Iterator[tuple[Spans, list[Place]]]:
    """The paths of one benchmark's `cells` that go alike under setting `number`."""
    by_path: dict[Place, list[VariedCell]] = {}
    for cell in cells:
        by_path.setdefault(Place(cell.row, cell.column), []).append(cell)
    found: dict[Spans, list[Place]] = {}
    for path, own in by_path.items():
        found.setdefault(spans(own, number), []).append(path)
    yield from found.items()
