"""Ctrl-C meanwhile is neither lost nor fatal."""

import os
import signal

import pytest

from linkgauge.engine.interrupts import interrupted_afterwards


def test_ctrl_c_counts_once_it_is_over():
    done = []
    before = signal.getsignal(signal.SIGINT)

    def work():
        with interrupted_afterwards():
            os.kill(os.getpid(), signal.SIGINT)
            done.append("all of it")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert done == ["all of it"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_meanwhile_is_told():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(ValueError, match="inside"), interrupted_afterwards():
        raise ValueError("inside")
    assert signal.getsignal(signal.SIGINT) is before
