"""What bounds an AI workload, by what each part of the machine reaches alone."""

import pytest

from linkgauge.judge.bounds import advice_on, bound_of
from linkgauge.model.workload import Demands, Rates, WorkDone, Workload

RATES = Rates(operations=100e12, memory=1e12, to_device=50e9, to_host=50e9, between_devices=200e9)


def done(seconds=1.0, **demands):
    return WorkDone(seconds, 10**9, Demands(**demands), RATES)


@pytest.mark.parametrize(
    ("demands", "kind", "share"),
    [
        ({"operations": 80e12, "memory_bytes": 0.2e12}, "compute", 0.8),
        ({"operations": 5e12, "memory_bytes": 0.7e12}, "memory", 0.7),
        ({"memory_bytes": 0.1e12, "to_device": 48e9}, "host link", 0.96),
        ({"to_device": 10e9, "to_host": 30e9}, "host link", 0.6),
        ({"operations": 30e12, "between_devices": 120e9}, "device link", 0.6),
        ({"operations": 30e12, "launching": 0.95}, "launch", 0.95),
    ],
)
def test_what_would_take_most_of_the_time_alone_bounds_it(demands, kind, share):
    bound = bound_of(done(**demands))
    assert (bound.kind, bound.share) == (kind, pytest.approx(share))


def test_nothing_bounds_it_that_explains_less_than_half():
    bound = bound_of(done(operations=30e12, memory_bytes=0.4e12))
    assert (bound.kind, bound.share) == (None, pytest.approx(0.4))
    assert bound.shares == {"compute": pytest.approx(0.3), "memory": pytest.approx(0.4)}
    assert advice_on(bound, Workload("decode")) is None


def test_a_host_that_is_busy_while_the_device_is_too_does_not_hold_it_up():
    """The host that is through early waits at the end, which counts as handing over."""
    assert bound_of(done(operations=90e12, launching=0.99)).kind == "compute"
    assert bound_of(done(operations=60e12, launching=0.5)).kind == "compute"


def test_without_rates_nothing_is_said():
    bare = WorkDone(1.0, 1, Demands(operations=1.0), Rates())
    assert bound_of(bare) is None


def test_each_bound_has_its_advice():
    streamed = bound_of(done(to_device=48e9))
    assert "keep the weights on the device" in advice_on(streamed, Workload("streamed"))
    assert "linkgauge doctor" in advice_on(streamed, Workload("offload"))
    computing = bound_of(done(operations=90e12))
    assert "faster than fp32" in advice_on(computing, Workload("prefill", numbers="fp32"))
    assert "own rate" in advice_on(computing, Workload("prefill"))
    launching = bound_of(done(operations=1e12, launching=0.9))
    assert "CUDA graphs" in advice_on(launching, Workload("decode"))
