"""A kernel that is fitted to copies, over groups that only pretend."""

import pytest

from linkgauge.backends.operations import overlap
from linkgauge.backends.protocol import Gated, SamplingPolicy, Timing


class Kernel:
    """A kernel that takes a fixed time, and some for each round."""

    rounds = 1.0

    def __init__(self, start=5e-6, each=0.6e-6):
        self.start, self.each = start, each

    def seconds(self, loops):
        return self.start + self.each * overlap.launched(self.rounds, loops)

    def mismatch(self):
        return None


class Pretended(Gated):
    """Spans that `seconds` makes of loops; the second of `ways` copies starts a little later."""

    policy, most_loops = SamplingPolicy(0.02), 64

    def __init__(self, seconds, ways=1, done=None):
        self.seconds, self.ways = seconds, ways
        self.done = [] if done is None else done

    def wait(self):
        loops, batches = self.pass_gate()
        self.done.append((self, loops * batches))
        span = self.seconds(loops * batches)
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
    overlap.fit(kernel, Pretended(kernel.seconds, done=done), copies)
    loops = max(loops for _, loops in copies.done)
    assert kernel.seconds(loops) == pytest.approx(copy * loops, rel=0.1)
    assert loops in (64, 1) or copy * loops >= 0.005
    # No try takes longer than the copies by more than a fraction.
    assert all(kernel.seconds(n) <= 1.2 * copy * n for _, n in done)


def test_a_kernel_that_cannot_be_as_short_as_the_copies_is_as_short_as_it_can():
    kernel = Kernel(start=1.0)
    overlap.fit(
        kernel, computing := Pretended(kernel.seconds), Pretended(lambda loops: 1e-3 * loops)
    )
    assert overlap.launched(kernel.rounds, 1) == 1
    assert len(computing.done) < 50
