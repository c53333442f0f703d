"""A worker process leaves the controller as it was, and is given up only if it had the time to
answer."""

import itertools
import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from command_kit import linkgauge
from linkgauge.engine.workers import process
from linkgauge.engine.workers.messages import Survey
from linkgauge.engine.workers.process import WorkerProcess
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.machine.processes import process as started
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.settings import Settings, Surroundings


@pytest.fixture
def masked():
    """This thread holds Ctrl-C back, as a program that waits for signals does."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def blocked():
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_signals_that_were_blocked_before_it_starts_are_afterwards(masked):
    before = blocked()
    with closing(WorkerProcess()):
        assert blocked() == before


class TestADeadlineThatHasPassed:
    """Which it has for a worker that is still starting."""

    def answer(self):
        with closing(WorkerProcess()) as worker:
            worker.begin(Settings((1,)))
            worker.ask(Survey())
            return worker.result(Machine, lambda _: -1.0)

    def test_ends_a_worker_that_could_have_answered(self, monkeypatch):
        monkeypatch.setattr(started, "_PROGRAM", "import time; time.sleep(600)")
        monkeypatch.setattr(process, "waits_for_cpu", lambda _: {"1": 5.0})
        with pytest.raises(started.ProcessLost, match="no answer"):
            self.answer()

    def test_waits_for_one_that_gets_no_cpu(self, monkeypatch):
        waits = itertools.count()
        monkeypatch.setattr(process, "waits_for_cpu", lambda _: {"1": 5.0, "2": float(next(waits))})
        assert self.answer().host.cpus > 0


class TestSurroundings:
    """A worker has its CPUs and its environment from its start."""

    def test_are_those_of_the_settings(self, monkeypatch):
        monkeypatch.setenv("GONE", "here")
        cpu = max(os.sched_getaffinity(0))
        around = Surroundings((cpu,), {"COLOUR": "red, green", "GONE": None})
        with closing(Supervisor(Settings((), surroundings=around))) as worker:
            machine = worker.survey(())
            (process,) = (one.process for one in worker._workers.values())
            environment = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        assert [node.cpus for node in machine.host.nodes if node.cpus] == [(cpu,)]
        assert b"COLOUR=red, green" in environment
        assert not any(one.startswith(b"GONE=") for one in environment)


def test_nothing_that_a_worker_opens_is_left_open():
    """Python says so of each on stderr, if it is asked to, when it forgets what is still open."""
    done = linkgauge("doctor", PYTHONWARNINGS="error", PYTHONDEVMODE="1")
    assert done.returncode in (0, 1)
    assert done.stderr == ""
