"""A flag comes back as often as it is sent; a side that hears nothing gives up."""

import ctypes
import threading
from itertools import pairwise
from types import SimpleNamespace

import pytest

from cuda_emulator import emulated
from cuda_kit import FakeDevice, gpu
from linkgauge.backends.cuda import flags, queue
from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.operations import transfers
from linkgauge.backends.protocol import Copy, run
from linkgauge.model.errors import BackendError, TookTooLong, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import HAND_OVERS, named


@pytest.mark.parametrize("text", ["host:0 -> cuda:0 by sm", "cuda:0 -> cuda:0 by sm"])
def test_the_cell_ends_as_one_that_took_too_long(monkeypatch, text):
    """The emulator runs one kernel after another: nobody ever answers."""
    monkeypatch.setattr(flags, "LIMIT", 0.02)
    backend, _ = emulated()
    transfer = parse_transfer(text)
    ends = [backend.allocate(end, flags.BYTES, transfer.engine) for end in transfer.memories]
    group = backend.prepare([Copy(transfer, *ends, flags.BYTES, 1)], "flag-ping-pong")
    for _ in range(2):
        group.arm(1, 3)
        group.open()
        with pytest.raises(TookTooLong, match=r"no answer from cuda:0 within 0.02 s"):
            group.wait()
    group.close()
    group.close()


def test_more_round_trips_than_a_report_holds_are_refused():
    backend, _ = emulated()
    transfer = parse_transfer("cuda:0 -> cuda:0 by sm")
    ends = [backend.allocate(end, flags.BYTES, transfer.engine) for end in transfer.memories]
    group = backend.prepare([Copy(transfer, *ends, flags.BYTES, 1)], "flag-ping-pong")
    group.arm(flags.MOST + 1)
    group.open()
    with pytest.raises(Unsupported, match=f"at most {flags.MOST}"):
        group.wait()
    group.close()


class TestTwoProcesses:
    """Each launches its own side, on its own device, in its own process."""

    @pytest.fixture
    def sides(self):
        """The devices of two processes, the addresses of both flags, and the bindings."""
        made = [emulated() for _ in range(2)]
        words = (ctypes.c_uint64 * 32)()
        at = ctypes.addressof(words), ctypes.addressof(words) + flags.APART
        devices = [backend.device_of(Memory("cuda", 0)) for backend, _ in made]
        yield devices, at, [bindings for _, bindings in made]
        del words

    def groups(self, sides):
        (first, second), (mine, theirs), _ = sides
        begins = flags.beginning(first, mine, theirs)
        answers = flags.FlagGroup(None, flags.FlagKernel(second, theirs, mine))
        begins.next = answers.next = 1
        return begins, answers

    def test_send_each_value_there_and_back(self, sides, monkeypatch):
        monkeypatch.setattr(flags, "LIMIT", 60)
        begins, answers = self.groups(sides)
        for _ in range(2):
            answered = []
            other = threading.Thread(target=lambda found=answered: found.append(run(answers, 2, 3)))
            other.start()
            timing = run(begins, 2, 3)
            other.join()
            assert [(one.seconds, one.span) for one in answered] == [((), 0.0)]
            (times,) = timing.progress
            assert len(times) == 4
            assert all(begin < end for begin, end in pairwise(times))
            assert timing.seconds == (times[-1],)
        assert begins.next == answers.next > 12, "each value is sent once"
        begins.close()
        answers.close()

    def test_whoever_begins_says_that_nobody_answers(self, sides, monkeypatch):
        monkeypatch.setattr(flags, "LIMIT", 0.02)
        begins, answers = self.groups(sides)
        with pytest.raises(
            TookTooLong, match=r"no answer from the other rank within 0.02 s \(0 of"
        ):
            run(begins, 1, 3)
        begins.close()
        answers.close()

    def test_what_cannot_be_begun_leaves_nothing(self, sides):
        (first, _), (mine, theirs), (bindings, _) = sides
        bindings.failing["cuLaunchKernel"] = bindings.CUresult.CUDA_ERROR_LAUNCH_FAILED
        with pytest.raises(BackendError, match="cuLaunchKernel"):
            flags.beginning(first, mine, theirs)
        assert bindings.held == {}


class Calls:
    """Driver functions that note their arguments, and ring the doorbell."""

    def __init__(self):
        self.seen, self.kept = [], {}

    def address_of(self, name):
        def call(*words):
            self.seen.append((name, *words))
            if name == "cuLaunchKernel" and self.rings:
                parameters = (ctypes.c_void_p * 2).from_address(words[9])
                word, value = (ctypes.c_uint64.from_address(at).value for at in parameters)
                ctypes.c_uint64.from_address(word).value = value
            return 0

        words = {"cuLaunchKernel": 11, "cuStreamSynchronize": 1, "cuEventSynchronize": 1}
        made = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * words.get(name, 2))(call)
        self.kept[name] = made
        return ctypes.cast(made, ctypes.c_void_p).value

    rings = False


class Device(FakeDevice):
    def stream(self, number):
        return 40 + number

    def kernel(self, file, function, defines=()):
        return 7


@pytest.fixture
def calls(monkeypatch):
    made = Calls()
    monkeypatch.setattr(queue, "address_of", made.address_of)
    return made


def hand_over(device, operation):
    """The operation on a backend of this device alone."""
    backend = SimpleNamespace(queue=lambda _, made: queue.CudaQueue(device, made),
                              concurrent=lambda group, loads: group)  # fmt: skip
    work = Copy(parse_transfer("null -> null by cuda:0.sm"), None, None, 1, 1)
    return transfers.hand_over(backend, [work], named(operation))


EXPECTED = {
    "launch": ["cuLaunchKernel", "cuStreamSynchronize"],
    "sync": ["cuStreamSynchronize"],
    "event": ["cuEventRecord", "cuEventSynchronize"],
    "graph-launch": ["cuGraphLaunch", "cuStreamSynchronize"],
    "doorbell": ["cuLaunchKernel"],
}


@pytest.mark.parametrize("operation", HAND_OVERS)
def test_an_iteration_is_these_calls_and_what_they_need_is_released(calls, operation):
    bindings = gpu()
    device = Device(Driver(bindings))
    calls.rings = operation == "doorbell"
    group = hand_over(device, operation)
    (times,) = run(group, 1, 3).progress
    assert len(times) == 4
    rounds = len(calls.seen) // len(EXPECTED[operation])
    assert rounds > 3
    assert [name for name, *_ in calls.seen] == EXPECTED[operation] * rounds
    group.close()
    made, released = (
        sum(name in names for name in bindings.names())
        for names in (
            ("cuEventCreate", "cuStreamEndCapture", "cuGraphInstantiate", "cuMemHostAlloc"),
            ("cuEventDestroy", "cuGraphDestroy", "cuGraphExecDestroy", "cuMemFreeHost"),
        )
    )
    assert made == released


def test_what_cannot_be_made_releases_what_was(calls):
    bindings = gpu()
    bindings.failing["cuGraphInstantiate"] = bindings.CUresult.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(BackendError, match="cuGraphInstantiate"):
        hand_over(Device(Driver(bindings)), "graph-launch")
    assert "cuGraphDestroy" in bindings.names()
