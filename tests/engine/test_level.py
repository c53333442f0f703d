"""Samples of products count once a device's speed stays at one level, as a power cap acts late."""

from itertools import accumulate
from random import Random

import pytest

from linkgauge.backends.protocol import SamplingPolicy, Timing
from linkgauge.engine.measuring.sampler import Sample, take_samples
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import PRODUCT_SAMPLES

SAMPLE = Sample(7, 0.012, 4, SamplingPolicy(level=PRODUCT_SAMPLES))


class Card:
    """Runs products whose samples take `seconds_at` the time since the first one began."""

    policy, most_loops = SamplingPolicy(), 480

    def __init__(self, seconds_at):
        self.seconds_at, self.now, self.batches = seconds_at, 0.0, 1

    def arm(self, loops, batches=1):
        self.batches = batches

    def open(self):
        pass

    def close(self):
        pass

    def wait(self):
        times = []
        for _ in range(self.batches):
            times.append(self.seconds_at(self.now))
            self.now += times[-1]
        return Timing.of_one([0.0, *accumulate(times)])


def taken(card, samples=PRODUCT_SAMPLES, sample=SAMPLE, precision=0.01):
    settings = Settings((1,), samples=samples, precision=precision)
    found = take_samples(card, sample, settings, clock=lambda: card.now)
    assert len(found.timings) == sum(found.gates) == samples
    return [timing.seconds[0] for timing in found.timings], card.now


def falling(at, noise=0.0):
    """Returns the seconds of a card that is a seventh slower `at` seconds after a start."""
    draw = Random(95)
    return lambda now: (0.012 if now < at else 0.014) * (1 + noise * draw.uniform(-1, 1))


@pytest.mark.parametrize("at", [0.03, 0.06, 0.12, 0.19])
@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_what_runs_before_the_power_cap_acts_does_not_count(at, noise):
    seconds, took = taken(Card(falling(at, noise)))
    assert sum(one < 0.013 for one in seconds) <= 4  # the median is the level's
    assert seconds[-1] > 0.013
    assert took < at + 0.35


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.3])
def test_a_card_at_one_level_takes_no_more_gates_than_its_samples_need(noise):
    seconds, took = taken(Card(falling(0.0, noise)))
    assert took - sum(seconds) < SAMPLE.batches * max(seconds)


def test_few_samples_of_the_user_are_taken_at_the_level_too():
    seconds, _ = taken(Card(falling(0.1)), samples=2)
    assert min(seconds) > 0.013


def test_a_speed_that_never_stays_is_waited_for_a_second():
    _, took = taken(Card(lambda now: 0.012 * (1 + now)))
    assert 1.0 <= took < 1.1


def test_only_products_wait():
    seconds, took = taken(Card(falling(0.1)), sample=Sample(7, 0.012, 4))
    assert took == pytest.approx(sum(seconds))
    assert min(seconds) < 0.013
