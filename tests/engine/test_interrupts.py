"""Signals that come while a block must complete."""

import signal

import pytest

from linkgauge.engine.interrupts import Interrupts
from linkgauge.model.errors import ResultsError

FULL = ResultsError("no space left")


def run_held_block(done, *, sends_signal, error=None):
    """Runs a block that delays signals, and adds to `done` what completed."""
    with Interrupts() as interrupts:
        with interrupts.held():
            if sends_signal:
                signal.raise_signal(signal.SIGINT)
            if error is not None:
                raise error
            done.append("held")
        done.append("after")


def test_a_signal_ends_a_held_block_once_it_is_complete():
    done = []
    with pytest.raises(KeyboardInterrupt):
        run_held_block(done, sends_signal=True)
    assert done == ["held"]


def test_a_signal_counts_also_if_the_held_block_fails():
    with pytest.raises(KeyboardInterrupt) as ended:
        run_held_block([], sends_signal=True, error=FULL)
    assert ended.value.__context__ is FULL


def test_a_held_block_that_fails_without_a_signal_raises_its_own_error():
    with pytest.raises(ResultsError):
        run_held_block([], sends_signal=False, error=FULL)
