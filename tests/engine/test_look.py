"""A run's machine is looked at before and after, in whichever process its devices are."""

import os
import signal
from contextlib import closing

from linkgauge.engine.supervisor import Supervisor
from linkgauge.engine.worker import LocalWorker
from sim_kit import planned, settings

SLOW = "slow sim:0-sim:1 rate=25%"


def errors(inventory):
    return sum(link.errors for device in inventory.accelerators for link in device.links)


def test_a_worker_process_sees_what_one_here_does():
    with closing(Supervisor(settings(SLOW))) as there, closing(LocalWorker(settings(SLOW))) as here:
        before = there.survey(["sim"]).inventory
        assert before == here.survey(["sim"]).inventory
        cell = planned("sim:0 -> sim:1 by ce", number=4)
        for worker in (there, here):
            worker.measure((cell,), 1 << 20)
        assert there.look(["sim"]) == here.look(["sim"])
        assert errors(there.look(["sim"])) > errors(before) == 0


def test_a_worker_that_has_gone_is_replaced_to_look():
    with closing(Supervisor(settings())) as supervisor:
        before = supervisor.survey(["sim"]).inventory
        os.kill(supervisor._workers["sim"].process.pid, signal.SIGKILL)
        supervisor._workers["sim"].process.wait()
        seen = supervisor.look(["sim"])
        assert seen.accelerators == ()
        assert "accelerators of sim: " in seen.unknown[0]
        assert "SIGKILL" in seen.unknown[0]
        assert supervisor.look(["sim"]) == before


def test_a_backend_that_is_not_there_is_no_error():
    seen = LocalWorker().look(["cuda", "nonsense"])
    assert any("accelerators of nonsense: unknown backend" in why for why in seen.unknown)
