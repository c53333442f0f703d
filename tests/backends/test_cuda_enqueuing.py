"""How long the host takes to hand copies over: calls of the driver behind a shut gate."""

import ctypes

import pytest

from cuda_kit import Status, backend_of, gpu
from linkgauge.backends.cuda import queue
from linkgauge.backends.protocol import Copy, run
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer


class Enqueued:
    """A driver's function that records its arguments and how the gate then stood."""

    def __init__(self, bindings, status):
        self.seen = []
        self._bindings = bindings
        self._status = status
        self._kept = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * 4)(self._call)
        self.address = ctypes.cast(self._kept, ctypes.c_void_p).value

    def _call(self, *words):
        opened = ctypes.c_uint32.from_buffer(self._bindings.memory[0])
        self.seen.append((words, opened.value))
        return self._status


@pytest.fixture
def bindings():
    return gpu()


def copy_of(backend, text):
    transfer = parse_transfer(text)
    ends = [
        None if memory.is_null else backend.allocate(memory, 4096, transfer.engine)
        for memory in (transfer.source, transfer.destination)
    ]
    return Copy(transfer, *ends, 4096, 1)


@pytest.fixture
def make(bindings, monkeypatch):
    def group(status=0):
        function = Enqueued(bindings, status)
        monkeypatch.setattr(queue, "address_of", lambda name: function.address)
        function.backend = backend = backend_of(bindings)
        function.copy = copy_of(backend, "cuda:0 -> cuda:0 by ce")
        return function, backend.prepare([function.copy], "enqueue")

    return group


def test_calls_are_made_while_the_gate_is_shut(bindings, make):
    function, group = make()
    group.arm(100)
    assert not function.seen
    group.open()
    timing = group.wait()
    assert len(function.seen) == 100
    copy = function.copy
    for words, opened in function.seen:
        assert words[:3] == (copy.destination.address, copy.source.address, 4096)
        assert not opened
    assert timing.seconds == (timing.span,)
    assert timing.span > 0
    group.arm(1)  # again, any number of times
    group.open()
    group.wait()
    group.close()
    group.close()
    function.backend.prepare([copy], "enqueue").close()  # has the same gate
    function.backend.close()
    assert bindings.names().count("cuMemHostAlloc") == 1
    assert bindings.names().count("cuMemFreeHost") == 1


def test_a_call_that_fails_is_told_by_its_name(make):
    function, group = make(Status.CUDA_ERROR_INVALID_VALUE)
    group.arm(5)
    with pytest.raises(BackendError, match=r"cuMemcpyAsync.*CUDA_ERROR_INVALID_VALUE"):
        group.open()
    assert len(function.seen) == 1
    group.close()


def test_a_gate_that_opened_by_itself_spoils_the_sample(bindings, make):
    _, group = make()
    group.arm(1)
    group.open()
    ctypes.c_uint32.from_buffer(bindings.memory[0], 4).value = 1
    with pytest.raises(BackendError, match="before all calls were made"):
        group.wait()


def test_calls_out_of_order_raise_and_no_more_are_made_than_queues_hold(make):
    _, group = make()
    with pytest.raises(Unsupported, match="give --loops "):
        group.arm(1 << 20)
    for step in (group.open, group.wait):
        with pytest.raises(BackendError):
            step()
    group.arm(1)
    for step in (lambda: group.arm(1), group.wait):
        with pytest.raises(BackendError):
            step()
    group.close()
    with pytest.raises(BackendError, match="closed"):
        group.arm(1)


@pytest.mark.parametrize("text", ["cuda:0 -> null by sm", "null -> cuda:0 by sm"])
def test_what_the_driver_does_not_take_at_once_is_unsupported(bindings, text):
    backend = backend_of(bindings)
    with pytest.raises(Unsupported, match="does not enqueue such copies at once"):
        backend.prepare([copy_of(backend, text)], "enqueue")


def test_a_copy_goes_there_and_back_on_one_stream_and_is_waited_for_each_time(
    bindings, monkeypatch
):
    words = {"cuMemcpyAsync": 4, "cuStreamSynchronize": 1}
    seen = {name: [] for name in words}
    kept = {
        name: ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_uint64] * count)(
            lambda *given, name=name: seen[name].append(given) or 0
        )
        for name, count in words.items()
    }
    monkeypatch.setattr(
        queue, "address_of", lambda name: ctypes.cast(kept[name], ctypes.c_void_p).value
    )
    backend = backend_of(bindings)
    transfer = parse_transfer("host:0 -> cuda:0 by ce")
    ends = [backend.allocate(end, 64, transfer.engine) for end in transfer.memories]
    group = backend.prepare([Copy(transfer, *ends, 64, 1)], "copy-ping-pong")
    assert run(group, 1).seconds[0] > 0
    assert group.policy.steps == 2
    source, destination = (end.address for end in ends)
    there, back, *_ = seen["cuMemcpyAsync"]
    assert (there[:3], back[:3]) == ((destination, source, 64), (source, destination, 64))
    assert {stream for (stream,) in seen["cuStreamSynchronize"]} == {there[3], back[3]}
    assert len(seen["cuStreamSynchronize"]) == len(seen["cuMemcpyAsync"])
    for text in ("cuda:0 -> null by sm", "host:0 -> cuda:0 by cuda:0.sm"):
        with pytest.raises(Unsupported, match="only copies by ce are timed one by one"):
            backend.prepare([Copy(parse_transfer(text), *ends, 64, 1)], "copy-ping-pong")
