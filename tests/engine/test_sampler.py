"""Samples are long enough, enough of them are taken, and each stop has a reason."""

import itertools

import pytest

from fakes import FakeBackend
from linkgauge.backends.base import Copy
from linkgauge.engine.sampler import SAMPLE_SECONDS, take_samples, warm_up
from linkgauge.model.notation import parse_transfer
from linkgauge.model.result import Settings

SETTINGS = Settings((1000,), precision=0.01, max_time=10.0)


def group(backend, size=1000):
    transfer = parse_transfer("fake:0 -> fake:0 by ce")
    buffers = [backend.allocate(transfer.source, size, transfer.engine) for _ in range(2)]
    return backend.prepare([Copy(transfer, *buffers, size, 1)])


def rate(timing, loops):
    return [1000 * loops / timing.seconds[0]]


def ticking(step=0.0):
    return (step * n for n in itertools.count()).__next__


@pytest.mark.parametrize("seconds_a_copy", [1e-8, 3e-6, 1e-3, 0.004, 0.5])
def test_a_sample_lasts_at_least_20_ms_and_two_copies(seconds_a_copy):
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: seconds_a_copy / 1000
    loops = warm_up(group(backend), SETTINGS)
    assert loops >= 2
    assert (
        loops * seconds_a_copy >= SAMPLE_SECONDS * 0.999 or loops == backend.prepare([]).most_loops
    )


def test_loops_asked_for_are_kept():
    assert warm_up(group(FakeBackend()), Settings((1000,), loops=16)) == 16


def test_no_more_loops_wait_than_the_gate_holds():
    backend = FakeBackend()
    prepared = group(backend)
    prepared.most_loops = 7
    backend.seconds_a_byte = lambda n: 1e-12
    assert warm_up(prepared, SETTINGS) == 7


def test_a_steady_transfer_stops_at_six_samples_for_precision():
    taken = take_samples(group(FakeBackend()), 2, SETTINGS, rate, ticking())
    assert (taken.stopped, len(taken.timings)) == ("precision", 6)


def test_a_noisy_one_goes_on_until_the_interval_is_narrow():
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 1e-9 * (2 if n in (1, 2) else 1)
    taken = take_samples(group(backend), 2, SETTINGS, rate, ticking())
    assert (taken.stopped, len(taken.timings)) == ("precision", 14)


def test_the_interval_is_not_looked_at_between_the_looks():
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 1e-9 * (2 if n == 1 else 1)
    taken = take_samples(group(backend), 2, SETTINGS, rate, ticking())
    assert len(taken.timings) == 9


def test_time_spent_stops_it_and_says_so():
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 1e-9 * (1 + n % 2)
    taken = take_samples(group(backend), 2, SETTINGS, rate, ticking(1.0))
    assert (taken.stopped, len(taken.timings)) == ("max-time", 10)


def test_a_precision_out_of_reach_is_given_up_before_the_time_is_spent():
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 1e-9 * (1 + n % 2)
    taken = take_samples(group(backend), 2, SETTINGS, rate, ticking(0.1))
    assert (taken.stopped, len(taken.timings)) == ("max-time", 14)


def test_one_within_reach_is_not():
    backend = FakeBackend()
    # ±1.05 % after 1.4 s of 10: a few more might do.
    backend.seconds_a_byte = lambda n: 1e-9 * (1 + 0.021 * (n % 2))
    taken = take_samples(group(backend), 2, SETTINGS, rate, ticking(0.1))
    assert len(taken.timings) > 40


def test_of_several_cells_the_least_certain_decides():
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 1e-9 * (2 if n in (1, 2) else 1)

    def two(timing, loops):
        return [1.0, *rate(timing, loops)]

    taken = take_samples(group(backend), 2, SETTINGS, two, ticking())
    assert (taken.stopped, len(taken.timings)) == ("precision", 14)


def test_with_too_little_time_there_is_one_sample_and_no_interval():
    taken = take_samples(group(FakeBackend()), 2, SETTINGS, rate, ticking(100.0))
    assert (taken.stopped, len(taken.timings)) == ("max-time", 1)


@pytest.mark.parametrize("count", [1, 3, 6, 25])
def test_a_fixed_count_is_taken_exactly(count):
    settings = Settings((1000,), samples=count, max_time=1e-9)
    taken = take_samples(group(FakeBackend()), 2, settings, rate, ticking(1.0))
    assert (taken.stopped, len(taken.timings)) == ("samples", count)
