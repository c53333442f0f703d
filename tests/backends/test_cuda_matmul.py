"""Products on a GPU that is this CPU: what is drawn, asked of cuBLAS, timed and found wrong."""

import ctypes
import math
import struct

import pytest

from compiled_kit import CUBLAS, own_library_of
from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.cuda import cublas
from linkgauge.backends.protocol import Copy, run
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.operation import PRODUCTS, operations_of, size_of

ORDER = 100
"""No multiple of what one sum checks, nor of what one thread draws."""
WORK = parse_transfer("null -> null by cuda:0.sm")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture(scope="module")
def library(folder):
    return str(own_library_of(CUBLAS, folder))


@pytest.fixture
def blas(library, monkeypatch):
    """The fake library, and what it was asked."""
    monkeypatch.setattr(cublas, "_paths", lambda majors: iter([library]))
    fake = ctypes.CDLL(library)
    fake.lines.restype = ctypes.c_char_p
    begin = len(fake.lines())
    fake.asked = lambda: fake.lines()[begin:].decode().splitlines()
    return fake


@pytest.fixture(scope="module")
def device():
    return emulated()


def product(device, operation, order=ORDER, seed=3):
    backend, _ = device
    return backend.prepare([Copy(WORK, None, None, size_of(order), seed)], operation)


def poke(address, operation, value):
    packed = struct.pack("<e" if operation == "matmul-fp16" else "<f", value)
    ctypes.memmove(address, packed[-PRODUCTS[operation].bytes :], PRODUCTS[operation].bytes)


def test_one_product_warms_up_behind_a_gate_and_samples_wait_for_the_power_cap(device, blas):
    group = product(device, "matmul-fp32", order=8)
    policy = group.policy
    assert (policy.seconds, policy.loops, policy.batches, policy.level) == (0.012, 1, 4, 17)
    assert policy.steps == operations_of(8)
    before = blas.asked().count("gemm 8 8 8 types 0 0 0 compute 68 algorithm -1")
    timing = run(group, loops=8, batches=4)
    asked = blas.asked()
    assert asked.count("gemm 8 8 8 types 0 0 0 compute 68 algorithm -1") - before == 33
    assert len(timing.progress[0]) == 5
    # Each time a stream is set, the workspace has to be set anew.
    streams = [at for at, line in enumerate(asked) if line.startswith("stream")]
    assert {asked[at + 1] for at in streams} == {f"workspace {32 << 20}"}
    group.close()


@pytest.mark.parametrize("operation", PRODUCTS)
@pytest.mark.parametrize(("row", "column"), [(0, 0), (99, 99)])
@pytest.mark.parametrize("wrong", [30.0, math.nan, math.inf])
def test_one_wrong_element_is_found_where_it_is(device, blas, operation, row, column, wrong):
    group = product(device, operation)
    run(group)
    at = group.product.product + (row * ORDER + column) * PRODUCTS[operation].bytes
    poke(at, operation, wrong)
    first = column // 32 * 32
    assert f"in row {row}, columns {first} to {min(first + 31, 99)}:" in group.mismatch()
    group.close()


def test_an_old_product_does_not_pass_for_a_new_one(device, blas):
    group = product(device, "matmul-fp32")
    run(group)
    group.product.spoil()
    assert "sum is nan, expected" in group.mismatch()
    group.close()


def test_numbers_are_drawn_by_philox_and_box_muller(device, blas):
    """Of counter and key 0, by the known answers of Random123 (kat_vectors, philox4x32 10)."""
    group = product(device, "matmul-fp32", seed=0)
    words = (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)
    expected = []
    for one, other in (words[:2], words[2:]):
        radius = math.sqrt(-2 * math.log(((one >> 8) + 0.5) / (1 << 24)))
        angle = 2 * math.pi * (other >> 8) / (1 << 24)
        expected += [radius * math.cos(angle), radius * math.sin(angle)]
    drawn = struct.unpack("<4f", ctypes.string_at(group.product.a, 16))
    assert drawn == pytest.approx(expected, rel=1e-5)
    group.close()


@pytest.mark.parametrize("left", range(4))
def test_without_memory_nothing_is_left_behind(blas, left, monkeypatch):
    backend, bindings = emulated()
    allocate = bindings.cuMemAlloc

    def scarce(size):
        if len(bindings.held) >= left:
            return (Status.CUDA_ERROR_OUT_OF_MEMORY,)
        return allocate(size)

    monkeypatch.setattr(bindings, "cuMemAlloc", scarce)
    with pytest.raises(AllocationError, match="cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"):
        product((backend, bindings), "matmul-fp32")
    backend.close()
    assert bindings.held == {}


@pytest.mark.parametrize(
    ("status", "error", "says"),
    [
        (13, BackendError, "cublasGemmEx: CUBLAS_STATUS_EXECUTION_FAILED"),
        (3, AllocationError, "cublasGemmEx: CUBLAS_STATUS_ALLOC_FAILED"),
        (15, Unsupported, "cublasGemmEx: CUBLAS_STATUS_NOT_SUPPORTED"),
    ],
)
def test_errors_name_the_call_and_the_status(device, blas, status, error, says):
    group = product(device, "matmul-fp32")
    handle = group.product._blas
    handle.bind(0)
    blas.fail_next(status)
    with pytest.raises(error, match=says):
        handle.multiply(4, group.product.a, group.product.b, group.product.product, 0, 68)
    group.close()


@pytest.mark.parametrize(
    ("capability", "operation", "says"),
    [(7, "matmul-bf16", "BF16 needs compute capability 8.0"),
     (7, "matmul-tf32", "TF32 needs compute capability 8.0"),
     (5, "matmul-fp16", None), (7, "matmul-fp32", None)],
)  # fmt: skip
def test_types_that_a_device_does_not_have_are_unsupported(blas, capability, operation, says):
    backend, bindings = emulated()
    backend._devices[0].capability = 10 * capability + 5
    if says is None:
        product((backend, bindings), operation).close()
    else:
        with pytest.raises(Unsupported, match=says):
            product((backend, bindings), operation)


def test_a_library_is_named_in_the_result(device, blas, library):
    backend, _ = device
    product(device, "matmul-fp32").close()
    assert backend.remarks(WORK) == (f"products by cuBLAS 13.1.7 ({library})",)
    assert backend.refusal(WORK) is None


class TestLibrary:
    @pytest.mark.parametrize(
        ("version", "extra"), [(13000, "cublas13"), (14010, "cublas13"), (12080, "cublas12")]
    )
    def test_without_any_it_says_what_to_install(self, monkeypatch, version, extra):
        backend, bindings = emulated()
        bindings.answers["cuDriverGetVersion"] = [version]
        monkeypatch.setattr(cublas, "_paths", lambda majors: iter(()))
        with pytest.raises(Unsupported, match=rf"pip install 'linkgauge\[{extra}\]'"):
            product((backend, bindings), "matmul-fp32")

    def test_so_is_the_toolkit_of_the_environment(self, monkeypatch, tmp_path):
        library = tmp_path / "lib64" / "libcublas.so.12"
        library.parent.mkdir()
        library.write_text("")
        monkeypatch.setenv("CUDA_HOME", str(tmp_path))
        assert str(library) in list(cublas._paths([13, 12]))
