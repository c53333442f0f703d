"""Signals that come while a block must complete."""

from __future__ import annotations

import signal

import pytest

from linkgauge.engine.interrupts import Interrupts
from linkgauge.model.errors import ResultsError


def test_a_signal_during_a_held_block_ends_it_once_it_is_complete() -> None:
    done: list[str] = []
    with pytest.raises(KeyboardInterrupt), Interrupts() as interrupts:
        with interrupts.held():
            signal.raise_signal(signal.SIGINT)
            done.append("held")
        done.append("after")
    assert done == ["held"]


def test_a_signal_counts_also_if_the_held_block_fails() -> None:
    error = ResultsError("no space left")
    with pytest.raises(KeyboardInterrupt) as ended, Interrupts() as interrupts, interrupts.held():
        signal.raise_signal(signal.SIGINT)
        raise error
    assert ended.value.__context__ is error


def test_a_block_that_fails_without_a_signal_raises_its_own_error() -> None:
    with pytest.raises(ResultsError), Interrupts() as interrupts, interrupts.held():
        raise ResultsError("no space left")
