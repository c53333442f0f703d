"""A worker process leaves the controller as it was."""

import signal
from contextlib import closing

import pytest

from linkgauge.engine.process import WorkerProcess


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


def test_none_is_blocked_that_was_not():
    before = blocked()
    with closing(WorkerProcess()):
        assert blocked() == before
