"""Many samples of a cell, as a budget of minutes takes them of latencies."""

import math
import random
import time

import pytest

from linkgauge.judge.blame import spikes
from linkgauge.judge.blame.limits import SIGMAS, SPIKE
from linkgauge.model.stats.summary import deviation


def _plainly(times, usual):
    """The bound, computed anew for each number of spikes."""
    logs = sorted(map(math.log, times))
    most = (len(logs) - 1) // 2

    def apart(some):
        noise = max(deviation(some), usual)
        return math.fsum(some) / len(some) + max(SPIKE, SIGMAS * noise)

    bounds = [(apart(logs[:-count]), logs[-count]) for count in range(most, 0, -1)]
    least = next((bound for bound, late in bounds if late > bound), apart(logs))
    return min(math.exp(least), spikes._FAR)


@pytest.mark.parametrize("seed", range(40))
def test_the_bound_of_spikes_is_that_of_its_definition(seed):
    draw = random.Random(seed)
    sigma, late = draw.choice([0.0005, 0.01, 0.1]), draw.choice([1.0, 1.5, 3.0])
    times = [
        math.exp(draw.gauss(0, sigma)) * (late if draw.random() < 0.04 else 1)
        for _ in range(draw.randint(20, 200))
    ]
    usual = draw.choice([0.0, 0.02])
    bound, most = spikes._spiky(times, usual)
    if math.log(max(times) / min(times)) > SPIKE:
        assert bound == pytest.approx(_plainly(times, usual), rel=1e-9)
    assert most == (len(times) - 1) // 2


def test_many_samples_take_a_moment():
    """Their square would take hours."""
    draw = random.Random(1)
    times = [math.exp(draw.gauss(0, 0.3)) for _ in range(200_000)]
    began = time.process_time()
    spikes._spiky(times, 0.0)
    assert time.process_time() - began < 10
