"""A load copies all its bytes at a share of its rate, and runs for as long as what it loads."""

import ctypes
import threading
import time

import pytest

from cuda_emulator import emulated
from linkgauge.backends.cuda import load
from linkgauge.backends.protocol import Copy, Pattern, Timing, run
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer

SIZE = 6 * load.TILE


@pytest.fixture
def backend(monkeypatch):
    """The emulator runs a kernel to its end as it is launched: another thread has to end it."""
    monkeypatch.setattr(load, "_WHOLE", 0.0)
    monkeypatch.setattr(load.KernelLoad, "start", start)
    return emulated()[0]


STARTED = load.KernelLoad.start


def start(loading):
    ends = threading.Thread(target=end, args=(loading,))
    ends.start()
    STARTED(loading)
    ends.join()


def end(loading):
    while not loading._signals[0]:
        time.sleep(0.001)
    time.sleep(0.01)
    loading._signals[1] = 1


def copy_of(backend, text, size=SIZE):
    transfer = parse_transfer(text)
    ends = [backend.allocate(end, size, transfer.engine) for end in transfer.memories]
    backend.fill(ends[0], size, Pattern.WORDS, 3, inverted=False)
    return Copy(transfer, *ends, size, 3, interference=True, endless=True)


def loaded_by(backend, *copies, group=None):
    return load.loaded(backend.device_of, group or Timed(), copies)


class Timed:
    """A group of two latencies behind each gate."""

    policy, most_loops = object(), 77

    def __init__(self, problem=None):
        self.calls, self.problem = [], problem

    def arm(self, loops, batches=1):
        self.calls.append((loops, batches))

    def open(self):
        self.calls.append("open")

    def wait(self):
        if self.problem:
            raise self.problem
        return Timing((3e-6,), 3e-6, (None,), ((0.0, 1e-6, 3e-6),))

    def close(self):
        self.calls.append("close")


def test_each_byte_is_copied_and_the_rate_is_that_of_the_load(backend):
    copy = copy_of(backend, "cuda:0 -> cuda:0 by sm")
    group = loaded_by(backend, copy)
    assert (group.policy, group.most_loops) == (Timed.policy, 77)
    timing = run(group, 1, 2)
    assert timing.progress[0] == (0.0, 1e-6, 3e-6)
    first, seconds = timing.seconds
    assert first == 3e-6
    assert timing.progress[1] == (0.0, seconds)
    assert 2 * SIZE / seconds > 0
    assert timing.checksums == (None, None)
    assert backend.first_mismatch(copy.destination, SIZE, Pattern.WORDS, 3) is None
    group.close()
    group.close()


def test_a_share_of_the_rate_is_not_exceeded(backend):
    whole, part = (
        load.KernelLoad(backend.device_of(copy.transfer.engine.owner), copy)
        for copy in (
            copy_of(backend, f"cuda:0 -> cuda:0 by sm{share}") for share in ("", " at 25%")
        )
    )
    assert whole._pace.value == 0
    assert part._pace.value > 0
    part.start()
    assert part.stop() > 0
    _, tiles, began, ended = (ctypes.c_uint64 * 4).from_address(part._done)
    # Of one block, since the emulator runs them one after another: a tile at once, then one a
    # sampling policy.
    assert 0 < tiles <= (ended - began) / part._pace.value + 1
    for one in (whole, part):
        one.close()


@pytest.mark.parametrize(
    ("text", "size"),
    [("cuda:0 -> null by sm", SIZE), ("cuda:0 -> cuda:0 by ce", SIZE),
     ("cuda:0 <-> cuda:0 by sm", SIZE), ("cuda:0 -> cuda:0 by sm", 100)],
)  # fmt: skip
def test_a_load_is_a_copy_one_way_by_a_kernel(backend, text, size):
    with pytest.raises(Unsupported, match="a load"):
        loaded_by(backend, Copy(parse_transfer(text), None, None, size, 1))


def test_a_load_that_ended_by_its_limit_is_an_error(backend, monkeypatch):
    monkeypatch.setattr(load, "LIMIT", 0.02)
    group = loaded_by(backend, copy_of(backend, "cuda:0 -> cuda:0 by sm"))
    monkeypatch.setattr(load.KernelLoad, "start", STARTED)
    with pytest.raises(BackendError, match="ended before"):
        group.wait()


def test_a_rate_that_cannot_be_measured_is_an_error(backend, monkeypatch):
    monkeypatch.setattr(load, "LIMIT", 0.02)
    monkeypatch.setattr(load.KernelLoad, "start", STARTED)
    with pytest.raises(BackendError, match="nothing was copied"):
        loaded_by(backend, copy_of(backend, "cuda:0 -> cuda:0 by sm at 25%"))
