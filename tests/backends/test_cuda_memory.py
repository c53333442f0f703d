"""Host memory of the cuda backend, without a GPU: what is asked of the driver, and what is said."""

import pytest

from cuda_kit import Bindings, FakeDevice, Status
from linkgauge.backends import native
from linkgauge.backends.cuda.driver import Driver
from linkgauge.backends.cuda.memory import MANAGED_SHARE, allocate
from linkgauge.machine.host import read_host
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.machine import Node
from linkgauge.model.memory import host

SIZE = 8192


@pytest.fixture
def bindings():
    made = Bindings()
    made.answers["cuMemGetInfo"] = (MANAGED_SHARE * 3 * SIZE, 1 << 40)
    return made


@pytest.fixture
def home(bindings):
    return FakeDevice(Driver(bindings))


def had(home, kind, node=None, alone=True):
    node = node or read_host().nodes[0]
    return allocate(host(node.index, kind), SIZE, home, node, alone)


def own(bindings):
    """Its calls but for entering contexts."""
    return [call for call in bindings.calls if call[0] != "cuCtxSetCurrent"]


@pytest.mark.parametrize("kind", ["", "huge", "staging"])
def test_pinned_memory_is_registered_whole_and_unregistered_before_it_goes(bindings, home, kind):
    try:
        buffer = had(home, kind)
    except Unsupported as reason:
        assert "huge" in str(reason)
        pytest.skip(str(reason))
    assert own(bindings) == [("cuMemHostRegister", buffer.address, SIZE, 3)]
    placement = buffer.placement()
    assert (placement.memory, placement.bytes) == (str(host(0, kind)), SIZE)
    assert placement.locked is True
    assert placement.huge_bytes == SIZE or kind != "huge"
    buffer.free()
    buffer.free()
    assert own(bindings)[1:] == [("cuMemHostUnregister", buffer.address)]


def test_memory_that_cannot_be_bound_is_refused_unless_there_is_no_other_node(home):
    missing = Node(900, read_host().nodes[0].cpus)
    with pytest.raises(Unsupported, match="cannot bind memory to host:900"):
        had(home, "", missing, alone=False)
    buffer = had(home, "", missing)
    if buffer.placement().node is not None:
        assert buffer.warnings == (f"host:900 is on node {buffer.placement().node}",)
    buffer.free()


@pytest.mark.parametrize("kind", ["mapped", "managed", ""])
def test_memory_that_the_driver_does_not_have_is_an_allocation_error(bindings, home, kind):
    for name in ("cuMemHostAlloc", "cuMemAllocManaged", "cuMemHostRegister"):
        bindings.failing[name] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(AllocationError, match=r"CUDA_ERROR_OUT_OF_MEMORY \(8\.0 KiB of host:0"):
        had(home, kind)
    assert home.managed == 0


class TestManaged:
    @pytest.mark.parametrize(
        ("alone", "kind"),
        [(True, "CU_MEM_LOCATION_TYPE_HOST"), (False, "CU_MEM_LOCATION_TYPE_HOST_NUMA")],
    )
    def test_lies_on_its_node_mapped_into_the_device(self, bindings, home, alone, kind):
        node = Node(1, read_host().nodes[0].cpus)
        buffer = had(home, "managed", node, alone)
        assert [
            (address, size, advice, location.type, location.id)
            for address, size, advice, location in bindings.of("cuMemAdvise_v2")
        ] == [
            (buffer.address, SIZE, "CU_MEM_ADVISE_SET_PREFERRED_LOCATION", kind, 1),
            (buffer.address, SIZE, "CU_MEM_ADVISE_SET_ACCESSED_BY",
             "CU_MEM_LOCATION_TYPE_DEVICE", home.index),
        ]  # fmt: skip
        assert buffer.placement().node == native.node_of(buffer.address, SIZE)

    def test_is_no_more_than_a_share_of_what_the_device_has_free(self, bindings, home):
        bindings.answers["cuMemGetInfo"] = (MANAGED_SHARE * SIZE - 1, 1 << 40)
        with pytest.raises(Unsupported, match=r"8\.0 KiB of managed memory is more than 1/4 of"):
            had(home, "managed")
        assert "cuMemAllocManaged" not in bindings.names()

    def test_is_counted_over_all_buffers_until_they_are_freed(self, home):
        kept = [had(home, "managed") for _ in range(3)]
        with pytest.raises(AllocationError, match=r"with 24\.0 KiB in use it is more than 1/4"):
            had(home, "managed")
        kept.pop().free()
        had(home, "managed")
        assert home.managed == 3 * SIZE

    def test_is_given_back_where_the_driver_takes_no_advice(self, bindings, home):
        bindings.failing["cuMemAdvise_v2"] = Status.CUDA_ERROR_INVALID_VALUE
        with pytest.raises(BackendError, match=r"cuMemAdvise_v2: .* \(8\.0 KiB of host:0/managed"):
            had(home, "managed")
        assert (len(bindings.of("cuMemFree")), home.managed) == (1, 0)

    def test_is_refused_where_host_and_device_cannot_share_it(self, bindings, home):
        bindings.answers["cuDeviceGetAttribute"] = [0]
        with pytest.raises(Unsupported, match="cannot use managed memory while the host does"):
            had(home, "managed")
