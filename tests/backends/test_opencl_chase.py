"""Chases by OpenCL devices: a ring over every line, proved, followed, and the end compared."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")

from kinds_kit import outcome
from linkgauge.backends import opencl
from linkgauge.backends.opencl.runtime import OpenCLDevice
from linkgauge.backends.protocol import Copy, run
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.transfer import Report
from opencl_kit import cl, copy_of, opened

HOST, OWN, OTHER = CHASES = (
    "host:0 -> null by opencl:0.sm",
    "opencl:0 -> null by sm",
    "opencl:1 -> null by opencl:0.sm",
)
SIZE = 64 << 10


@pytest.fixture(params=["as it is", "as a GPU"])
def backend(request: pytest.FixtureRequest) -> Iterator[opencl.OpenCL]:
    with opened(as_gpu=request.param == "as a GPU") as backend:
        yield backend


@pytest.fixture
def plain() -> Iterator[opencl.OpenCL]:
    with opened() as backend:
        yield backend


def line_of(backend: opencl.OpenCL) -> int:
    return backend._units[0].cache_line


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
    run(group)
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
