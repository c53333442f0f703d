"""How the opencl backend copies, verifies, gates and times, on whatever OpenCL there is."""

from __future__ import annotations

import ctypes
import os
import time
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

# Before all that needs it: without it these tests are skipped, not broken.
pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")

from linkgauge import _native
from linkgauge.backends import opencl
from linkgauge.backends.opencl.group import OpenCLGroup
from linkgauge.backends.opencl.runtime import discover
from linkgauge.backends.protocol import Pattern
from linkgauge.model.errors import BackendError
from linkgauge.model.notation import parse_memory, parse_transfer
from opencl_kit import SEED, backend_of, buffers, cl, copy_of, corrupt, opencl_error, opened, run

SIZES = (1, 7, 8, 15, 16, 511, 512, 513, 4097, (1 << 20) + 3)


@pytest.fixture(params=["as it is", "as a GPU"])
def backend(request: pytest.FixtureRequest) -> Iterator[opencl.OpenCL]:
    with opened(as_gpu=request.param == "as a GPU") as backend:
        yield backend


@pytest.fixture
def plain() -> Iterator[opencl.OpenCL]:
    with opened() as backend:
        yield backend


ONE_WAY = (
    "host:0 -> opencl:0 by ce",
    "host:0/pageable -> opencl:0 by ce",
    "opencl:0 -> host:0 by ce",
    "opencl:0 -> host:0/pageable by ce",
    "opencl:0 -> opencl:0 by ce",
    "opencl:0 -> opencl:1 by opencl:0.ce",
    "opencl:0 -> opencl:1 by opencl:1.ce",
    "host:0 -> opencl:0 by sm",
    "opencl:0 -> host:0 by sm",
    "opencl:0 -> opencl:0 by sm",
    "opencl:0 -> opencl:1 by opencl:1.sm",
)


@pytest.mark.parametrize("text", ONE_WAY)
def test_copies_every_byte(backend: opencl.OpenCL, text: str) -> None:
    for size in SIZES:
        copy = copy_of(backend, parse_transfer(text), size)
        assert backend.first_mismatch(copy.destination, size, Pattern.WORDS, SEED) == 0
        timing = run(backend, [copy])
        for buffer in buffers(copy):
            assert backend.first_mismatch(buffer, size, Pattern.WORDS, SEED) is None, size
        assert timing.checksums == (None,)
        assert 0 < timing.seconds[0] <= timing.span * 1.000001
        assert backend.checksum(copy.source, size) == backend.checksum(copy.destination, size)


@pytest.mark.parametrize("ends", ["host:0 <-> opencl:0", "opencl:0 <-> opencl:1"])
def test_exchanges_odd_chunks_for_even_ones(backend: opencl.OpenCL, ends: str) -> None:
    for size in SIZES:
        copy = copy_of(backend, parse_transfer(f"{ends} by opencl:0.sm"), size)
        run(backend, [copy])
        for buffer in buffers(copy):
            assert backend.first_mismatch(buffer, size, Pattern.SPLIT, SEED) is None, size


@pytest.mark.parametrize("memory", ["opencl:0", "host:0"])
def test_pure_write_and_read(backend: opencl.OpenCL, memory: str) -> None:
    for size in SIZES:
        write = copy_of(backend, parse_transfer(f"null -> {memory} by opencl:0.sm"), size)
        run(backend, [write])
        assert backend.first_mismatch(write.destination, size, Pattern.CONSTANT, SEED) is None
        read = copy_of(backend, parse_transfer(f"{memory} -> null by opencl:0.sm"), size)
        known = (ctypes.c_uint8 * size)()
        cpus = [min(os.sched_getaffinity(0))]
        place = ctypes.addressof(known)
        _native.fill(place, size, SEED, _native.Pattern.WORDS, False, cpus)
        expected = _native.checksum(place, size, cpus)
        for loops in (1, 2):  # an even number of loops must not cancel out
            assert run(backend, [read], loops).checksums == (expected,)
        assert backend.checksum(read.source, size) == expected


def test_touches_nothing_beyond_the_size(backend: opencl.OpenCL) -> None:
    copy = copy_of(backend, parse_transfer("opencl:0 -> opencl:0 by sm"), 8192)
    small = msgspec.structs.replace(copy, size=4097)
    run(backend, [small])
    assert backend.first_mismatch(copy.destination, 8192, Pattern.WORDS, SEED) == 4097
    backend.fill(copy.source, 513, Pattern.WORDS, SEED, True)
    backend.fill(copy.source, 513, Pattern.SPLIT, SEED, False)
    assert backend.first_mismatch(copy.source, 513, Pattern.SPLIT, SEED) is None
    run(backend, [msgspec.structs.replace(copy, source=copy.destination, destination=copy.source)])
    assert backend.first_mismatch(copy.source, 4097, Pattern.WORDS, SEED) is None


CONCURRENT = (
    ("host:0 -> opencl:0 by ce", "opencl:0 -> host:0 by ce"),
    ("host:0 -> opencl:0 by ce", "host:0 -> opencl:1 by ce", "opencl:0 -> opencl:1 by ce"),
    ("host:0 -> opencl:0 by sm", "opencl:1 -> host:0/pageable by ce"),
    ("opencl:0 <-> opencl:1 by sm", "opencl:1 -> null by opencl:1.sm"),
)


@pytest.mark.parametrize("texts", CONCURRENT)
def test_runs_groups_again_and_again(backend: opencl.OpenCL, texts: tuple[str, ...]) -> None:
    size = 123_457
    copies = [copy_of(backend, parse_transfer(text), size, seed) for seed, text in enumerate(texts)]
    group = backend.prepare(copies)
    for loops in (1, 3, 2):
        group.arm(loops)
        group.open()
        timing = group.wait()
        assert len(timing.seconds) == len(texts)
        assert timing.span >= max(timing.seconds) * 0.999999
    for copy in copies:
        pattern = Pattern.SPLIT if copy.transfer.both_ways else Pattern.WORDS
        for buffer in buffers(copy):
            assert backend.first_mismatch(buffer, size, pattern, copy.seed) is None


def test_as_many_loops_as_it_says(plain: opencl.OpenCL) -> None:
    copies = [copy_of(plain, parse_transfer(text), 64) for text in CONCURRENT[0]]
    assert run(plain, copies, plain.prepare(copies).most_loops).span > 0


@pytest.mark.parametrize("memory", ["opencl:0", "host:0", "host:0/pageable"])
@pytest.mark.parametrize("offset", [0, 5, 511, 4096, 70_000, 70_002])
def test_finds_one_wrong_byte(backend: opencl.OpenCL, memory: str, offset: int) -> None:
    size = 70_003
    engine = parse_transfer("host:0 -> opencl:0 by ce").engine
    buffer = backend.allocate(parse_memory(memory), size, engine)
    for pattern in Pattern:
        backend.fill(buffer, size, pattern, SEED, False)
        assert backend.first_mismatch(buffer, size, pattern, SEED) is None
        corrupt(buffer, offset)
        assert backend.first_mismatch(buffer, size, pattern, SEED) == offset
        corrupt(buffer, size - 1)  # a later one does not hide it
        expected = None if offset == size - 1 else offset
        assert backend.first_mismatch(buffer, size, pattern, SEED) == expected


def test_compares_in_pieces(plain: opencl.OpenCL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("linkgauge.backends.opencl.device_memory._PIECE", 24)
    copy = copy_of(plain, parse_transfer("opencl:0 -> opencl:0 by ce"), 1003)
    assert plain.first_mismatch(copy.source, 1003, Pattern.WORDS, SEED) is None
    corrupt(copy.source, 1001)
    assert plain.first_mismatch(copy.source, 1003, Pattern.WORDS, SEED) == 1001


@pytest.mark.parametrize("text", ["host:0 -> opencl:0 by ce", "opencl:0 -> opencl:0 by sm"])
def test_nothing_moves_before_the_gate_opens(plain: opencl.OpenCL, text: str) -> None:
    copy = copy_of(plain, parse_transfer(text), 4096)
    poison = plain.checksum(copy.destination, 4096)
    group = plain.prepare([copy])
    with pytest.raises(BackendError, match="not armed"):
        group.open()
    group.arm(3)
    time.sleep(0.05)
    assert plain.checksum(copy.destination, 4096) == poison
    with pytest.raises(BackendError, match="armed already"):
        group.arm(1)
    with pytest.raises(BackendError, match="not open"):
        group.wait()
    group.open()
    group.wait()
    assert plain.first_mismatch(copy.destination, 4096, Pattern.WORDS, SEED) is None
    with pytest.raises(BackendError, match="not open"):
        group.wait()


def test_closes_twice_and_while_armed(plain: opencl.OpenCL) -> None:
    copies = [copy_of(plain, parse_transfer(text), 4096) for text in CONCURRENT[0]]
    group = plain.prepare(copies)
    group.arm(2)
    group.close()
    group.close()
    plain.prepare(copies).arm(2)
    plain.close()  # with a gate still closed
    plain.close()
    for copy in copies:
        for buffer in buffers(copy):
            buffer.free()


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_enqueue_that_fails_leaves_no_queue_hanging(plain: opencl.OpenCL, at: int) -> None:
    copies = [copy_of(plain, parse_transfer(text), 4096) for text in CONCURRENT[0]]
    group = plain.prepare(copies)
    assert isinstance(group, OpenCLGroup)
    lane = group.lanes[1]
    (enqueue,), calls = lane._commands, iter(range(9))

    def failing(**options: Any) -> Any:
        if next(calls) == at:
            raise opencl_error("OUT_OF_RESOURCES", "clEnqueueReadBuffer")
        return enqueue(**options)

    lane._commands = [failing]
    with pytest.raises(BackendError, match="clEnqueueReadBuffer: OUT_OF_RESOURCES"):
        group.arm(4)
    lane._commands = [enqueue]
    group.arm(2)
    group.open()
    group.wait()
    for copy in copies:
        assert plain.first_mismatch(copy.destination, 4096, Pattern.WORDS, SEED) is None


def test_a_runtime_without_a_compiler_still_copies(plain: opencl.OpenCL) -> None:
    for unit in plain._units:
        unit.__dict__["no_kernels"] = "opencl:0 cannot compile kernels: why"
    assert plain.refusal(parse_transfer("opencl:0 -> opencl:0 by sm")) == plain._units[0].no_kernels
    for size in (7, 4097):
        copy = copy_of(plain, parse_transfer("host:0 -> opencl:0 by ce"), size)
        assert plain.first_mismatch(copy.destination, size, Pattern.WORDS, SEED) == 0
        run(plain, [copy])
        assert plain.first_mismatch(copy.destination, size, Pattern.WORDS, SEED) is None
        assert plain.checksum(copy.destination, size) == plain.checksum(copy.source, size)
        corrupt(copy.destination, size - 1)
        assert plain.first_mismatch(copy.destination, size, Pattern.WORDS, SEED) == size - 1


def test_says_why_a_program_does_not_build(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: Any, **__: Any) -> None:
        raise opencl_error(
            "BUILD_PROGRAM_FAILURE",
            "clBuildProgram",
            "log:\n error: unknown target CPU 'generic'\n",
        )

    monkeypatch.setattr(cl.Program, "build", build)
    backend = backend_of(list(discover()))
    reason = backend.refusal(parse_transfer("opencl:0 -> opencl:0 by sm"))
    assert reason is not None
    assert "error: unknown target CPU 'generic' (the runtime is older than this CPU" in reason
    backend.close()


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("7f00-7f01 r-xp 00000000 08:01 42     /usr/lib/libOpenCL.so.1", "/usr/lib/libOpenCL.so.1"),
        ("7f00-7f01 r-xp 0 08:01 42  /home/me/my project/libOpenCL-1a2b.so.1",
         "/home/me/my project/libOpenCL-1a2b.so.1"),
        ("7f00-7f01 r-xp 0 08:01 42  /opt/libOpenCL.so.1 (deleted)", "/opt/libOpenCL.so.1"),
        ("7f00-7f01 r-xp 0 08:01 42  /usr/lib/libopenblas.so", None),
    ],
)  # fmt: skip
def test_the_library_that_is_loaded_is_found_whatever_its_path(line, path):
    from linkgauge.backends.opencl.library import _LIBRARY

    found = _LIBRARY.search(f"00-01 r--p 0 00:00 0 [heap]\n{line}\n")
    assert (found and found[1]) == path
