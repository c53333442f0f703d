"""Copies during a kernel on a real GPU: its copy engines work while its multiprocessors do."""

import pytest

from cuda_kit import on_gpus
from linkgauge.backends.protocol import Copy, Pattern, run
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.overlap import hidden

pytestmark = pytest.mark.gpu
SIZE = 64 << 20
TO, FROM = "host:0 -> cuda:0 by ce", "cuda:0 -> host:0 by ce"


@pytest.fixture
def backend():
    opened = on_gpus()
    yield opened
    opened.close()


def samples(backend, text, size=SIZE, loops=8):
    """Timings of a few samples, whose bytes and results are right."""
    copies = []
    for transfer in parse_transfers(f"null -> null by cuda:0.sm & {text}"):
        ends = [
            None if memory.is_null else backend.allocate(memory, size, transfer.engine)
            for memory in (transfer.source, transfer.destination)
        ]
        copies.append(Copy(transfer, *ends, size, 3))
    group = backend.prepare(copies, "overlap")
    for copy in copies[1:]:
        backend.fill(copy.source, size, Pattern.WORDS, 3, inverted=False)
        backend.fill(copy.destination, size, Pattern.WORDS, 3, inverted=True)
    timings = [run(group, loops) for _ in range(5)]
    assert group.mismatch() is None
    group.close()
    for copy in copies[1:]:
        assert backend.first_mismatch(copy.destination, size, Pattern.WORDS, 3) is None
        copy.source.free()
        copy.destination.free()
    return timings


@pytest.mark.parametrize("text", [TO, FROM, f"{TO} & {FROM}"])
def test_a_kernel_as_long_as_the_copies_hides_most_of_them(backend, text):
    for timing in samples(backend, text):
        computing, *copying = timing.seconds
        assert 0.5 < computing / max(copying) < 2
        assert 0.8 < hidden(computing, max(copying), timing.span) < 1.1


def test_copies_by_a_kernel_compete_with_it_for_the_multiprocessors(backend):
    by_kernel = samples(backend, TO.replace("ce", "sm"))
    for timing in by_kernel:
        computing, copying = timing.seconds
        assert hidden(computing, copying, timing.span) < 1.1


def test_small_copies_run_beside_a_kernel_too(backend):
    for timing in samples(backend, TO, size=4096, loops=64):
        assert 0 < timing.span < 1.5 * sum(timing.seconds)
