"""Works behind torch's gate, a kernel that takes its time, on streams whose clock a test moves."""

import pytest

from linkgauge.backends.torch import gated
from linkgauge.backends.torch.gated import GatedGroup
from linkgauge.model.errors import BackendError
from torch_kit import FakeClock, FakeUnit, FakeWork


@pytest.fixture
def clock(monkeypatch):
    found = FakeClock()
    monkeypatch.setattr(gated, "time", found)
    return found


def sample(group, loops, laps=1):
    group.arm(loops, laps)
    group.open()
    return group.wait()


def test_only_loops_are_timed_not_what_the_host_does(clock):
    work = FakeWork([FakeUnit(clock)], each=1e-3, call=1e-4)
    timing = sample(GatedGroup([work]), 4, 3)
    assert timing.seconds == pytest.approx((12e-3,))
    assert timing.span == pytest.approx(12e-3)
    assert timing.progress[0] == pytest.approx((0, 4e-3, 8e-3, 12e-3))
    assert timing.checksums == (None,)


def test_a_gate_that_never_holds_is_an_error(clock):
    class Slower(FakeWork):
        """Takes the host ever longer."""

        def enqueue(self, loops):
            super().enqueue(loops)
            self.call *= 4

    with pytest.raises(BackendError, match="gate: not closed"):
        sample(GatedGroup([Slower([FakeUnit(clock)], each=1e-6, call=1e-2)]), 1)


def test_works_start_together_when_all_are_warm(clock):
    units = FakeUnit(clock), FakeUnit(clock, "torch:cuda:1")
    works = [FakeWork([units[0]], each=1e-3), FakeWork([units[1]], each=5e-3)]
    group = GatedGroup(works)
    timing = sample(group, 2)
    assert timing.seconds == pytest.approx((2e-3, 10e-3))
    assert timing.span == pytest.approx(10e-3)
    assert [work.loops for work in works] == [[1, 2], [1, 2]]


def test_calls_out_of_order_raise_and_closing_is_always_safe(clock):
    group = GatedGroup([FakeWork([FakeUnit(clock)], each=1e-3)])
    for call in (group.wait, group.open):
        with pytest.raises(BackendError):
            call()
    group.arm(1)
    with pytest.raises(BackendError):
        group.arm(1)
    group.close()
    group.close()
