"""Memory that the opencl backend allocates, and the errors of OpenCL that become ours."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import msgspec
import pytest

# Before all that needs it: without it these tests are skipped, not broken.
pytest.importorskip("pyopencl", reason="pip install '.[opencl]'")

from linkgauge.backends import opencl
from linkgauge.backends.opencl.host_memory import InPlaceBuffer
from linkgauge.backends.opencl.runtime import OpenCLDevice, calling, discover
from linkgauge.backends.protocol import Pattern
from linkgauge.model.errors import AllocationError, BackendError
from linkgauge.model.notation import parse_transfer
from opencl_kit import SEED, backend_of, copy_of, opencl_error, run


@pytest.fixture
def plain() -> Iterator[opencl.OpenCL]:
    backend = backend_of(list(discover()))
    yield backend
    backend.close()


@pytest.mark.parametrize(
    ("name", "allocating", "kind"),
    [
        ("MEM_OBJECT_ALLOCATION_FAILURE", None, AllocationError),
        ("OUT_OF_HOST_MEMORY", None, AllocationError),
        ("OUT_OF_RESOURCES", 5, AllocationError),
        ("OUT_OF_RESOURCES", None, BackendError),
        ("INVALID_KERNEL_ARGS", 5, BackendError),
    ],
)
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
    assert isinstance(copy.source, InPlaceBuffer)
    run(backend, [copy])
    assert backend.first_mismatch(copy.destination, 4097, Pattern.WORDS, SEED) is None
    with pytest.raises(BackendError, match="allocated for sm, not for ce"):
        backend.prepare(
            [msgspec.structs.replace(copy, transfer=parse_transfer("host:0 -> opencl:0 by ce"))]
        )
    backend.close()
