"""OpenCL's own statuses become kinds of outcomes, which the doctor goes by."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")

from kinds_kit import CHECKS, found_by_the_doctor, outcome
from linkgauge.backends import opencl
from linkgauge.backends.opencl.runtime import discover
from opencl_kit import backend_of, cl

WITHIN = "opencl:0 -> opencl:0 by ce"
STATUSES = [
    ("MEM_OBJECT_ALLOCATION_FAILURE", "memory"),
    ("OUT_OF_HOST_MEMORY", "memory"),
    ("DEVICE_NOT_AVAILABLE", "lost"),
    ("INVALID_COMMAND_QUEUE", "call"),
]


@pytest.fixture
def backend() -> Iterator[opencl.OpenCL]:
    opened = backend_of(list(discover()))
    yield opened
    opened.close()


def ends_as(backend: opencl.OpenCL, kind: str, reason: str) -> None:
    """The cell's outcome, its reason, and what the doctor makes of it."""
    cell = outcome(backend, WITHIN)
    assert (cell.status, cell.kind) == ("error", kind)
    assert cell.reason is not None
    assert reason in cell.reason
    assert found_by_the_doctor(cell) == CHECKS[kind]


@pytest.mark.parametrize(("status", "kind"), STATUSES)
def test_so_is_what_a_command_ended_with(
    backend: opencl.OpenCL, monkeypatch: pytest.MonkeyPatch, status: str, kind: str
) -> None:
    code = int(getattr(cl.status_code, status))
    monkeypatch.setattr(cl.Event, "command_execution_status", property(lambda event: code))
    ends_as(backend, kind, f"clFinish: a copy ended with {status}")
