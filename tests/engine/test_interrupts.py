"""Ctrl-C meanwhile is neither lost nor fatal."""

import os
import signal

import pytest

from linkgauge.engine.interrupts import ENDING, Interrupts, end_like_ctrl_c, undisturbed


@pytest.fixture
def handlers():
    """This process ends by signals as any does."""
    before = {number: signal.getsignal(number) for number in ENDING}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING)
def test_every_signal_that_ends_a_run_counts_once_it_is_over(handlers, number):
    done = []
    code = end_like_ctrl_c()

    def work():
        with Interrupts() as interrupts, interrupts.held():
            os.kill(os.getpid(), number)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert code() == 128 + number


@pytest.mark.parametrize("number", ENDING)
def test_what_is_being_saved_is_not_disturbed(handlers, number):
    end_like_ctrl_c()
    before = signal.getsignal(number)
    with undisturbed():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before


def test_at_any_other_time_it_counts_at_once():
    done = []

    def work():
        with Interrupts() as interrupts:
            with interrupts.held():
                done.append("all of it")
            os.kill(os.getpid(), signal.SIGINT)
            done.append("no more")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
