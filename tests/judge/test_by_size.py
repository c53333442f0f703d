"""From which size on a setting is better is told from the directions at each size."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.judge.by_size import Span, paths_alike, spans
from linkgauge.model.variation import Compared, VariedCell

DIRECTIONS = ("better", "worse", "same", "unknown")


def at(size, direction, column="0"):
    """A cell of two settings, the second of which is so."""
    return VariedCell(
        benchmark="x", title="x", backend="x", size=size, row="0", column=column, unit="B/s",
        better="higher", settings=(Compared(()), Compared((), direction=direction)),
    )  # fmt: skip


@given(st.dictionaries(st.integers(1, 1 << 40), st.sampled_from(DIRECTIONS), min_size=1))
def test_spans_are_every_size_once_in_order_and_as_long_as_can_be(by_size):
    found = spans([at(*one) for one in by_size.items()], 1)
    sizes = [size for span in found for size in span.sizes]
    assert sizes == sorted(by_size)
    assert all({by_size[size] for size in span.sizes} == {span.direction} for span in found)
    assert all(one.direction != next_.direction for one, next_ in pairwise(found))


def test_paths_that_go_alike_are_told_together():
    cells = [
        at(size, direction, column)
        for column, directions in (("0", "wb"), ("1", "bb"), ("2", "wb"))
        for size, direction in zip(
            (10, 20), ({"w": "worse", "b": "better"}[d] for d in directions), strict=True
        )
    ]
    crossing = (Span("worse", (10,)), Span("better", (20,)))
    assert [(found, [path.column for path in paths]) for found, paths in paths_alike(cells, 1)] == [
        (crossing, ["0", "2"]), ((Span("better", (10, 20)),), ["1"]),
    ]  # fmt: skip
