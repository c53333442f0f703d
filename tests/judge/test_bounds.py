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
        # A host that is through early waits at the end, which counts as handing over.
        ({"operations": 90e12, "launching": 0.99}, "compute", 0.9),
        ({"operations": 60e12, "launching": 0.5}, "compute", 0.6),
        # Nothing bounds what nothing explains to a half.
        ({"operations": 30e12, "memory_bytes": 0.4e12}, None, 0.4),
    ],
)
def test_what_would_take_most_of_the_time_alone_bounds_it(demands, kind, share):
    bound = bound_of(done(**demands))
    assert (bound.kind, bound.share) == (kind, pytest.approx(share))


def test_without_rates_nothing_is_said():
    bare = WorkDone(1.0, 1, Demands(operations=1.0), Rates())
    assert bound_of(bare) is None


@pytest.mark.parametrize(
    ("demands", "workload", "said"),
    [
        ({"to_device": 48e9}, Workload("streamed"), "keep the weights"),
        ({"to_device": 48e9}, Workload("offload"), "linkgauge doctor"),
        ({"operations": 90e12}, Workload("prefill", numbers="fp32"), "fp32"),
        ({"operations": 90e12}, Workload("prefill"), "own rate"),
        ({"operations": 1e12, "launching": 0.9}, Workload("decode"), "CUDA graphs"),
        ({"operations": 30e12}, Workload("decode"), None),
    ],
)
def test_each_bound_has_its_advice(demands, workload, said):
    advice = advice_on(bound_of(done(**demands)), workload)
    assert advice is None if said is None else said in advice
