"""How the opencl backend copies, verifies, gates and times, on whatever OpenCL there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

# Before all that needs it: without it these tests are skipped, not broken.
pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")

from linkgauge.backends import opencl
from linkgauge.backends.opencl.group import OpenCLGroup
from linkgauge.backends.opencl.runtime import discover
from linkgauge.backends.protocol import Pattern
from linkgauge.model.errors import BackendError
from linkgauge.model.notation import parse_transfer
from opencl_kit import SEED, backend_of, cl, copy_of, corrupt, opencl_error, opened, run


@pytest.fixture(params=["as it is", "as a GPU"])
def backend(request: pytest.FixtureRequest) -> Iterator[opencl.OpenCL]:
    with opened(as_gpu=request.param == "as a GPU") as backend:
        yield backend


@pytest.fixture
def plain() -> Iterator[opencl.OpenCL]:
    with opened() as backend:
        yield backend


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
