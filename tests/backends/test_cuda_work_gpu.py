"""Products and arrays on a GPU: right where they are, found wrong where they are not, and by the
kernel that was found."""

import pytest

from cuda_kit import on_gpus
from linkgauge.backends.cuda import cublas
from linkgauge.backends.cuda.settings import ARRAY_DEFAULT, CopySettings, load_tuned
from linkgauge.backends.protocol import RESULTS, Copy, Pattern, run
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import ARRAYS, PRODUCTS, named, operations_of, size_of

pytestmark = pytest.mark.gpu
MiB = 1 << 20
WORK = parse_transfer("null -> null by cuda:0.sm")
OPERATIONS = [name for name, work in ARRAYS.items() if work.mode == "peak"]
SHAPES = [
    ARRAY_DEFAULT,
    CopySettings(blocks=100, threads=128, unroll=8),
    CopySettings(blocks=264, threads=256, unroll=4, spread=True, streaming=True),
]


def product(backend, operation, order=1000, seed=5):
    try:
        return backend.prepare([Copy(WORK, None, None, size_of(order), seed)], operation)
    except Unsupported as reason:
        pytest.skip(str(reason))


@pytest.mark.parametrize("order", [1, 33, 1000, 4096])
@pytest.mark.parametrize("operation", PRODUCTS)
def test_products_are_right(backend, operation, order):
    group = product(backend, operation, order)
    timing = run(group, 2, 50)
    assert group.mismatch() is None
    assert len(timing.progress[0]) == 51
    assert 1e9 < operations_of(order) * 100 / timing.seconds[0] < 1e16 or order < 1000
    group.close()


@pytest.mark.parametrize("operation", PRODUCTS)
def test_one_wrong_element_is_found(backend, operation):
    group = product(backend, operation)
    run(group)
    at = group.product.product + (700 * 1000 + 65) * PRODUCTS[operation].bytes
    nothing = b"\xff" * PRODUCTS[operation].bytes
    group.product.device.call("cuMemcpyHtoD", at, nothing, len(nothing))
    assert "in row 700, columns 64 to 95" in group.mismatch()
    group.close()


def test_a_product_in_tf32_does_not_pass_for_one_in_fp32(backend):
    group = product(backend, "matmul-fp32", 4096)
    if group.product.device.capability < 80:
        pytest.skip("it has no TF32")
    work = group.product
    work._blas.bind(group.product.device.aside)
    ends = work.a, work.b, work.product
    work._blas.multiply(4096, *ends, cublas.R_32F, cublas.COMPUTE_32F_FAST_TF32)
    group.product.device.driver.call("cuStreamSynchronize", group.product.device.aside)
    assert group.mismatch() is not None
    group.close()


def test_the_same_seed_draws_the_same_numbers(backend):
    groups = [product(backend, "matmul-fp32", 64, seed) for seed in (1, 1, 2)]
    drawn = []
    for group in groups:
        data = bytearray(64 * 64 * 4)
        group.product.device.call("cuMemcpyDtoH", data, group.product.a, len(data))
        drawn.append(bytes(data))
        group.close()
    assert drawn[0] == drawn[1] != drawn[2]


def made(operation):
    kind = ARRAYS[operation].kind
    return RESULTS.get(kind, Pattern.CONSTANT if kind == "write" else Pattern.WORDS)


def lend(backend, operation, size, seed=7):
    work = ARRAYS[operation]
    ends = "cuda:0" if work.read else "null", "cuda:0" if work.written else "null"
    transfer = parse_transfer(f"{ends[0]} -> {ends[1]} by cuda:0.sm")
    source = destination = None
    if work.read:
        whole = size * named(operation).source_arrays
        source = backend.allocate(transfer.source, whole, transfer.engine)
        given = Pattern.NUMBERS if work.computes else Pattern.WORDS
        backend.fill(source, whole, given, seed, inverted=False)
    if work.written:
        destination = backend.allocate(transfer.destination, size, transfer.engine)
        backend.fill(destination, size, made(operation), seed, inverted=True)
    return Copy(transfer, source, destination, size, seed)


def free(copy):
    for buffer in (copy.source, copy.destination):
        if buffer is not None:
            buffer.free()


@pytest.mark.parametrize("operation", OPERATIONS)
def test_arrays_are_worked_on_to_the_last_byte(backend, operation):
    unit = 16 if ARRAYS[operation].read > 1 else 8 if ARRAYS[operation].computes else 1
    for size in (1, 17, 4097, MiB + 5, 65 * MiB + 13):
        size = -(-size // unit) * unit
        for settings in SHAPES:
            copy = lend(backend, operation, size)
            group = backend.prepare_with([copy], settings, operation)
            timing = run(group, 3)
            group.close()
            if copy.destination is None:
                assert timing.checksums == (backend.checksum(copy.source, size),), settings
            else:
                found = backend.first_mismatch(copy.destination, size, made(operation), copy.seed)
                assert found is None, (size, settings)
            free(copy)


@pytest.mark.parametrize("operation", ["peak-read", "peak-write", "peak-copy", "peak-triad"])
def test_a_kernel_is_found_that_is_not_slower_than_the_default(tmp_path, monkeypatch, operation):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    backend = on_gpus(tuned=True)
    copy = lend(backend, operation, 256 * MiB)
    group = backend.prepare([copy], operation)
    seconds = [run(group, 20).seconds[0] for _ in range(5)]
    group.close()
    (device, *_) = backend.devices()
    assert f"sm {operation}" in load_tuned(device.model, tmp_path / "linkgauge" / "tuned")
    plain = backend.prepare_with([copy], ARRAY_DEFAULT, operation)
    others = [run(plain, 20).seconds[0] for _ in range(5)]
    plain.close()
    assert min(seconds) < 1.02 * min(others)
    free(copy)
    backend.close()
