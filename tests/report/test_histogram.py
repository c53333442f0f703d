"""Samples as a row of bars."""

from hypothesis import given
from hypothesis import strategies as st

from linkgauge.report.histogram import histogram


@given(st.lists(st.floats(1e-9, 10.0), min_size=1, max_size=300))
def test_a_histogram_has_a_bar_wherever_samples_are_and_is_tallest_where_most_are(samples):
    bars = histogram(samples)
    assert len(bars) <= 24
    assert "█" in bars
    assert bars[0] != " ", "the least sample is in the first interval"
    assert len(bars.replace(" ", "")) <= len(set(samples))
    if max(samples) > 2 * min(samples):
        assert len(bars) == 24, "and the largest in the last"


def test_a_histogram_tells_two_modes_from_one():
    assert histogram([1e-6] * 5) == "█"
    assert histogram([1e-6] * 30 + [9e-6] * 15) == "█" + " " * 22 + "▄"
