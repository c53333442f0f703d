"""What faults cost on a large machine grows with the number of different faults, not of parts; and
what measures a simulated machine is a process of its own only where a fault may end that."""

import pytest

from linkgauge.backends.sim import trouble
from linkgauge.backends.sim.machine import load
from linkgauge.engine.workers import workers_of
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.settings import Settings, Simulation
from sim_kit import planned

PAIRS = 32


def _settings(*faults):
    return Settings((4096,), samples=1, simulation=Simulation(*load("fat-tree-64"), faults))


def test_equal_faults_are_computed_once_a_round(monkeypatch):
    computed = []
    real = trouble.least_rate

    def counting(faults, cells):
        computed.append(faults)
        return real(faults, cells)

    monkeypatch.setattr(trouble, "least_rate", counting)
    cells = [planned(f"sim:{n} -> sim:{n + PAIRS} by sim:{n}.ce", number=n) for n in range(PAIRS)]
    LocalWorker(_settings("slow sim:0 rate=50%")).measure(cells, 4096)
    assert sorted(map(len, set(computed))) == [0, 1]
    assert len(computed) % 2 == 0
    assert len(computed) < PAIRS  # and many more parts than pairs


@pytest.mark.parametrize(
    ("faults", "kind"),
    [
        ((), LocalWorker),
        (("slow sim:0 rate=50%",), LocalWorker),
        (("hang sim:0 cells=1",), Supervisor),
        (("crash sim:0 cells=1",), Supervisor),
        (("lost sim:0 cells=1",), Supervisor),
    ],
)
def test_a_process_of_its_own_is_for_faults_that_end_it(faults, kind):
    assert type(workers_of(_settings(*faults))) is kind
