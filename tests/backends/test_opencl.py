"""How the opencl backend copies, chases, allocates, verifies and fails, on any OpenCL."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import msgspec
import numpy as np
import pytest

# Before all that needs it: without it these tests are skipped, not broken.
pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")

from kinds_kit import CHECKS, found_by_the_doctor, outcome
from linkgauge.backends import opencl, protocol
from linkgauge.backends.opencl.runtime import OpenCLDevice, calling, discover
from linkgauge.backends.protocol import Copy, Pattern
from linkgauge.machine.host import read_host
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import EngineSettings, Pieces
from linkgauge.model.transfer import Report
from opencl_kit import SEED, backend_of, cl, copy_of, corrupt, opencl_error, opened, run

OWN = "opencl:0 -> null by sm"
CHASES = ("host:0 -> null by opencl:0.sm", OWN, "opencl:1 -> null by opencl:0.sm")
SIZE = 64 << 10


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


BOTH_WAYS = ("host:0 -> opencl:0 by ce", "opencl:0 -> host:0 by ce")


@pytest.mark.parametrize("at", [0, 1, 3])
def test_an_enqueue_that_fails_leaves_no_queue_hanging(plain: opencl.OpenCL, at: int) -> None:
    copies = [copy_of(plain, parse_transfer(text), 4096) for text in BOTH_WAYS]
    group = plain.prepare(copies)
    lane = group.lanes[1]
    (enqueue,), calls = lane.commands, iter(range(9))

    def failing(**options: Any) -> Any:
        if next(calls) == at:
            raise opencl_error("OUT_OF_RESOURCES", "clEnqueueReadBuffer")
        return enqueue(**options)

    lane.commands = [failing]
    with pytest.raises(BackendError, match="clEnqueueReadBuffer: OUT_OF_RESOURCES"):
        group.arm(4)
    lane.commands = [enqueue]
    protocol.run(group)
    for copy in copies:
        assert plain.first_mismatch(copy.destination, 4096, Pattern.WORDS, SEED) is None


def test_a_runtime_without_a_compiler_still_copies(plain: opencl.OpenCL) -> None:
    for unit in plain._units.values():
        unit.__dict__["no_kernels"] = "opencl:0 cannot compile kernels: why"
    assert plain.refusal(parse_transfer("opencl:0 -> opencl:0 by sm")) == unit.no_kernels
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
    ("name", "allocating", "kind"),
    [
        ("MEM_OBJECT_ALLOCATION_FAILURE", None, AllocationError),
        ("OUT_OF_HOST_MEMORY", None, AllocationError), ("OUT_OF_RESOURCES", 5, AllocationError),
        ("OUT_OF_RESOURCES", None, BackendError), ("INVALID_KERNEL_ARGS", 5, BackendError),
    ],
)  # fmt: skip
def test_errors_are_ours_and_name_the_call(
    name: str, allocating: int | None, kind: type[BackendError]
) -> None:
    with pytest.raises(BackendError, match=f"^clThis: {name}") as caught, calling("?", allocating):
        raise opencl_error(name, "clThis")
    assert type(caught.value) is kind
    with pytest.raises(BackendError, match=f"^clThat: {name}"), calling("clThat", allocating):
        raise opencl_error(name, "")


def test_a_buffer_serves_the_engine_it_was_allocated_for(plain: opencl.OpenCL) -> None:
    ce = copy_of(plain, parse_transfer("host:0 -> opencl:0 by ce"), 64)
    sm = msgspec.structs.replace(ce, transfer=parse_transfer("host:0 -> opencl:0 by sm"))
    with pytest.raises(BackendError, match="host:0 was allocated for ce, not for sm"):
        plain.prepare([sm])
    with pytest.raises(BackendError, match="not a buffer of the opencl backend"):
        plain.fill(SimpleNamespace(), 64, Pattern.WORDS, 0, False)


def test_unified_memory_is_used_in_place() -> None:
    units = [
        OpenCLDevice(
            unit.handle, msgspec.structs.replace(unit.facts, fine_grained=False), unit.domain
        )
        for unit in discover()
    ]
    backend = backend_of(units)
    transfer = parse_transfer("host:0 -> opencl:0 by sm")
    copy = copy_of(backend, transfer, 4097)
    run(backend, [copy])
    assert backend.first_mismatch(copy.destination, 4097, Pattern.WORDS, SEED) is None
    with pytest.raises(BackendError, match="allocated for sm, not for ce"):
        backend.prepare(
            [msgspec.structs.replace(copy, transfer=parse_transfer("host:0 -> opencl:0 by ce"))]
        )
    backend.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("MEM_OBJECT_ALLOCATION_FAILURE", "memory"), ("OUT_OF_HOST_MEMORY", "memory"),
        ("DEVICE_NOT_AVAILABLE", "lost"), ("INVALID_COMMAND_QUEUE", "call"),
    ],
)  # fmt: skip
def test_what_a_command_ended_with_is_followed_to_the_doctor(
    plain: opencl.OpenCL, monkeypatch: pytest.MonkeyPatch, status: str, kind: str
) -> None:
    code = int(getattr(cl.status_code, status))
    monkeypatch.setattr(cl.Event, "command_execution_status", property(lambda event: code))
    cell = outcome(plain, "opencl:0 -> opencl:0 by ce")
    assert (cell.status, cell.kind) == ("error", kind)
    assert f"clFinish: a copy ended with {status}" in str(cell.reason)
    assert found_by_the_doctor(cell) == CHECKS[kind]


@pytest.fixture(scope="module")
def cutting() -> Iterator[opencl.OpenCL]:
    opened = opencl.create(EngineSettings(pieces=Pieces(4096, 3)), read_host())
    yield opened
    opened.close()


class TestPieces:
    """Copies cut into small pieces: every byte arrives, and the queues are not overfilled."""

    PATHS = ("host:0/staging -> opencl:0", "opencl:0 -> host:0/staging", "opencl:0 -> opencl:0")

    @pytest.mark.parametrize("path", PATHS)
    @pytest.mark.parametrize("engine", ["ce", "sm"])
    @pytest.mark.parametrize("size", [1, 17, 4097, 100_003])
    def test_every_byte_of_every_piece_arrives(
        self, cutting: opencl.OpenCL, path: str, engine: str, size: int
    ) -> None:
        transfer = parse_transfer(f"{path} by opencl:0.{engine}")
        copy = copy_of(cutting, transfer, size)
        assert run(cutting, [copy], 3).span > 0
        assert cutting.first_mismatch(copy.destination, size, Pattern.WORDS, SEED) is None
        said = [text for text in cutting.remarks(transfer) if "pieces" in str(text)]
        assert len(said) == 1

    def test_more_pieces_than_a_queue_holds_are_refused(self, cutting: opencl.OpenCL) -> None:
        transfer = parse_transfer(f"{self.PATHS[0]} by opencl:0.ce")
        group = cutting.prepare([copy_of(cutting, transfer, 501 * 4096)])
        assert group.most_loops == 1
        protocol.run(group, 1)
        with pytest.raises(Unsupported, match="no more than 500 pieces a buffer"):
            group.arm(2)
        group.close()


# Chases: a ring over every line, proved, followed, and the end compared.


def line_of(backend: opencl.OpenCL) -> int:
    return next(iter(backend._units.values())).cache_line


def prepared(backend: opencl.OpenCL, text: str = OWN, size: int = SIZE) -> tuple[Any, Any]:
    copy = copy_of(backend, parse_transfer(text), size)
    group = backend.prepare([copy], "chase")
    return copy, group


def content(buffer: Any) -> Any:
    """The buffer's bytes."""
    found = np.zeros(buffer.size, dtype=np.uint8)
    if buffer.memory.is_host:
        with buffer.at() as address:
            ctypes.memmove(found.ctypes.data, address, buffer.size)
    else:
        cl.enqueue_copy(buffer.unit.queue, found, buffer.for_kernel())
    return found


def store(buffer: Any, at: int, offset: int) -> None:
    """Makes the line at `at` lead to `offset`."""
    word = np.array([offset], dtype=np.uint64)
    cl.enqueue_copy(buffer.unit.queue, buffer.for_kernel(), word, dst_offset=at)


@pytest.mark.parametrize("text", CHASES)
@pytest.mark.parametrize("lines", [1, 2, 3, 64, 65, 5000])
def test_a_ring_leads_through_every_line_once_and_back(
    backend: opencl.OpenCL, text: str, lines: int
) -> None:
    stride = line_of(backend)
    copy, group = prepared(backend, text, lines * stride + 7)
    words = content(copy.source)[: lines * stride].view(np.uint64)
    at, met = 0, set()
    for _ in range(lines):
        met.add(at)
        at = int(words[at // 8])
    assert at == 0
    assert met == {line * stride for line in range(lines)}
    protocol.run(group)
    assert group.mismatch() is None


BETWEEN = 24
BROKEN = {"back": (0, 2), "to itself": (None, 0), "out": (1 << 40, 0), "between": (BETWEEN, 0)}
"""Where the second line leads, and how long a ring is found."""


@pytest.mark.parametrize("leads", BROKEN)
def test_what_is_not_one_ring_over_all_lines_is_an_error(
    plain: opencl.OpenCL, monkeypatch: pytest.MonkeyPatch, leads: str
) -> None:
    run = OpenCLDevice.run
    copy = copy_of(plain, parse_transfer(OWN), SIZE)
    to, found = BROKEN[leads]

    def laid_wrong(unit: OpenCLDevice, name: str, *arguments: Any, **how: Any) -> None:
        run(unit, name, *arguments, **how)
        if name == "lay_ring":
            second = int(content(copy.source).view(np.uint64)[0])
            store(copy.source, second, second if to is None else to)
            store(copy.source, BETWEEN, 0)

    monkeypatch.setattr(OpenCLDevice, "run", laid_wrong)
    lines = SIZE // line_of(plain)
    with pytest.raises(BackendError, match=f"a ring of {found} lines instead of {lines}"):
        plain.prepare([copy], "chase")


def test_a_pointer_that_was_changed_after_the_proof_fails_the_cell(
    plain: opencl.OpenCL, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare = plain.prepare

    def changed(copies: list[Copy], operation: Any) -> Any:
        group = prepare(copies, operation)
        buffer: Any = copies[0].source
        second = int(content(buffer).view(np.uint64)[0])
        store(buffer, second, 0)
        return group

    monkeypatch.setattr(plain, "prepare", changed)
    cell = outcome(plain, OWN, SIZE, "chase", Report.LATENCY)
    assert (cell.status, cell.kind) == ("fail", "wrong-bytes")
    assert cell.reason is not None
    assert "accesses led to byte" in cell.reason


@pytest.mark.parametrize(
    ("text", "size", "why"),
    [
        ("null -> opencl:0 by sm", SIZE, "a chase only reads: write MEMORY -> null by opencl:0.sm"),
        ("host:0 -> opencl:0 by sm", SIZE, "a chase only reads"),
        ("opencl:0 -> null by sm", 8, "8 bytes are less than a cache line"),
    ],
)
def test_what_is_no_chase_is_unsupported(
    plain: opencl.OpenCL, text: str, size: int, why: str
) -> None:
    with pytest.raises(Unsupported, match=why):
        plain.prepare([copy_of(plain, parse_transfer(text), size)], "chase")
    alone = copy_of(plain, parse_transfer(OWN), SIZE)
    with pytest.raises(Unsupported, match="one at a time"):
        plain.prepare([alone, alone], "chase")
