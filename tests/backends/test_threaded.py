"""Groups that no device times: works that threads carry out to their end, and a kernel that is
fitted to copies, over groups that only pretend."""

import threading

import pytest

from linkgauge.backends import threaded
from linkgauge.backends.overlap import fit, launched
from linkgauge.backends.protocol import Gated, Pace, Timing
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


class Kernel:
    """A kernel that takes a fixed time, and some for each round."""

    rounds = 1.0

    def __init__(self, start=5e-6, each=0.6e-6):
        self.start, self.each = start, each

    def seconds(self, loops):
        return self.start + self.each * launched(self.rounds, loops)

    def mismatch(self):
        return None


class Pretended(Gated):
    """Spans that `seconds` makes of loops; the second of `ways` copies starts a little later."""

    pace, most_loops = Pace(0.02), 64

    def __init__(self, seconds, ways=1, done=None):
        self.seconds, self.ways = seconds, ways
        self.done = [] if done is None else done

    def wait(self):
        loops, laps = self.pass_gate()
        self.done.append((self, loops * laps))
        span = self.seconds(loops * laps)
        own = tuple((0.1 * way, span if way == self.ways - 1 else span / 2)
                    for way in range(self.ways))  # fmt: skip
        return Timing(tuple(end - begin for begin, end in own), span, (None,) * self.ways, own)

    def close(self):
        super().close()
        self.done.append((self, "closed"))


@pytest.mark.parametrize("copy", [4e-6, 1e-3, 0.5])
@pytest.mark.parametrize("each", [1e-9, 0.6e-6, 2e-5])
def test_the_kernel_is_made_as_long_as_the_copies(copy, each):
    kernel = Kernel(each=each)
    done = []
    copies = Pretended(lambda loops: copy * loops)
    fit(kernel, Pretended(kernel.seconds, done=done), copies)
    loops = max(loops for _, loops in copies.done)
    assert kernel.seconds(loops) == pytest.approx(copy * loops, rel=0.1)
    assert loops in (64, 1) or copy * loops >= 0.005
    # No try takes longer than the copies by more than a fraction.
    assert all(kernel.seconds(n) <= 1.2 * copy * n for _, n in done)


def test_a_kernel_that_cannot_be_as_short_as_the_copies_is_as_short_as_it_can():
    kernel = Kernel(start=1.0)
    fit(kernel, computing := Pretended(kernel.seconds), Pretended(lambda loops: 1e-3 * loops))
    assert launched(kernel.rounds, 1) == 1
    assert len(computing.done) < 50
