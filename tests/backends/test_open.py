"""Backends are opened by name; Ctrl-C meanwhile is neither lost nor fatal."""

import os
import signal
import sys
from types import ModuleType

import pytest

from linkgauge.backends import open_backend
from linkgauge.model.errors import InputError


def test_an_unknown_backend_is_refused():
    with pytest.raises(InputError, match="unknown backend 'abacus'"):
        open_backend("abacus")


def test_ctrl_c_while_a_backend_loads_counts_afterwards(monkeypatch):
    done = []

    def create(engines, host):
        os.kill(os.getpid(), signal.SIGINT)
        done.append("created")

    module = ModuleType("linkgauge.backends.opencl")
    module.create = create
    monkeypatch.setitem(sys.modules, module.__name__, module)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        open_backend("opencl")
    assert done == ["created"]
    assert signal.getsignal(signal.SIGINT) is before
