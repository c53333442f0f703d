"""Groups of the cuda backend: gate, events, queues and interference, without a GPU."""

import ctypes
import math

import pytest

from cuda_kit import Bindings, FakeDevice, Status, engine_copies
from linkgauge.backends.cuda import group as cuda_group
from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.cuda.group import CudaGroup, most_loops
from linkgauge.backends.cuda.launches import copy_launch
from linkgauge.backends.cuda.settings import SPLIT_DEFAULT, CopySettings
from linkgauge.backends.cuda.work import (
    MARGIN,
    PIECE,
    EngineCopy,
    Interference,
    KernelWork,
    engine_pieces,
    kernel_pieces,
)
from linkgauge.model.errors import BackendError


@pytest.fixture
def bindings():
    return Bindings()


class TestGroup:
    def test_all_wait_for_the_first_start_and_the_whole_for_all_ends(self, bindings):
        driver, works = engine_copies(bindings, devices=(0, 1))
        group = CudaGroup(driver, works)
        bindings.calls.clear()
        group.arm(2)
        calls = [call for call in bindings.calls if call[0] != "cuCtxSetCurrent"]
        assert [call[0] for call in calls] == [
            *("cuLaunchKernel", "cuMemcpyAsync"),  # gate and warm-up of each stream
            *("cuLaunchKernel", "cuMemcpyAsync"),
            *("cuEventRecord", "cuStreamWaitEvent", "cuEventRecord"),  # starts
            *["cuMemcpyAsync"] * 4,
            *("cuEventRecord", "cuEventRecord"),  # ends
            *("cuStreamWaitEvent", "cuEventRecord"),  # the whole
        ]
        first_start, wait = calls[4], calls[5]
        assert wait[1:3] == ("stream 1.0", first_start[1])
        assert calls[-1][2] == "stream 0.0"
        group.open()
        group.wait()
        group.close()

    def test_works_of_one_device_have_streams_of_their_own(self, bindings):
        driver, works = engine_copies(bindings, devices=(0, 0), streams=2)
        works[1].device = works[0].device
        group = CudaGroup(driver, works)
        group.arm(1)
        used = {call[-1] for call in bindings.calls if call[0] == "cuMemcpyAsync"}
        assert used == {f"stream 0.{number}" for number in range(4)}
        group.close()

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

    def test_most_loops_looks_at_the_busiest_device(self, bindings):
        _, (one,) = engine_copies(bindings)
        _, (two,) = engine_copies(bindings, streams=4)
        assert most_loops([one, two]) == most_loops([two]) < most_loops([one])

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

    def test_a_gate_that_gave_up_is_an_error(self, bindings):
        driver, works = engine_copies(bindings)
        group = CudaGroup(driver, works)
        group.arm(1)
        (ctypes.c_uint32 * 2).from_buffer(bindings.memory[0])[1] = 1
        with pytest.raises(BackendError, match="gate: not opened"):
            group.wait()
        group.close()


class TestLaps:
    def test_an_event_stands_behind_each_lap_of_the_first_copy(self, bindings):
        driver, works = engine_copies(bindings, devices=(0, 1))
        group = CudaGroup(driver, works)
        bindings.calls.clear()
        group.arm_laps(2, 3)
        copies_and_events = [
            call[0]
            for call in bindings.calls
            if call[0] in ("cuMemcpyAsync", "cuEventRecord") and "stream 0.0" in call
        ]
        lap = ["cuMemcpyAsync", "cuMemcpyAsync", "cuEventRecord"]
        assert copies_and_events == [
            *("cuMemcpyAsync", "cuEventRecord"),  # warm-up, start
            *(lap * 3),
            *("cuEventRecord", "cuEventRecord"),  # end, the whole
        ]
        beside = [call for call in bindings.calls if call[0] == "cuMemcpyAsync"]
        assert len(beside) - 7 == 7
        group.open()
        group.wait()
        group.close()

    def test_laps_follow_each_other_from_the_start(self, bindings, monkeypatch):
        driver, works = engine_copies(bindings)
        group = CudaGroup(driver, works)
        at: dict[object, float] = {}
        monkeypatch.setattr(group, "_elapsed", lambda start, end: at[end] - at[start])
        group.arm_laps(1, 3)
        recorded = [call[1] for call in bindings.calls if call[0] == "cuEventRecord"]
        at.update(zip(recorded, [0.0, 1.0, 3.0, 6.0, 6.0, 6.5], strict=True))
        group.open()
        timing = group.wait()
        assert timing.laps == (1.0, 2.0, 3.0)
        assert (timing.seconds, timing.span) == ((6.0,), 6.5)
        group.close()

    def test_without_laps_there_are_none(self, bindings):
        driver, works = engine_copies(bindings)
        group = CudaGroup(driver, works)
        group.arm_laps(1, 2)
        group.open()
        assert len(group.wait().laps) == 2
        group.arm(2)
        group.open()
        assert group.wait().laps == ()
        group.close()

    def test_what_is_repeated_in_place_has_one_lap_of_all_its_loops(self, bindings):
        driver = Driver(bindings)
        device = FakeDevice(driver)
        launch = copy_launch(device, 1 << 40, 1 << 41, 1 << 30, SPLIT_DEFAULT, both_ways=True)
        group = CudaGroup(driver, [KernelWork(device, launch, True, least_loops=16)])
        assert (group.pace.loops, group.pace.laps) == (16, 1)
        group.close()


class TestInterference:
    LOOPS = 4

    def interference(self, bindings, size=1 << 30):
        device = FakeDevice(Driver(bindings))
        return Interference(device, engine_pieces(device, 1 << 41, 1 << 40, size))

    def enqueued(self, bindings, work):
        bindings.calls.clear()
        work.enqueue(["stream"], self.LOOPS)
        return [call[1:4] for call in bindings.calls]

    def test_pieces_make_up_every_loop(self, bindings):
        work = self.interference(bindings)
        pieces = self.enqueued(bindings, work)
        assert len(pieces) == work.operations(self.LOOPS)
        assert sum(length for *_, length in pieces) == self.LOOPS << 30
        assert {destination - source for destination, source, _ in pieces} == {1 << 40}

    @pytest.mark.parametrize(("measured", "share"), [(0.2, 0.2 * MARGIN), (0.5, 0.5 * MARGIN)])
    def test_next_sample_outlasts_the_measured_copy_by_the_margin(self, bindings, measured, share):
        work = self.interference(bindings)
        whole = len(self.enqueued(bindings, work))
        assert work.settle(self.LOOPS, 1.0, measured) == 1.0
        shortened = len(self.enqueued(bindings, work))
        assert shortened == max(whole // self.LOOPS, math.ceil(whole * share))

    def test_every_byte_is_copied_however_little_is_needed(self, bindings):
        work = self.interference(bindings)
        self.enqueued(bindings, work)
        work.settle(self.LOOPS, 1.0, 0.001)
        assert sum(length for *_, length in self.enqueued(bindings, work)) == 1 << 30

    def test_what_ended_too_early_does_not_count(self, bindings):
        work = self.interference(bindings)
        self.enqueued(bindings, work)
        work.settle(self.LOOPS, 1.0, 0.5)
        self.enqueued(bindings, work)
        assert work.settle(self.LOOPS, 0.6, 0.7) is None
        assert len(self.enqueued(bindings, work)) == work.operations(self.LOOPS)

    def test_with_all_loops_it_counts_though_it_ended_first(self, bindings):
        work = self.interference(bindings)
        self.enqueued(bindings, work)
        assert work.settle(self.LOOPS, 0.6, 0.7) == 0.6

    def test_a_kernel_s_pieces_make_up_a_loop(self, bindings):
        device = FakeDevice(Driver(bindings))
        pieces = kernel_pieces(device, 1 << 41, 1 << 40, 1 << 30, CopySettings())
        bindings.calls.clear()
        for piece in pieces:
            piece("stream")
        assert bindings.names() == ["cuLaunchKernel"] * len(pieces)
        assert len(pieces) == (1 << 30) // PIECE

    def test_a_group_takes_the_sample_again(self, bindings, monkeypatch):
        driver = Driver(bindings)
        device = FakeDevice(driver)
        measured = EngineCopy(device, 1 << 40, 1 << 41, 1 << 29, 1)
        other = Interference(device, engine_pieces(device, 1 << 42, 1 << 43, 1 << 30))
        group = CudaGroup(driver, [measured, other])
        times = iter([1.0, 2.0, 1.0, 0.9, 1.0, 2.1, 1.0])
        monkeypatch.setattr(group, "_elapsed", lambda start, end: next(times))
        group.arm(self.LOOPS)
        group.open()
        assert group.wait().seconds == (1.0, 2.0)
        times = iter([1.0, 0.9, 1.0, 2.1, 1.0])
        group.arm(self.LOOPS)
        group.open()
        assert group.wait().seconds == (1.0, 2.1)
        assert list(times) == []
        group.close()
