"""Host memory of the cuda backend, without a GPU: what is asked of the driver, and what is said."""

import pytest

from cuda_kit import Status, backend_of, gpu
from linkgauge.backends import native
from linkgauge.machine.host import read_host
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.notation import parse_memory, parse_transfer

SIZE = 8192
HERE = read_host().nodes[0]


@pytest.fixture
def bindings():
    made = gpu()
    made.answers["cuMemGetInfo"] = (4 * 3 * SIZE, 1 << 40)  # a quarter may be managed memory
    return made


def had(bindings, kind, *others, index=0):
    """Host memory of this kind on the node of that index, of this one and others."""
    backend = backend_of(bindings, (HERE, *others))
    return allocated(backend, kind, index)


def allocated(backend, kind, index=0):
    memory = parse_memory(f"host:{index}" + (kind and f"/{kind}"))
    return backend.allocate(memory, SIZE, parse_transfer("host:0 -> cuda:0 by ce").engine)


@pytest.mark.parametrize("kind", ["", "huge", "staging"])
def test_pinned_memory_is_registered_whole_and_unregistered_before_it_goes(bindings, kind):
    try:
        buffer = had(bindings, kind)
    except Unsupported as reason:
        assert "huge" in str(reason)
        pytest.skip(str(reason))
    assert bindings.of("cuMemHostRegister") == [(buffer.address, SIZE, 3)]
    placement = buffer.placement()
    assert (placement.bytes, placement.locked) == (SIZE, True)
    assert placement.huge_bytes == SIZE or kind != "huge"
    buffer.free()
    buffer.free()
    assert bindings.of("cuMemHostUnregister") == [(buffer.address,)]


def test_memory_that_cannot_be_bound_is_refused_unless_there_is_no_other_node(bindings):
    missing = Node(900, HERE.cpus)
    with pytest.raises(Unsupported, match="cannot bind memory to host:900"):
        had(bindings, "", missing, index=900)
    backend = backend_of(bindings, (missing,))
    buffer = allocated(backend, "", 900)
    if buffer.placement().node is not None:
        assert buffer.warnings == (f"host:900 is on node {buffer.placement().node}",)
    buffer.free()


@pytest.mark.parametrize("kind", ["mapped", "managed", ""])
def test_memory_that_the_driver_does_not_have_is_an_allocation_error(bindings, kind):
    for name in ("cuMemHostAlloc", "cuMemAllocManaged", "cuMemHostRegister"):
        bindings.failing[name] = Status.CUDA_ERROR_OUT_OF_MEMORY
    with pytest.raises(AllocationError, match=r"CUDA_ERROR_OUT_OF_MEMORY \(8\.0 KiB of host:0"):
        had(bindings, kind)


class TestManaged:
    @pytest.mark.parametrize(
        ("others", "index", "kind"),
        [
            ((), 0, "CU_MEM_LOCATION_TYPE_HOST"),
            ((Node(1, HERE.cpus),), 1, "CU_MEM_LOCATION_TYPE_HOST_NUMA"),
        ],
    )
    def test_lies_on_its_node_mapped_into_the_device(self, bindings, others, index, kind):
        buffer = had(bindings, "managed", *others, index=index)
        assert [
            (address, size, advice, location.type, location.id)
            for address, size, advice, location in bindings.of("cuMemAdvise_v2")
        ] == [
            (buffer.address, SIZE, "CU_MEM_ADVISE_SET_PREFERRED_LOCATION", kind, index),
            (buffer.address, SIZE, "CU_MEM_ADVISE_SET_ACCESSED_BY",
             "CU_MEM_LOCATION_TYPE_DEVICE", 0),
        ]  # fmt: skip
        assert buffer.placement().node == native.node_of(buffer.address, SIZE)

    def test_is_no_more_than_a_share_of_what_the_device_has_free(self, bindings):
        bindings.answers["cuMemGetInfo"] = (4 * SIZE - 1, 1 << 40)
        with pytest.raises(Unsupported, match=r"8\.0 KiB of managed memory is more than 1/4 of"):
            had(bindings, "managed")
        assert "cuMemAllocManaged" not in bindings.names()

    def test_is_counted_over_all_buffers_until_they_are_freed(self, bindings):
        backend = backend_of(bindings, (HERE,))
        kept = [allocated(backend, "managed") for _ in range(3)]
        with pytest.raises(AllocationError, match=r"with 24\.0 KiB in use it is more than 1/4"):
            allocated(backend, "managed")
        kept.pop().free()
        allocated(backend, "managed")

    def test_is_given_back_where_the_driver_takes_no_advice(self, bindings):
        bindings.failing["cuMemAdvise_v2"] = Status.CUDA_ERROR_INVALID_VALUE
        with pytest.raises(BackendError, match=r"cuMemAdvise_v2: .* \(8\.0 KiB of host:0/managed"):
            had(bindings, "managed")
        assert len(bindings.of("cuMemFree")) == 1

    def test_is_refused_where_host_and_device_cannot_share_it(self, bindings):
        bindings.answers["cuDeviceGetAttribute"] = [0]
        with pytest.raises(Unsupported, match="cannot use managed memory while the host does"):
            had(bindings, "managed")
