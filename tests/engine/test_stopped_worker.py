"""A worker that is stopped, and so neither works nor ends."""

import os
import signal
from contextlib import closing

from engine.test_supervisor import SIZE, gone, settings, write
from linkgauge.engine.supervisor import Supervisor


def test_a_worker_that_is_stopped_ends_at_its_deadline():
    with closing(Supervisor(settings(timeout=0.5))) as worker:
        worker.survey(["sim"])
        before = worker._workers["sim"].process.pid
        os.kill(before, signal.SIGSTOP)
        (result,) = worker.measure([write(0, 1)], SIZE)
        assert result.status == result.kind == "timeout"
        assert gone(before)
        (after,) = worker.measure([write(0, 1, 1)], SIZE)
        assert after.status == "pass"
