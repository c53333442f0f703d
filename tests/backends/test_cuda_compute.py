"""A kernel that computes, on an emulated GPU: its results, and copies beside it."""

import ctypes

import pytest

from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.protocol import CheckedGroup, Copy, Pattern, follows, run
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfers

SIZE = 8192
BOTH = "null -> null by cuda:0.sm & host:0 -> cuda:0 by ce & cuda:0 -> host:0 by ce"


@pytest.fixture
def made():
    return emulated()


def copies_of(backend, text):
    """The kernel, and copies whose sources are filled."""
    found = []
    for transfer in parse_transfers(text):
        ends = [
            None if memory.is_null else backend.allocate(memory, SIZE, transfer.engine)
            for memory in (transfer.source, transfer.destination)
        ]
        if ends[0] is not None:
            backend.fill(ends[0], SIZE, Pattern.WORDS, 3, inverted=False)
        found.append(Copy(transfer, *ends, SIZE, 3))
    return found


def moving(bindings):
    """Has the driver's copies move bytes."""

    def copy(destination, source, size, stream):
        bindings.calls.append(("cuMemcpyAsync", destination, source, size, stream))
        ctypes.memmove(destination, source, size)
        return (Status.CUDA_SUCCESS,)

    bindings.cuMemcpyAsync = copy


def test_copies_run_without_and_with_a_kernel_of_all_loops(made):
    backend, bindings = made
    moving(bindings)
    copies = copies_of(backend, BOTH)
    group = backend.prepare(copies, "overlap")
    before = len(bindings.calls)
    timing = run(group, 3)
    assert len(timing.seconds) == len(timing.checksums) == 3
    enqueued = [name for name, *_ in bindings.calls[before:] if name == "cuMemcpyAsync"]
    assert len(enqueued) == 2 * 2 * 3  # each way, without and with the kernel, three loops
    kernels = [call[1] for call in bindings.calls[before:] if call[0] == "cuLaunchKernel"]
    assert kernels.count("multiply_add") == 2
    assert follows(group, CheckedGroup)
    assert group.mismatch() is None
    for copy in copies[1:]:
        assert backend.first_mismatch(copy.destination, SIZE, Pattern.WORDS, 3) is None
    group.close()
    group.close()


@pytest.mark.parametrize("failing", ["cuEventCreate", "cuEventElapsedTime", "cuLaunchKernel"])
def test_what_fails_on_the_way_leaves_no_memory_behind(made, failing):
    backend, bindings = made
    copies = copies_of(backend, BOTH)
    held = set(bindings.held)
    bindings.failing[failing] = Status.CUDA_ERROR_LAUNCH_FAILED
    with pytest.raises(BackendError, match=failing):
        backend.prepare(copies, "overlap")
    assert set(bindings.held) == held


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("null -> null by cuda:0.sm & host:0/pageable -> cuda:0 by ce", "gate"),
        ("null -> null by cuda:0.sm", "no copy runs at the same time as it"),
        ("null -> null by cuda:0.sm & cuda:0 -> null by sm", "only a copy of its own"),
        ("host:0 -> cuda:0 by sm & host:0 -> cuda:0 by ce", "takes no memory"),
    ],
)
def test_what_is_no_copy_beside_a_kernel_is_unsupported(made, text, why):
    backend, _ = made
    with pytest.raises(Unsupported, match=why):
        backend.prepare(copies_of(backend, text), "overlap")
