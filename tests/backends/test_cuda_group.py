"""Groups of the cuda backend: gate, events, queues and interference, without a GPU."""

import ctypes
import math

import pytest

from cuda_kit import Bindings, FakeDevice, Status, engine_copies
from linkgauge.backends.cuda import group as cuda_group
from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.cuda.group import CudaGroup, queued_parts
from linkgauge.backends.cuda.launches import Span
from linkgauge.backends.cuda.settings import CopySettings
from linkgauge.backends.cuda.work import MARGIN, PIECE, engine_copy, interference, parts_of
from linkgauge.backends.protocol import run
from linkgauge.model.errors import BackendError


@pytest.fixture
def bindings():
    return Bindings()


class TestGroup:
    def test_the_queue_is_never_filled_behind_a_shut_gate(self, bindings):
        driver, works = engine_copies(bindings, devices=(0, 1), streams=2)
        group = CudaGroup(driver, works)
        assert 0 < group.most_loops < cuda_group.QUEUE
        bindings.calls.clear()
        group.arm(5 * group.most_loops)
        behind = [call for call in bindings.calls if call[0] != "cuCtxSetCurrent"]
        assert len(behind) <= 2 * cuda_group.QUEUE
        group.open()
        copies = bindings.names().count("cuMemcpyAsync")
        assert copies == 2 * 2 * (5 * group.most_loops + 1)
        assert bindings.names()[-1] == "cuEventRecord"
        group.close()

    def test_a_failure_while_arming_opens_the_gate(self, bindings):
        driver, works = engine_copies(bindings)
        group = CudaGroup(driver, works)
        bindings.failing["cuMemcpyAsync"] = Status.CUDA_ERROR_INVALID_VALUE
        with pytest.raises(BackendError, match="cuMemcpyAsync"):
            group.arm(1)
        state = ctypes.c_uint32.from_buffer(bindings.memory[0])
        assert state.value == 1
        assert "cuStreamSynchronize" in bindings.names()
        del state
        group.close()
        group.close()

    def test_after_a_gate_gave_up_fewer_loops_wait_behind_it(self, bindings):
        """A queue that holds less than expected costs one sample, and later groups nothing."""
        driver, works = engine_copies(bindings, streams=2)
        group = CudaGroup(driver, works)
        most = group.most_loops
        group.arm(most)
        (ctypes.c_uint32 * 2).from_buffer(bindings.memory[0])[1] = 1
        bindings.calls.clear()
        assert len(group.wait().seconds) == 1
        assert bindings.names().count("cuMemcpyAsync") == 2 * (most + 1)
        assert group.most_loops == most // 2
        group.close()
        assert CudaGroup(driver, works).most_loops == most // 2

    def test_a_gate_that_gives_up_on_a_single_loop_is_an_error(self, bindings):
        driver, works = engine_copies(bindings)
        group = CudaGroup(driver, works)
        group.most_loops = 1
        group.arm(1)
        (ctypes.c_uint32 * 2).from_buffer(bindings.memory[0])[1] = 1
        with pytest.raises(BackendError, match="gate: not opened"):
            group.wait()
        group.close()


class TestBatches:
    def test_progress_counts_from_the_opening_of_each_gate(self, bindings, monkeypatch):
        driver, works = engine_copies(bindings)
        group = CudaGroup(driver, works)
        at: dict[object, float] = {}
        monkeypatch.setattr(group, "_elapsed", lambda start, end: at[end] - at[start])
        group.arm(1, 3)
        recorded = [call[1] for call in bindings.calls if call[0] == "cuEventRecord"]
        at.update(zip(recorded, [-0.5, 0.0, 1.0, 3.0, 6.0, 6.0, 6.5], strict=True))
        group.open()
        timing = group.wait()
        assert timing.progress == ((0.5, 1.5, 3.5, 6.5),)
        assert (timing.seconds, timing.span) == ((6.0,), 6.5)
        group.close()

    @pytest.mark.parametrize(
        ("given", "steps"),
        [
            ((2, 3, 9), [[(2, True)] * 3]),
            ((2, 3, 5), [[(2, True), (2, True)], [(2, True)]]),
            ((5, 2, 3), [[(3, False)], [(2, True)], [(3, False)], [(2, True)]]),
            ((7, 1, 7), [[(7, True)]]),
        ],
    )
    def test_batches_hold_every_loop_once(self, given, steps):
        assert queued_parts(*given) == steps


class TestInterference:
    LOOPS = 4

    def interference(self, bindings, size=1 << 30):
        device = FakeDevice(Driver(bindings))
        return interference(device, parts_of(device, Span(1 << 41, 1 << 40, size)))

    def enqueued(self, bindings, work):
        bindings.calls.clear()
        work.enqueue(["stream"], self.LOOPS)
        return [call[1:4] for call in bindings.calls]

    @pytest.mark.parametrize(("measured", "share"), [(0.2, 0.2 * MARGIN), (0.5, 0.5 * MARGIN)])
    def test_next_sample_outlasts_the_measured_copy_by_the_margin(self, bindings, measured, share):
        work = self.interference(bindings)
        whole = len(self.enqueued(bindings, work))
        assert work.settle(self.LOOPS, 1.0, measured) == 1.0
        shortened = len(self.enqueued(bindings, work))
        assert shortened == max(whole // self.LOOPS, math.ceil(whole * share))

    def test_a_kernel_s_pieces_make_up_a_loop(self, bindings):
        device = FakeDevice(Driver(bindings))
        pieces = parts_of(device, Span(1 << 41, 1 << 40, 1 << 30), CopySettings())
        bindings.calls.clear()
        for piece in pieces:
            piece("stream")
        assert bindings.names() == ["cuLaunchKernel"] * len(pieces)
        assert len(pieces) == (1 << 30) // PIECE

    def test_a_group_takes_the_sample_again(self, bindings, monkeypatch):
        driver = Driver(bindings)
        device = FakeDevice(driver)
        measured = engine_copy(device, Span(1 << 40, 1 << 41, 1 << 29), 1)
        other = interference(device, parts_of(device, Span(1 << 42, 1 << 43, 1 << 30)))
        group = CudaGroup(driver, [measured, other])
        span_and_progress = [1.0] * 5
        times = iter([1.0, 2.0, *span_and_progress])
        monkeypatch.setattr(group, "_elapsed", lambda start, end: next(times))
        assert run(group, self.LOOPS).seconds == (1.0, 2.0)
        times = iter([1.0, 0.9, 1.0, 2.1, *span_and_progress])
        assert run(group, self.LOOPS).seconds == (1.0, 2.1)
        assert list(times) == []
        group.close()
