"""A few draws of the campaign of peers, and its exact interval."""

import pytest

from campaign_peers import campaign, of_recording, recordings
from campaigns import interval_of


def test_the_interval_is_that_of_clopper_and_pearson():
    assert interval_of(0, 280) == pytest.approx((0.0, 0.01309), abs=1e-4)
    assert interval_of(5, 100) == pytest.approx((0.01643, 0.11284), abs=1e-4)
    assert interval_of(48, 48)[1] == 1.0


def test_faults_are_named_and_healthy_machines_are_not_accused():
    assert sum(one.counts for one in campaign("faults", range(8))) == 8
    assert sum(one.counts for one in campaign("small", range(6))) == 6
    assert sum(one.counts for one in campaign("healthy", range(6))) == 0


def test_recordings_do_not_warn():
    found = [of_recording(path) for path in recordings()[::20]]
    assert not [one.said for one in found if one.counts]
