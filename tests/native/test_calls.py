"""Calls of a C function by its address: with these arguments, so many, until one fails."""

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge._native import time_calls

WORD = st.integers(0, 2**64 - 1)


class Function:
    """A C function of so many words, which remembers its calls and fails at the last `allowed`."""

    def __init__(self, count, allowed=1 << 30):
        self.calls = []
        self._allowed = allowed
        self._kept = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * count)(self._call)
        self.address = ctypes.cast(self._kept, ctypes.c_void_p).value

    def _call(self, *words):
        self.calls.append(words)
        return 0 if len(self.calls) < self._allowed else 700


@given(st.lists(WORD, max_size=11), st.integers(1, 5))
@settings(max_examples=30)
def test_every_call_has_the_arguments(words, count):
    function = Function(len(words))
    seconds, status = time_calls(function.address, words, count)
    assert (function.calls, status) == ([tuple(words)] * count, 0)
    assert seconds > 0


def test_a_call_that_fails_is_the_last():
    function = Function(2, allowed=3)
    assert time_calls(function.address, [1, 2], 5)[1] == 700
    assert len(function.calls) == 3


@pytest.mark.parametrize(("address", "words", "count"), [(0, [], 1), (1, [0] * 12, 1), (1, [], 0)])
def test_what_cannot_be_called_is_refused(address, words, count):
    with pytest.raises(ValueError, match=r"no function|too many|no calls"):
        time_calls(address, words, count)
