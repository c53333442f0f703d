"""Memory of another process opens where that process is, for a device that reaches it: by CUDA IPC
within a machine, by fabric handles in an NVLink domain. It is let go of whole and once."""

import pytest

from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.cuda import ipc
from linkgauge.backends.cuda.nvml import nvlink
from linkgauge.backends.protocol import Pattern
from linkgauge.model.errors import (
    AllocationError,
    BackendError,
    DeviceLost,
    NoPeerAccess,
    Unsupported,
)
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfer

SIZE = 6 << 20
OURS, THEIRS = Memory("cuda", 0), Memory("cuda", 0, rank=1)
HERE, THERE = "clique 1 of cluster a", "clique 2 of cluster a"
CLUSTER = "1b000001-0203-0405-0607-08090a0b0c0d"


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
    engine = parse_transfer("cuda:0 -> cuda:0 by ce").engine
    return owner[0].allocate(OURS, SIZE, engine)


@pytest.fixture
def exportable(owner):
    made = ipc.allocate_fabric(OURS, SIZE, owner[0].device_of(OURS))
    yield made
    made.free()


def opened(other, exported, machine="box", domain=None):
    device = other[0].device_of(OURS)
    return ipc.open_handle(exported, machine, THEIRS, SIZE, device, domain)


@pytest.mark.parametrize(("kind", "machine"), [("buffer", "box"), ("exportable", "node8")])
def test_what_is_opened_is_the_same_memory_and_its_owner_has_it_still(
    owner, other, kind, machine, request
):
    ours = request.getfixturevalue(kind)
    theirs = opened(other, ipc.export(ours, "box"), machine)
    assert (theirs.memory, theirs.size, ours.size) == (THEIRS, SIZE, SIZE)
    owner[0].fill(ours, SIZE, Pattern.WORDS, 7, inverted=False)
    assert other[0].first_mismatch(theirs, SIZE, Pattern.WORDS, 7) is None
    other[0].fill(theirs, SIZE, Pattern.WORDS, 8, inverted=False)
    theirs.free()
    theirs.free()
    assert owner[0].first_mismatch(ours, SIZE, Pattern.WORDS, 8) is None
    assert not other[1].holds_fabric
    closed = list(owner[1].held)[:1] if kind == "buffer" else []
    assert other[1].of("cuIpcCloseMemHandle") == [(base,) for base in closed]
    assert other[1].of("cuMemFree") == []


def test_ipc_does_not_leave_a_machine(other, buffer):
    said = "cuda:0@1 is on node7, cuda:0 on node8: CUDA IPC does not leave a machine"
    with pytest.raises(Unsupported, match=f"^{said}$"):
        opened(other, ipc.export(buffer, "node7"), "node8")
    assert other[1].of("cuIpcOpenMemHandle") == []


def test_another_domain_is_not_even_tried(other, exportable):
    said = "cuda:0@1 is on node7, cuda:0 on node8: NVLink does not join them"
    with pytest.raises(ipc.OutOfReach, match=f"^{said}"):
        opened(other, ipc.export(exportable, "node7", HERE), "node8", THERE)
    assert other[1].of("cuMemImportFromShareableHandle") == []


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (Status.CUDA_ERROR_NOT_SUPPORTED, NoPeerAccess, "cuda:0 does not open cuda:0@1: .*"),
        (Status.CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, NoPeerAccess, "does not open .*"),
        (Status.CUDA_ERROR_MAP_FAILED, NoPeerAccess, "does not open .*"),
        (Status.CUDA_ERROR_INVALID_DEVICE, NoPeerAccess, "does not open .*"),
        (Status.CUDA_ERROR_INVALID_CONTEXT, BackendError, "cuIpcOpenMemHandle: "),
        (Status.CUDA_ERROR_LAUNCH_FAILED, BackendError, "cuIpcOpenMemHandle: "),
    ],
)
def test_only_out_of_reach_is_no_error(other, buffer, status, kind, said):
    other[1].failing["cuIpcOpenMemHandle"] = status
    with pytest.raises(kind, match=f"{said}{status.name}") as caught:
        opened(other, ipc.export(buffer, "box"))
    assert isinstance(caught.value, Unsupported) is (kind is NoPeerAccess)


def test_memory_that_cannot_be_shared_is_named(owner, buffer):
    owner[1].failing["cuIpcGetMemHandle"] = Status.CUDA_ERROR_NOT_SUPPORTED
    with pytest.raises(BackendError, match=r"cuIpcGetMemHandle: .*NOT_SUPPORTED.*cuda:0"):
        ipc.export(buffer, "box")


@pytest.mark.parametrize(
    "call", ["cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess"]
)
def test_a_call_that_fails_at_opening_leaves_nothing(other, exportable, call):
    other[1].failing[call] = Status.CUDA_ERROR_NOT_SUPPORTED
    with pytest.raises(ipc.OutOfReach, match=f"on node8: .*{call}: .*NOT_SUPPORTED"):
        opened(other, ipc.export(exportable, "node7"), "node8")
    assert not other[1].holds_fabric


def test_a_lost_device_is_lost(other, exportable):
    other[1].failing["cuMemImportFromShareableHandle"] = Status.CUDA_ERROR_DEVICE_UNAVAILABLE
    with pytest.raises(DeviceLost):
        opened(other, ipc.export(exportable, "node7"), "node8")


@pytest.mark.parametrize(
    "call", ["cuMemCreate", "cuMemExportToShareableHandle", "cuMemMap", "cuMemSetAccess"]
)
def test_without_permission_there_is_none_to_export_and_nothing_is_left(owner, call):
    """As without an IMEX channel."""
    owner[1].failing[call] = Status.CUDA_ERROR_NOT_PERMITTED
    with pytest.raises(Unsupported, match=f"no fabric handles: {call}: .*NOT_PERMITTED"):
        ipc.allocate_fabric(OURS, SIZE, owner[0].device_of(OURS))
    assert not owner[1].holds_fabric


def test_devices_may_have_none_to_export_or_no_more(owner):
    device = owner[0].device_of(OURS)
    owner[1].failing["cuMemCreate"] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(AllocationError, match="cuda:0, for other machines"):
        ipc.allocate_fabric(OURS, SIZE, device)
    owner[1].answers["cuDeviceGetAttribute"] = [0]
    with pytest.raises(Unsupported, match="cuda:0 has no fabric handles"):
        ipc.allocate_fabric(OURS, SIZE, device)


@pytest.mark.parametrize(
    ("found", "domain"),
    [
        ({"fabric_clique": 7, "fabric_cluster": CLUSTER}, f"clique 7 of cluster {CLUSTER}"),
        ({}, None),
        ({"fabric_state": "not supported"}, None),
        ({"fabric_clique": 0, "fabric_cluster": "00000000-0000-0000-0000-000000000000"}, None),
    ],
)
def test_a_domain_is_a_clique_of_a_cluster_if_the_fabric_leaves_the_machine(found, domain):
    assert nvlink.domain(found) == domain
