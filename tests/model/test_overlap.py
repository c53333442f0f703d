"""The share of a time that is hidden, and the times it is formed of."""

import pytest

from linkgauge.model.overlap import hidden, time_together


@pytest.mark.parametrize(
    ("computing", "copying", "together", "share"),
    [
        (3.0, 3.0, 6.0, 0.0),  # one after the other
        (3.0, 3.0, 3.0, 1.0),
        (3.0, 3.0, 4.5, 0.5),
        (4.0, 2.0, 4.0, 1.0),  # the shorter one is hidden whole, whichever it is
        (2.0, 4.0, 4.0, 1.0),
        (2.0, 4.0, 5.0, 0.5),
        (3.0, 3.0, 6.6, -0.2),  # they hold each other up
        (4.0, 4.0, 3.9, 1.025),  # scatter
    ],
)
def test_what_both_at_once_save_is_a_share_of_the_shorter_time(computing, copying, together, share):
    assert hidden(computing, copying, together) == pytest.approx(share)
    assert time_together(computing, copying, share) == pytest.approx(together)
