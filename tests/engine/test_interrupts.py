"""Ctrl-C meanwhile is neither lost nor fatal."""

import os
import signal

import pytest

from linkgauge.engine.interrupts import Interrupts


def test_ctrl_c_counts_once_it_is_over():
    done = []
    before = signal.getsignal(signal.SIGINT)

    def work():
        with Interrupts() as interrupts, interrupts.held():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before


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


def test_an_error_meanwhile_is_told():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="inside"), Interrupts() as interrupts, interrupts.held():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is before


def test_a_process_that_ignores_ctrl_c_goes_on_doing_so():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with Interrupts() as interrupts, interrupts.held():
            os.kill(os.getpid(), signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
