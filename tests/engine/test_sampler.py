"""Samples are long enough, enough of them are taken, and each stop has a reason."""

import itertools

import pytest

from fakes import FakeBackend
from linkgauge.backends.protocol import Copy, Pace, Timing
from linkgauge.engine.sampler import Sample, take_samples, warm_up
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import Settings

SETTINGS = Settings((1000,), precision=0.01, max_time=1.0)


def group(backend, size=1000):
    transfer = parse_transfer("fake:0 -> fake:0 by ce")
    buffers = [backend.allocate(transfer.source, size, transfer.engine) for _ in range(2)]
    return backend.prepare([Copy(transfer, *buffers, size, 1)])


def ticking(step=0.0):
    return (step * n for n in itertools.count()).__next__


@pytest.mark.parametrize("seconds_a_copy", [1e-8, 3e-6, 1e-3, 0.004, 0.5])
def test_a_sample_lasts_at_least_20_ms_and_two_copies(seconds_a_copy):
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: seconds_a_copy / 1000
    loops = warm_up(group(backend), SETTINGS, Pace()).loops
    assert loops >= 2
    assert loops * seconds_a_copy >= 0.02 * 0.999 or loops == backend.prepare([]).most_loops


@pytest.mark.parametrize(("seconds", "expected"), [(1e-6, [16, 16, 16]), (0.03, [16, 16])])
def test_short_samples_are_rehearsed_where_their_pace_says_so(seconds, expected):
    settings = Settings((1000,), loops=16, samples=2)
    backend, taken = FakeBackend(), []
    backend.seconds_a_byte = lambda n: seconds / 1000
    prepared = group(backend)
    sample = warm_up(prepared, settings, Pace(rehearsed=True))
    arm = prepared.arm
    prepared.arm = lambda loops, laps=1: (taken.append(loops), arm(loops, laps))
    assert len(take_samples(prepared, sample, settings, ticking()).timings) == 2
    assert taken == expected


def test_a_visit_takes_samples_for_some_time_whatever_they_say():
    for seconds, count in ((0.02, 3), (0.008, 7), (1.0, 1), (1e-6, 32)):
        taken = take_samples(group(FakeBackend()), Sample(2, seconds), SETTINGS, ticking())
        assert (taken.loops, len(taken.timings), len(taken.gates)) == (2, count, count)


def test_the_time_of_the_cell_ends_a_visit():
    short = Settings((1000,), max_time=0.05)
    taken = take_samples(group(FakeBackend()), Sample(2, 0.01), short, ticking(0.03))
    assert len(taken.timings) == 2
    assert taken.seconds == 0.06


def test_a_visit_says_how_much_cpu_time_its_seconds_took():
    short = Settings((1000,), max_time=0.05)
    taken = take_samples(
        group(FakeBackend()), Sample(2, 0.01), short, ticking(0.03), cpu_clock=ticking(0.045)
    )
    assert (taken.seconds, taken.cpu_seconds) == (0.06, 0.09)
    unknown = take_samples(group(FakeBackend()), Sample(2, 0.01), short, ticking(0.03))
    assert unknown.cpu_seconds is None


@pytest.mark.parametrize("count", [1, 3, 6, 25])
def test_a_fixed_count_is_taken_exactly(count):
    settings = Settings((1000,), samples=count, max_time=1e-9)
    taken = take_samples(group(FakeBackend()), Sample(2), settings, ticking(1.0))
    assert len(taken.timings) == count


class Lapping:
    """A group whose n-th lap takes `seconds(n)`; what goes on beside it, twice as long in all."""

    most_loops = 480

    def __init__(self, seconds=lambda n: 0.01, pace=Pace(0.008, 1, 32)):  # noqa: B008
        self.pace = pace
        self.gates = []
        self._seconds = seconds
        self._taken = 0

    def arm(self, loops, laps=1):
        self.gates.append((loops, laps))

    def open(self):
        pass

    def wait(self):
        loops, laps = self.gates[-1]
        taken = range(self._taken, self._taken + laps)
        self._taken += laps
        seconds = tuple(loops * self._seconds(n) for n in taken)
        total = sum(seconds)
        ends = tuple(itertools.accumulate(seconds, initial=0.0))
        return Timing((total, 2 * total), 2 * total, (None, None), (ends, (0.0, 2 * total)))

    def sample(self, settings=SETTINGS, **given):
        """Warmed up and sampled: what was taken, and how many laps stood behind each gate."""
        sample = warm_up(self, settings, self.pace)
        self.gates.clear()
        self._taken = 0
        taken = take_samples(self, sample, settings, given.get("clock", ticking()))
        return taken, [laps for _, laps in self.gates]


class TestLaps:
    def test_all_samples_of_a_visit_stand_behind_one_gate(self):
        taken, gates = Lapping().sample()
        assert (taken.loops, gates, taken.gates) == (1, [5], (5,))

    def test_each_lap_is_a_sample_with_its_share_of_what_goes_on_beside_it(self):
        taken, _ = Lapping(lambda n: 0.01 + n * 1e-5).sample()
        assert [timing.seconds[0] for timing in taken.timings] == pytest.approx(
            [0.01 + n * 1e-5 for n in range(5)]
        )
        beside = [timing.seconds[1] for timing in taken.timings]
        assert beside == pytest.approx([2 * (0.01 + 2e-5)] * 5)

    def test_no_gate_holds_more_than_the_pace_and_the_queues_allow(self):
        many = Settings((1000,), samples=40)
        _, gates = Lapping().sample(many)
        assert gates == [32, 8]
        few = Lapping()
        few.most_loops = 9
        _, gates = few.sample(many)
        assert gates == [9, 9, 9, 9, 4]
