"""Backend torch on torch's `cpu`: contents by torch's own operations, products, and refusals that
only show with buffers. Copies are the conformance suite's matter."""

import gc

import pytest

from fakes import content
from linkgauge.backends import open_backend
from linkgauge.backends.protocol import Copy, Pattern
from linkgauge.backends.torch import content as device_content
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.notation import parse_memory, parse_transfer
from linkgauge.model.operations.operation import size_of

pytestmark = pytest.mark.ai
torch = pytest.importorskip("torch")

CPU = parse_memory("torch:cpu:0")
SIZES = [1, 7, 8, 513, 4096, 65_537]


@pytest.fixture(scope="module")
def backend():
    opened = open_backend("torch")
    yield opened
    opened.close()


@pytest.fixture(params=[1 << 24, 100], ids=["whole", "pieces"])
def _pieces(request, monkeypatch):
    monkeypatch.setattr(device_content, "_PIECE", request.param)


def filled(size, pattern, seed, inverted=False):
    """Memory that is filled as that of accelerators is."""
    memory = torch.empty(size, dtype=torch.uint8)
    device_content.fill(torch, memory, pattern, seed, inverted)
    return memory


@pytest.mark.parametrize("pattern", [p for p in Pattern if not p.is_of_numbers])
@pytest.mark.usefixtures("_pieces")
def test_torchs_operations_make_the_pattern_that_is_documented(pattern):
    for size in SIZES:
        for inverted in (False, True):
            made = filled(size, pattern, 9, inverted)
            assert bytes(made.tolist()) == content(size, pattern, 9, inverted)


@pytest.mark.parametrize("pattern", Pattern)
@pytest.mark.usefixtures("_pieces")
def test_torchs_operations_and_the_native_core_agree(backend, pattern):
    size = 8192
    other = backend.allocate(CPU, size, parse_transfer("null -> torch:cpu:0 by sm").engine)
    backend.fill(other, size, pattern, 5, False)
    memory = filled(size, pattern, 5)
    assert torch.equal(memory, other.tensor)
    assert device_content.first_mismatch(torch, memory, pattern, 5) is None
    assert device_content.checksum(torch, memory) == backend.checksum(other, size)
    for offset in (size - 1, 4321, 0):
        memory[offset] ^= 0x10
        assert device_content.first_mismatch(torch, memory, pattern, 5) == offset
    other.free()


@pytest.mark.usefixtures("_pieces")
def test_the_checksum_is_the_xor_of_all_words():
    for size in SIZES:
        memory = filled(size, Pattern.WORDS, 3)
        data = bytes(memory.tolist())
        words = [data[at : at + 8] for at in range(0, size, 8)]
        expected = 0
        for word in words:
            expected ^= int.from_bytes(word, "little")
        assert device_content.checksum(torch, memory) == expected


@pytest.mark.parametrize("operation", ["matmul-fp32", "matmul-bf16", "matmul-fp16"])
def test_a_wrong_product_is_found(backend, operation):
    work = parse_transfer("null -> null by torch:cpu:0.sm")
    group = backend.prepare([Copy(work, None, None, size_of(100), 1)], operation)
    group.arm(1)
    assert group.mismatch() is not None  # an old product does not pass for a new one
    group.open()
    group.wait()
    assert group.mismatch() is None
    group.product.product[70, 40] += 50
    assert "row 70, columns 32 to 63" in group.mismatch()
    group.close()


def test_tf32_is_nvidias(backend):
    work = parse_transfer("null -> null by torch:cpu:0.sm")
    with pytest.raises(Unsupported, match="has no TF32"):
        backend.prepare([Copy(work, None, None, size_of(100), 1)], "matmul-tf32")


def test_a_freed_buffer_is_an_error_not_a_crash(backend):
    transfer = parse_transfer("host:0 -> torch:cpu:0 by ce")
    ends = [backend.allocate(memory, 4096, transfer.engine) for memory in transfer.memories]
    for buffer in ends:
        buffer.free()
        buffer.free()
    with pytest.raises(BackendError, match="is freed"):
        backend.prepare([Copy(transfer, *ends, 4096, 1)])


def test_more_than_there_is_is_a_lack_of_memory_in_one_line(backend):
    with pytest.raises(AllocationError, match=r"^torch\.empty: .*memory.* of torch:cpu:0\)$"):
        backend.allocate(CPU, 1 << 50, parse_transfer("null -> torch:cpu:0 by sm").engine)


def test_pinned_memory_lies_where_its_name_says(backend):
    transfer = parse_transfer("host:0 -> torch:cpu:0 by ce")
    buffer = backend.allocate(transfer.source, 1 << 20, transfer.engine)
    placed = buffer.placement()
    assert (placed.memory, placed.bytes, placed.node) == ("host:0", 1 << 20, 0)
    buffer.free()


def test_closing_closes_armed_groups_first():
    backend = open_backend("torch")
    transfer = parse_transfer("host:0 -> torch:cpu:0 by ce")
    ends = [backend.allocate(memory, 4096, transfer.engine) for memory in transfer.memories]
    group = backend.prepare([Copy(transfer, *ends, 4096, 1)])
    group.arm(1)
    backend.close()
    with pytest.raises(BackendError):
        group.wait()
    gc.collect()
