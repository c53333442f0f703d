"""Memory that other machines of an NVLink domain map: allocated where there is such memory, opened
by whoever reaches it, and let go of whole."""

import pytest

from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.cuda import fabric
from linkgauge.backends.cuda.ipc import OutOfReach, export, open_handle
from linkgauge.backends.cuda.product import domain
from linkgauge.backends.protocol import Pattern
from linkgauge.model.errors import AllocationError, DeviceLost, Unsupported
from linkgauge.model.memory import Memory

SIZE = 3 << 20
OURS, THEIRS = Memory("cuda", 0), Memory("cuda", 0, rank=1)
HERE, THERE = "clique 1 of cluster a", "clique 2 of cluster a"


@pytest.fixture
def owner():
    """The process that has the memory."""
    return emulated()


@pytest.fixture
def other():
    """One on another machine."""
    return emulated()


@pytest.fixture
def buffer(owner):
    made = fabric.allocate(OURS, SIZE, owner[0].device_of(OURS))
    yield made
    made.free()


def opened(other, exported, domain=None):
    backend, _ = other
    device = backend.device_of(OURS)
    return open_handle(exported, "node8", THEIRS, SIZE, device, domain)


class TestAllocated:
    def test_is_not_had_by_devices_without_it(self, owner):
        owner[1].answers["cuDeviceGetAttribute"] = [0]
        with pytest.raises(Unsupported, match="cuda:0 has no fabric handles"):
            fabric.allocate(OURS, SIZE, owner[0].device_of(OURS))
        assert owner[1].of("cuMemCreate") == []

    @pytest.mark.parametrize(
        "call", ["cuMemCreate", "cuMemExportToShareableHandle", "cuMemMap", "cuMemSetAccess"]
    )
    def test_is_not_had_where_a_call_is_not_permitted_and_leaves_nothing(self, owner, call):
        """As without an IMEX channel."""
        owner[1].failing[call] = Status.CUDA_ERROR_NOT_PERMITTED
        with pytest.raises(Unsupported, match=f"no fabric handles: {call}: .*NOT_PERMITTED"):
            fabric.allocate(OURS, SIZE, owner[0].device_of(OURS))
        assert not owner[1].holds_fabric

    def test_that_is_short_is_an_error(self, owner):
        owner[1].failing["cuMemCreate"] = Status.CUDA_ERROR_OUT_OF_MEMORY
        with pytest.raises(AllocationError, match="cuda:0, for other machines"):
            fabric.allocate(OURS, SIZE, owner[0].device_of(OURS))


class TestOpened:
    def test_is_the_same_memory(self, owner, other, buffer):
        theirs = opened(other, export(buffer, "node7"))
        assert (theirs.memory, theirs.size) == (THEIRS, SIZE)
        owner[0].fill(buffer, SIZE, Pattern.WORDS, 7, inverted=False)
        assert other[0].first_mismatch(theirs, SIZE, Pattern.WORDS, 7) is None
        other[0].fill(theirs, SIZE, Pattern.WORDS, 8, inverted=False)
        assert owner[0].first_mismatch(buffer, SIZE, Pattern.WORDS, 8) is None
        theirs.free()

    def test_is_let_go_of_once_and_its_owner_has_it_still(self, owner, other, buffer):
        theirs = opened(other, export(buffer, "node7"))
        theirs.free()
        theirs.free()
        assert not other[1].holds_fabric
        owner[0].fill(buffer, SIZE, Pattern.WORDS, 9, inverted=False)
        assert owner[0].first_mismatch(buffer, SIZE, Pattern.WORDS, 9) is None


class TestDomain:
    """What NVML says of the fabric, as far as it leaves a machine."""

    CLUSTER = "1b000001-0203-0405-0607-08090a0b0c0d"

    def test_is_a_clique_of_a_cluster(self):
        found = domain({"fabric_clique": 7, "fabric_cluster": self.CLUSTER})
        assert found == f"clique 7 of cluster {self.CLUSTER}"

    @pytest.mark.parametrize(
        "found",
        [
            {},
            {"fabric_state": "not supported"},
            {"fabric_clique": 0, "fabric_cluster": "00000000-0000-0000-0000-000000000000"},
        ],
    )
    def test_is_unknown_where_the_fabric_ends_with_the_machine(self, found):
        assert domain(found) is None


class TestOutOfReach:
    def test_of_another_domain_it_is_not_even_tried(self, other, buffer):
        with pytest.raises(OutOfReach) as caught:
            opened(other, export(buffer, "node7", HERE), THERE)
        said = "cuda:0@1 is on node7, cuda:0 on node8: NVLink does not join them"
        assert str(caught.value).startswith(said)
        assert other[1].of("cuMemImportFromShareableHandle") == []

    @pytest.mark.parametrize(
        "call",
        [
            "cuMemImportFromShareableHandle", "cuMemAddressReserve", "cuMemMap", "cuMemSetAccess",
        ],
    )  # fmt: skip
    def test_it_is_where_a_call_fails_and_nothing_is_left(self, other, buffer, call):
        other[1].failing[call] = Status.CUDA_ERROR_NOT_SUPPORTED
        with pytest.raises(OutOfReach, match=f"on node8: .*{call}: .*NOT_SUPPORTED"):
            opened(other, export(buffer, "node7"))
        assert not other[1].holds_fabric

    def test_a_lost_device_is_lost(self, other, buffer):
        other[1].failing["cuMemImportFromShareableHandle"] = Status.CUDA_ERROR_DEVICE_UNAVAILABLE
        with pytest.raises(DeviceLost):
            opened(other, export(buffer, "node7"))
