"""Works that threads carry out to their end, timed by the host's clock."""

import threading

import pytest

from linkgauge.backends import threaded
from linkgauge.backends.threaded import ThreadedGroup
from linkgauge.model.errors import BackendError, Unsupported


class Work:
    def __init__(self, fails=None):
        self.fails, self.loops, self.threads, self.closed = fails, [], set(), 0

    def enter(self):
        self.threads.add(threading.get_ident())

    def run(self, loops):
        if self.fails:
            raise self.fails
        self.loops.append(loops)

    def checksum(self):
        return 7

    def close(self):
        self.closed += 1


def sample(group, loops, laps=1):
    group.arm(loops, laps)
    group.open()
    return group.wait()


def test_each_work_runs_its_laps_and_is_timed_by_itself():
    works = [Work(), Work()]
    group = ThreadedGroup(works)
    timing = sample(group, 3, 2)
    assert [work.loops for work in works] == [[3, 3], [3, 3]]
    assert all(len(times) == 3 and list(times) == sorted(times) for times in timing.progress)
    assert max(timing.seconds) <= timing.span
    assert timing.checksums == (7, 7)
    group.close()
    group.close()
    assert [work.closed for work in works] == [1, 1]


@pytest.mark.parametrize("error", [BackendError("run", "broken"), Unsupported("broken")])
def test_a_work_that_fails_is_the_groups_error_and_the_next_sample_runs(error):
    broken, other = Work(), Work()
    broken.enter = lambda: broken.run(1)  # before the others start, who must not wait for it
    broken.fails = error
    group = ThreadedGroup([other, broken])
    with pytest.raises(type(error), match="broken"):
        sample(group, 1)
    broken.fails = None
    assert sample(group, 1).seconds
    group.close()


def test_a_gate_that_nobody_opens_ends_the_wait(monkeypatch):
    monkeypatch.setattr(threaded, "PATIENCE", 0.01)
    group = ThreadedGroup([Work()])
    group.arm(1)
    for one in group._running:
        assert isinstance(one.exception(), threading.BrokenBarrierError)
    group.open()
    with pytest.raises(BackendError, match="gate: not opened"):
        group.wait()
    group.close()


def test_calls_out_of_order_raise():
    group = ThreadedGroup([Work()])
    for call in (group.wait, group.open):
        with pytest.raises(BackendError):
            call()
    group.arm(1)
    with pytest.raises(BackendError):
        group.arm(1)
    group.close()
