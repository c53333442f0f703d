"""Where a profiler watches, each cell is a range in its timeline while samples are taken."""

import sys
from types import SimpleNamespace

import pytest

from fakes import FakeBackend
from linkgauge.engine.workers.outcomes import Repetition
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.errors import BackendError
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Concurrent, Profiled
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import worker_with

PLAIN = Settings((4096,), samples=2)
UNDER_NSYS = Settings((4096,), samples=2, profiler="nsys")


@pytest.fixture
def seen(monkeypatch):
    """What a package nvtx is told, in order. No profiler watches the tests themselves."""
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)
    told = []

    class Annotate:
        def __init__(self, message, domain):
            self.name = message
            assert domain == "linkgauge"

        def __enter__(self):
            told.append(("push", self.name))

        def __exit__(self, *error):
            told.append(("pop", self.name))

    monkeypatch.setitem(sys.modules, "nvtx", SimpleNamespace(annotate=Annotate))
    return told


def planned(text, row="0", column="1"):
    return PlannedCell(row, column, parse_transfers(text), Report.FIRST)


def measure(settings, *cells, backend=None):
    worker = worker_with(settings, fake=backend or FakeBackend())
    return worker.measure(cells, 4096, Repetition(benchmark="device_to_device_memcpy_write_ce"))


COPY, OTHER = planned("fake:0 -> fake:1 by ce"), planned("fake:2 -> fake:3 by ce", "2", "3")
NAME, ITS_NAME = (
    f"device_to_device_memcpy_write_ce ({cell.row}, {cell.column}): {cell.transfers[0]}, 4 KiB"
    for cell in (COPY, OTHER)
)


def test_sampling_is_a_range_and_nothing_else_is(seen):
    backend = FakeBackend()
    backend.on_allocate = lambda memory, size: seen.append("allocate")
    backend.on_sample = lambda group: seen.append("sample")
    (cell,) = measure(UNDER_NSYS, COPY, backend=backend)
    begin, end = seen.index(("push", NAME)), seen.index(("pop", NAME))
    assert seen[begin + 1 : end] == ["sample"] * 2
    assert end == len(seen) - 1
    assert cell.notes == (Profiled("nsys"),)


def test_cells_at_the_same_time_are_ranges_within_one_another(seen):
    first, _ = measure(UNDER_NSYS, COPY, OTHER)
    assert seen == [("push", NAME), ("push", ITS_NAME), ("pop", ITS_NAME), ("pop", NAME)]
    assert first.notes == (Concurrent(1), Profiled("nsys"))


def test_a_range_ends_where_sampling_fails(seen):
    backend = FakeBackend()

    def fail(group):
        raise BackendError("copy", "device lost")

    backend.on_sample = lambda group: fail(group) if seen else None
    (cell,) = measure(UNDER_NSYS, COPY, backend=backend)
    assert cell.status == "error"
    assert seen == [("push", NAME), ("pop", NAME)]


def test_there_are_none_without_a_profiler_or_the_package(seen, monkeypatch):
    (cell,) = measure(PLAIN, COPY)
    assert (cell.status, cell.notes, seen) == ("pass", (), [])
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/libInjection64.so")
    (cell,) = measure(PLAIN, COPY)
    assert cell.notes == (Profiled("a profiler"),), "which the user started"
    assert seen
    monkeypatch.setitem(sys.modules, "nvtx", None)
    (cell,) = measure(UNDER_NSYS, COPY)
    assert (cell.status, cell.notes) == ("pass", (Profiled("nsys"),))
