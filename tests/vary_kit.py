"""Comparisons of settings on a simulated machine, without processes and without a command line."""

from __future__ import annotations

from contextlib import closing, contextmanager

import pytest

from linkgauge.engine.request import RunRequest, Selection
from linkgauge.engine.session import Session
from linkgauge.engine.varying import Experiment, Rounds, Variant, measure_rounds, plan_all
from linkgauge.engine.worker import LocalWorker
from linkgauge.judge.differences import InRound, compare
from linkgauge.model.settings import Settings, Simulation, Surroundings
from linkgauge.model.variation import Setting

NODES = 20
NOISY = f"""
source: made up for tests
noise: 5%
noise_buffers: 5%
noise_moments: 5%
host:
  cpu_model: Test CPU
  nodes: [{{count: {NODES}, cpus: 2, memory: 4G, rate: 300 GB/s}}]
link_kinds:
  upi: {{kind: socket, rate: 30 GB/s}}
links:
  - {{kind: upi, mesh: host:0..{NODES - 1}}}
"""
"""So many nodes, each a measurement of its own; a thread moves less than the memory could."""
SWEEP = Selection(("host_threads_memcpy_copy_cpu",))


@contextmanager
def in_process(request):
    """Like `opened` of the engine, but in this process."""
    with closing(LocalWorker(request.settings)) as worker:
        yield Session(request, worker)


@contextmanager
def opening(opened=in_process):
    """Comparisons open their sessions so."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("linkgauge.engine.varying.opened", opened)
        yield


def variant(name, machine=NOISY, what=SWEEP, cpus=(), environment=None, **more):
    simulation = None if machine is None else Simulation("test", machine)
    settings = Settings(
        (1 << 20,), samples=more.pop("samples", 3), loops=1, simulation=simulation,
        surroundings=Surroundings(tuple(cpus), environment or {}),
    )  # fmt: skip
    request = RunRequest(what=what, settings=settings, backends=("host",), **more)
    return Variant(Setting(name, {"--cpus": name}, f"vary {name}"), request)


def experiment(*variants, rounds=10, prepare=None):
    with opening():
        plans = plan_all(variants, Rounds())
    return Experiment(tuple(variants), plans, rounds, prepare)


def runs_of(made, observer=None):
    """One by one: a test may end them."""
    with opening():
        yield from measure_rounds(made, observer or Rounds())


def compared(*variants, rounds=10, significance=0.01):
    runs = runs_of(experiment(*variants, rounds=rounds))
    taken = [InRound(one.kept.round, one.kept.setting, one.run) for one in runs]
    return compare(taken, len(variants), significance)
