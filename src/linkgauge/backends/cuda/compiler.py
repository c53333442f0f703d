"""How kernels are compiled with NVRTC when they are first used, and cached on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from linkgauge.backends.cache import cache_folder, write_whole
from linkgauge.model.errors import BackendError, Unsupported, pip_install

_DIGEST = hashlib.sha256().digest_size
_KERNELS = files("linkgauge.kernels")


class Compiler:
    """Compiles kernels, and keeps their code in `folder`: a file for each source, architecture,
    NVRTC version and set of options. A file begins with its code's SHA-256, to detect damage."""

    def __init__(self, folder: Path | None = None, nvrtc: Any = None) -> None:
        self._folder = folder or cache_folder() / "kernels"
        self._nvrtc = nvrtc or _open_nvrtc()
        self._version = ".".join(map(str, self._call("nvrtcVersion")))
        self._architectures = sorted(self._call("nvrtcGetSupportedArchs"))

    def compile(self, name: str, capability: int, defines: Sequence[str] = ()) -> bytes:
        """Returns machine code for `capability` (90 for 9.0), or PTX if this NVRTC is too old.
        Raises BackendError with the compiler's log, or Unsupported if the device is too old."""
        source = (_KERNELS / f"{name}.cu").read_bytes()
        options = ["--std=c++17", self._target(capability), *(f"-D{define}" for define in defines)]
        path = self._folder / f"{name}-{self._key(source, options)}.bin"
        binary = _read(path)
        if binary is None:
            binary = self._compile(name, source, options)
            _write(path, binary)
        return binary

    def _target(self, capability: int) -> str:
        if capability in self._architectures:
            return f"--gpu-architecture=sm_{capability}"
        older = [known for known in self._architectures if known < capability]
        if not older:
            raise Unsupported(
                f"NVRTC {self._version} dropped compute capability "
                f"{capability // 10}.{capability % 10}: {pip_install('linkgauge[cuda12]')}"
            )
        return f"--gpu-architecture=compute_{older[-1]}"

    def _key(self, source: bytes, options: Sequence[str]) -> str:
        parts = [source, self._version.encode(), *(option.encode() for option in options)]
        parts += _headers().values()
        return hashlib.sha256(b"\0".join(parts)).hexdigest()[:32]

    def _compile(self, name: str, source: bytes, options: Sequence[str]) -> bytes:
        headers = _headers()
        included = (len(headers), [*headers.values()], [*headers])
        program = self._call("nvrtcCreateProgram", source, f"{name}.cu".encode(), *included)
        try:
            arguments = [option.encode() for option in options]
            try:
                self._call("nvrtcCompileProgram", program, len(arguments), arguments)
            except BackendError as error:
                raise BackendError(f"compile {name}.cu", self._log(program)) from error
            kind = "PTX" if "compute_" in options[1] else "CUBIN"
            binary = b" " * int(self._call(f"nvrtcGet{kind}Size", program))
            self._call(f"nvrtcGet{kind}", program, binary)
            return binary
        finally:
            self._call("nvrtcDestroyProgram", program)

    def _log(self, program: Any) -> str:
        log = b" " * int(self._call("nvrtcGetProgramLogSize", program))
        self._call("nvrtcGetProgramLog", program, log)
        return log.decode(errors="replace").strip("\0 \n")

    def _call(self, name: str, *arguments: Any) -> Any:
        status, *values = getattr(self._nvrtc, name)(*arguments)
        if int(status) != 0:
            raise BackendError(name, str(getattr(status, "name", status)))
        return values[0] if len(values) == 1 else values


def _headers() -> dict[bytes, bytes]:
    found = (file for file in _KERNELS.iterdir() if file.name.endswith(".cuh"))
    return {file.name.encode(): file.read_bytes() for file in found}


def _open_nvrtc() -> Any:
    try:
        nvrtc = import_module("cuda.bindings.nvrtc")
        nvrtc.nvrtcVersion()
    except (ImportError, RuntimeError) as error:
        first = str(error).partition("\n")[0]
        raise Unsupported(
            f"NVRTC is missing ({first}): {pip_install('linkgauge[cuda13]')}, or cuda12 for "
            "drivers of CUDA 12"
        ) from error
    return nvrtc


def _read(path: Path) -> bytes | None:
    with suppress(OSError):
        content = path.read_bytes()
        if hashlib.sha256(content[_DIGEST:]).digest() == content[:_DIGEST]:
            return content[_DIGEST:]
    return None


def _write(path: Path, binary: bytes) -> None:
    with suppress(OSError):
        write_whole(path, hashlib.sha256(binary).digest() + binary)
