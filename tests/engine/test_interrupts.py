"""Signals that come while a block must complete."""

import signal

import pytest

from linkgauge.engine.interrupts import Interrupts
from linkgauge.model.errors import ResultsError

FULL = ResultsError("no space left")


def held(done, *, struck, error=None):
    with Interrupts() as interrupts:
        with interrupts.held():
            if struck:
                signal.raise_signal(signal.SIGINT)
            if error is not None:
                raise error
            done.append("held")
        done.append("after")


def test_a_signal_ends_a_held_block_once_it_is_complete():
    done = []
    with pytest.raises(KeyboardInterrupt):
        held(done, struck=True)
    assert done == ["held"]


def test_a_signal_counts_also_if_the_held_block_fails():
    with pytest.raises(KeyboardInterrupt) as ended:
        held([], struck=True, error=FULL)
    assert ended.value.__context__ is FULL


def test_a_held_block_that_fails_without_a_signal_raises_its_own_error():
    with pytest.raises(ResultsError):
        held([], struck=False, error=FULL)
