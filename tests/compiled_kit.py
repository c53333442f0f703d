"""C++ that stands in for what this machine lacks, compiled once: build/emulated keeps what the
compiler makes of a text, for all processes and for the next run."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KERNELS = files("linkgauge.kernels")
KEPT = HERE.parent / "build" / "emulated"
FLAGS = ("-std=c++20", "-O1", "-w", "-fPIC")
HEADERS = {"emulated_cuda.hpp": HERE / "emulated_cuda.hpp", "content.cuh": KERNELS / "content.cuh"}
"""What a text may include, beside the standard library."""
PRECOMPILED = "emulated_cuda.hpp"
CUBLAS = (HERE / "fake_cublas.cpp").read_text()


def library_of(text):
    """The shared library that this C++ makes. Who loads it twice has its variables once. Skips
    without a compiler of C++20."""
    folder = _headers()
    return _kept(_digest(text, folder.name) + ".so", lambda made: _compile(text, folder, made))


def own_library_of(text, folder):
    """A copy of it, whose variables all have that load it from this folder."""
    kept = library_of(text)
    own = folder / kept.name
    return own if own.exists() else Path(shutil.copy(kept, own))


def c_library_of(source):
    """The shared library of a file in C, which needs a compiler of C alone."""
    compiler = shutil.which("cc") or pytest.skip("no C compiler")

    def make(made):
        command = [compiler, "-O2", "-shared", "-fPIC", "-pthread", str(source), "-o", str(made)]
        subprocess.run(command, check=True)

    return _kept(_digest(source.read_text()) + ".so", make)


def module_of(source):
    """A file of Python that is of no package."""
    spec = spec_from_file_location(source.stem, source)
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def _headers():
    """The folder of headers as they are now, one of them precompiled."""
    texts = {name: source.read_text() for name, source in HEADERS.items()}
    version = subprocess.run([_compiler(), "--version"], capture_output=True, check=True).stdout

    def make(folder):
        folder.mkdir()
        for name, text in texts.items():
            (folder / name).write_text(text)
        header = folder / PRECOMPILED
        _run("-x", "c++-header", str(header), "-o", f"{header}.gch")

    return _kept(_digest(version.decode(), *FLAGS, *texts.values()), make)


def _compile(text, folder, made):
    source = made.with_suffix(".cpp")
    source.write_text(text)
    _run("-shared", f"-I{folder}", str(source), "-o", str(made))
    source.unlink()


def _compiler():
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("g++ is not installed: it compiles kernels for the CPU")
    return compiler


def _run(*arguments):
    command = [_compiler(), *FLAGS, *arguments]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr


def _digest(*texts):
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:24]


def _kept(name, make):
    """The file or folder of this name, which one process makes while others wait for it."""
    KEPT.mkdir(parents=True, exist_ok=True)
    kept = KEPT / name
    if kept.exists():
        return kept
    with _alone(KEPT / f"{name}.lock"):
        if not kept.exists():
            made = KEPT / f"{os.getpid()}-{name}"
            make(made)
            made.rename(kept)
    return kept


@contextmanager
def _alone(path):
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
