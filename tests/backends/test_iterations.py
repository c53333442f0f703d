"""A group calls C functions over and over: it times each lap, and names the call that fails."""

import ctypes

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkgauge.backends.iterations import WARM_UPS, IteratedGroup
from linkgauge.model.errors import BackendError


class Function:
    """A C function of one word that notes it, and fails at the call of this number."""

    def __init__(self, fails_at=None):
        self.seen = []
        self._fails_at = fails_at
        self._kept = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_uint64)(self._call)
        self.address = ctypes.cast(self._kept, ctypes.c_void_p).value

    def _call(self, word):
        self.seen.append(word)
        return 5 if len(self.seen) == self._fails_at else 0


def error_of(status, failed):
    return BackendError(f"call {failed}", f"status {status}")


def made(function, begun=None):
    calls = [(function.address, [1]), (function.address, [2])]
    begun = begun if begun is not None else []
    return IteratedGroup(
        calls, 2, error_of, lambda count: begun.append((len(function.seen), count))
    )


@given(st.integers(1, 7), st.integers(1, 9))
@settings(max_examples=30, deadline=None)
def test_each_lap_has_a_time_of_its_own_and_warm_ups_have_none(loops, laps):
    function, begun = Function(), []
    group = made(function, begun)
    group.arm(loops, laps)
    group.open()
    timing = group.wait()
    assert begun == [(0, WARM_UPS + loops * laps)]
    assert function.seen == [1, 2] * (WARM_UPS + loops * laps)
    (times,) = timing.progress
    assert len(times) == laps + 1
    assert times[0] == 0
    assert list(times) == sorted(times)
    assert timing.seconds == (times[-1],) == (timing.span,)


@pytest.mark.parametrize(("fails_at", "place"), [(1, 0), (2, 1), (2 * WARM_UPS + 3, 0)])
def test_the_call_that_fails_is_the_last_and_told_by_its_place(fails_at, place):
    function = Function(fails_at)
    group = made(function)
    group.arm(4)
    group.open()
    with pytest.raises(BackendError, match=f"call {place}.*status 5"):
        group.wait()
    assert len(function.seen) == fails_at
    group.arm(1)  # what failed once may be tried again
    group.close()


def test_calls_out_of_order_raise_and_make_no_call():
    function = Function()
    group = made(function)
    for step in (group.open, group.wait):
        with pytest.raises(BackendError):
            step()
    group.arm(1)
    for step in (lambda: group.arm(1), group.wait):
        with pytest.raises(BackendError):
            step()
    assert not function.seen
