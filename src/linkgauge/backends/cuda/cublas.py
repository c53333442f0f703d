"""How cuBLAS is found in the CUDA toolkit, in torch or in its own wheel, and called by ctypes."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from ctypes import POINTER, byref, c_char_p, c_float, c_int, c_size_t, c_void_p
from importlib import import_module
from pathlib import Path
from typing import Any

from linkgauge.model.errors import AllocationError, BackendError, Unsupported, pip_install

from .device import CudaDevice
from .driver import Driver

MAJORS = (13, 12, 11)
"""The major versions of cuBLAS that work. A driver cannot run versions newer than itself."""
WORKSPACE = 32 << 20
"""The bytes of working memory on the device, as NVIDIA recommends for Hopper and later (cuBLAS
manual, cublasSetWorkspace). torch uses the same value there."""
_NAMES = "libcublas.so.{major}"
_FOLDERS = (
    "nvidia/cu{major}/lib",
    "nvidia/cublas/lib",
)
"""The folders of cuBLAS in site-packages, for CUDA 13 and for earlier versions."""
_TOOLKITS = ("/usr/local/cuda-{major}/lib64", "/usr/local/cuda/lib64")

# cublas_api.h and library_types.h.
_SUCCESS, _ALLOC_FAILED, _ARCH_MISMATCH, _NOT_SUPPORTED = 0, 3, 8, 15
_NO_TRANSPOSE = 0
_DEFAULT_ALGORITHM = -1
R_32F, R_16F, R_16BF = 0, 2, 14
COMPUTE_32F, COMPUTE_32F_FAST_TF32 = 68, 77

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cublasCreate_v2": (POINTER(c_void_p),),
    "cublasDestroy_v2": (c_void_p,),
    "cublasSetStream_v2": (c_void_p, c_void_p),
    "cublasSetWorkspace_v2": (c_void_p, c_void_p, c_size_t),
    "cublasGetProperty": (c_int, POINTER(c_int)),
    "cublasGemmEx": (
        c_void_p, c_int, c_int, c_int, c_int, c_int,
        c_void_p, c_void_p, c_int, c_int, c_void_p, c_int, c_int,
        c_void_p, c_void_p, c_int, c_int, c_int, c_int,
    ),
}  # fmt: skip


class CuBlas:
    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)
        for name, arguments in _SIGNATURES.items():
            getattr(self._library, name).argtypes = arguments
        self.version = ".".join(str(self._property(kind)) for kind in range(3))

    def _property(self, kind: int) -> int:
        value = c_int()
        self.call("cublasGetProperty", kind, byref(value))
        return value.value

    def call(self, name: str, *arguments: Any, about: str = "") -> None:
        """Calls a function. Raises Unsupported, AllocationError or BackendError if it fails."""
        status = getattr(self._library, name)(*arguments)
        if status == _SUCCESS:
            return
        said = " ".join(filter(None, (self._name_of(status), about and f"({about})")))
        if status in (_ARCH_MISMATCH, _NOT_SUPPORTED):
            raise Unsupported(f"{name}: {said}")
        raise (AllocationError if status == _ALLOC_FAILED else BackendError)(name, said)

    def _name_of(self, status: int) -> str:
        with suppress(AttributeError):  # cuBLAS 11.4 has the function
            name = self._library.cublasGetStatusName
            name.restype = c_char_p
            return str(name(status).decode())
        return f"status {status}"


class BlasHandle:
    def __init__(self, library: CuBlas, device: CudaDevice) -> None:
        self._library = library
        self._device = device
        self._handle = c_void_p()
        self._one, self._zero = c_float(1), c_float(0)
        device.enter()
        about = f"{library.path}, driver of CUDA {device.driver.version()}"
        library.call("cublasCreate_v2", byref(self._handle), about=about)
        try:
            self._workspace = int(device.driver.call("cuMemAlloc", WORKSPACE))
        except BackendError:
            library.call("cublasDestroy_v2", self._handle)
            raise

    def bind(self, stream: Any) -> None:
        """Makes cuBLAS use a stream. The context of the stream's device must be current."""
        self._library.call("cublasSetStream_v2", self._handle, int(stream))
        # Setting a stream takes the workspace away.
        self._library.call("cublasSetWorkspace_v2", self._handle, self._workspace, WORKSPACE)

    def multiply(self, order: int, a: int, b: int, product: int, number: int, compute: int) -> None:
        """Computes A · B for matrices of `order` rows at `a` and `b`, as (Bᵀ · Aᵀ)ᵀ: cuBLAS takes
        row-major matrices as transposes. `number` and `compute` are its codes of number types."""
        shape = (_NO_TRANSPOSE, _NO_TRANSPOSE, order, order, order)
        self._library.call(
            "cublasGemmEx", self._handle, *shape,
            byref(self._one), b, number, order, a, number, order,
            byref(self._zero), product, number, order, compute, _DEFAULT_ALGORITHM,
        )  # fmt: skip

    def close(self) -> None:
        with suppress(BackendError, Unsupported):
            self._device.enter()
            self._library.call("cublasDestroy_v2", self._handle)
            self._device.driver.call("cuMemFree", self._workspace)


def open_cublas(driver: Driver) -> CuBlas:
    """Returns the first cuBLAS that loads. If none does, raises Unsupported with a remedy."""
    newest = int(driver.version().partition(".")[0])
    majors = [major for major in MAJORS if major <= newest]
    failures = []
    for path in _paths(majors):
        try:
            return CuBlas(path)
        except (OSError, AttributeError) as error:
            failures.append(str(error))
    why = f": {failures[-1]}" if failures else ""
    own = pip_install(f"linkgauge[cublas{13 if newest >= MAJORS[0] else 12}]")
    remedy = f"{own} (about 0.5 GB), or use torch's or the CUDA toolkit's"
    raise Unsupported(f"no cuBLAS for CUDA {driver.version()}{why}: {remedy}")


def _paths(majors: list[int]) -> Iterator[str]:
    names = [_NAMES.format(major=major) for major in majors]
    for name in names:
        with suppress(OSError):
            ctypes.CDLL(name, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            yield name
    with suppress(ImportError, RuntimeError, OSError):
        found = import_module("cuda.pathfinder").load_nvidia_dynamic_lib("cublas").abs_path
        if Path(found).name in names:
            yield found
    for name in names:  # the system's linker knows where
        with suppress(OSError):
            ctypes.CDLL(name)
            yield name
    home = os.environ.get("CUDA_HOME") or os.environ.get("CUDA_PATH")
    for major, name in zip(majors, names, strict=True):
        sites = (Path(site, folder) for site in sys.path for folder in _FOLDERS)
        toolkits = (Path(home, "lib64"),) if home else ()
        for folder in (*sites, *toolkits, *map(Path, _TOOLKITS)):
            library = Path(str(folder).format(major=major), name)
            if library.is_file():
                _load_what_it_needs(library, major)
                yield str(library)


def _load_what_it_needs(library: Path, major: int) -> None:
    # cuBLAS needs cuBLASLt, which the linker may not find in the same folder.
    with suppress(OSError):
        ctypes.CDLL(str(library.with_name(f"libcublasLt.so.{major}")), mode=ctypes.RTLD_GLOBAL)
