"""How long ranks wait for each other grows with what they have to do and to share."""

import pytest

from linkgauge.cluster.patience import (
    CROWDED,
    PATIENCE,
    RATE,
    SETTLE_SECONDS,
    SIGN_SECONDS,
    Patience,
)


@pytest.mark.parametrize(
    ("crowd", "moved", "seconds"),
    [
        (0.25, 0, PATIENCE),
        (1.0, 0, PATIENCE),
        (3.0, 0, 3 * PATIENCE),
        (64.0, 0, CROWDED * PATIENCE),
        (1.0, int(10 * RATE), PATIENCE + 10),
        (2.0, int(10 * RATE), 2 * (PATIENCE + 10)),
    ],
)
def test_grows_with_the_bytes_and_with_the_ranks_to_a_cpu(crowd, moved, seconds):
    assert Patience(crowd).of_answer(moved) == pytest.approx(seconds)


def test_is_the_users_if_given():
    mine = Patience(64.0, 0.5)
    assert mine.of_answer(1 << 40) == 0.5
    assert mine.of_settling == 0.5 + SIGN_SECONDS
    assert Patience(64.0).of_settling == SETTLE_SECONDS


def test_for_a_sign_of_life_is_as_much_longer_as_ranks_share_cpus_whatever_the_user_says():
    assert Patience(2.0, 0.5).of_sign == 2 * SIGN_SECONDS
