"""Memory of another process opens where that process is, and for a device that reaches it."""

import ctypes

import pytest

from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.cuda.ipc import export, open_handle
from linkgauge.backends.protocol import Pattern
from linkgauge.model.errors import BackendError, NoPeerAccess, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfer

SIZE = 6 << 20
OURS, THEIRS = Memory("cuda", 0), Memory("cuda", 0, rank=1)


@pytest.fixture
def owner():
    """The process that has the memory."""
    return emulated()


@pytest.fixture
def other():
    """Another one, which opens it."""
    return emulated()


@pytest.fixture
def buffer(owner):
    backend, _ = owner
    return backend.allocate(OURS, SIZE, parse_transfer("cuda:0 -> cuda:0 by ce").engine)


def opened(other, exported, machine="box"):
    backend, _ = other
    return open_handle(exported, machine, THEIRS, SIZE, backend.device_of(OURS))


class TestOpened:
    def test_is_let_go_of_once_and_not_freed(self, owner, other, buffer):
        theirs = opened(other, export(buffer, "box"))
        theirs.free()
        theirs.free()
        (base,) = owner[1].held
        assert other[1].of("cuIpcCloseMemHandle") == [(base,)], (
            "what was opened, not where it begins"
        )
        assert other[1].of("cuMemFree") == []
        owner[0].fill(buffer, SIZE, Pattern.WORDS, 7, inverted=False)
        assert ctypes.string_at(buffer.address, 8) != bytes(8), "its owner has it still"


class TestRefused:
    def test_on_another_machine(self, other, buffer):
        exported = export(buffer, "node7")
        with pytest.raises(Unsupported) as caught:
            opened(other, exported, "node8")
        said = "cuda:0@1 is on node7, cuda:0 on node8: CUDA IPC does not leave a machine"
        assert str(caught.value) == said
        assert other[1].of("cuIpcOpenMemHandle") == []

    @pytest.mark.parametrize(
        "status",
        [
            Status.CUDA_ERROR_NOT_SUPPORTED,
            Status.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED,
            Status.CUDA_ERROR_MAP_FAILED,
            Status.CUDA_ERROR_INVALID_DEVICE,
        ],
    )
    def test_where_the_device_does_not_reach_it(self, other, buffer, status):
        other[1].failing["cuIpcOpenMemHandle"] = status
        with pytest.raises(NoPeerAccess, match=f"cuda:0 does not open cuda:0@1: .*{status.name}"):
            opened(other, export(buffer, "box"))

    @pytest.mark.parametrize(
        "status", [Status.CUDA_ERROR_INVALID_CONTEXT, Status.CUDA_ERROR_LAUNCH_FAILED]
    )
    def test_for_another_reason_is_an_error(self, other, buffer, status):
        other[1].failing["cuIpcOpenMemHandle"] = status
        with pytest.raises(BackendError, match=f"cuIpcOpenMemHandle: {status.name}") as caught:
            opened(other, export(buffer, "box"))
        assert not isinstance(caught.value, Unsupported)

    def test_memory_that_cannot_be_shared_is_named(self, owner, buffer):
        owner[1].failing["cuIpcGetMemHandle"] = Status.CUDA_ERROR_NOT_SUPPORTED
        with pytest.raises(BackendError, match=r"cuIpcGetMemHandle: .*NOT_SUPPORTED.*cuda:0"):
            export(buffer, "box")
