"""Where a profiler watches, each cell is a range in its timeline while samples are taken."""

import json
import sys
from types import SimpleNamespace

import pytest

from fakes import FakeBackend
from linkgauge.engine import measurement, ranges
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.messages import Visit
from linkgauge.engine.pool import BufferPool
from linkgauge.engine.ranges import DOMAIN, advice, marked, profiled_by, range_name
from linkgauge.model.errors import BackendError
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Beside, Profiled
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from profiler_kit import NVTX

PLAIN = Settings((4096,), samples=2)
UNDER_NSYS = Settings((4096,), samples=2, profiler="nsys")


@pytest.fixture(autouse=True)
def alone(monkeypatch):
    """No profiler watches the tests themselves."""
    monkeypatch.delenv("NVTX_INJECTION64_PATH", raising=False)


@pytest.fixture
def seen(monkeypatch):
    """What a package nvtx is told, in order."""
    told = []

    class Annotate:
        def __init__(self, message, domain):
            self.name = message
            assert domain == DOMAIN

        def __enter__(self):
            told.append(("push", self.name))

        def __exit__(self, *error):
            told.append(("pop", self.name))

    monkeypatch.setitem(sys.modules, "nvtx", SimpleNamespace(annotate=Annotate))
    return told


def planned(text, row="0", column="1"):
    return PlannedCell(row, column, parse_transfers(text), Report.FIRST)


def measure(settings, *cells, backend=None):
    backend = backend or FakeBackend()
    able = [Measurement(cell, 4096, settings, [backend] * len(cell.transfers)) for cell in cells]
    visit = Visit(benchmark="device_to_device_memcpy_write_ce")
    return measure_together(able, settings, BufferPool(), visit=visit).cells


COPY = planned("fake:0 -> fake:1 by ce")
NAME = "device_to_device_memcpy_write_ce (0, 1): fake:0 -> fake:1 by ce, 4 KiB"


@pytest.mark.parametrize(
    ("cell", "size", "benchmark", "name"),
    [
        (
            planned("host:0 -> cuda:1 by ce"), 512 << 20, "host_to_device_memcpy_ce",
            "host_to_device_memcpy_ce (0, 1): host:0 -> cuda:1 by ce, 512 MiB",
        ),
        (
            planned("cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce"), 1 << 20, "both",
            "both (0, 1): cuda:0 -> cuda:1 by ce & cuda:1 -> cuda:0 by ce, 1 MiB",
        ),
        (planned("host:0 -> null by cpu"), 0, "none", "none (0, 1): host:0 -> null by cpu"),
        (planned("host:0 -> null by cpu"), 0, "", "(0, 1): host:0 -> null by cpu"),
    ],
)  # fmt: skip
def test_a_range_is_named_like_its_cell(cell, size, benchmark, name):
    assert range_name(cell, size, benchmark) == name


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
    other = planned("fake:2 -> fake:3 by ce", "2", "3")
    first, _ = measure(UNDER_NSYS, COPY, other)
    assert [what for what, _ in seen] == ["push", "push", "pop", "pop"]
    assert [name.split(":")[0].split(" ", 1)[1] for _, name in seen] == [
        "(0, 1)", "(2, 3)", "(2, 3)", "(0, 1)",
    ]  # fmt: skip
    assert first.notes == (Beside(1), Profiled("nsys"))


def test_a_range_ends_where_sampling_fails(seen):
    backend = FakeBackend()

    def fail(group):
        raise BackendError("copy", "device lost")

    backend.on_sample = lambda group: fail(group) if seen else None
    (cell,) = measure(UNDER_NSYS, COPY, backend=backend)
    assert cell.status == "error"
    assert seen == [("push", NAME), ("pop", NAME)]


def test_without_a_profiler_nothing_is_loaded_or_marked(monkeypatch):
    monkeypatch.setattr(ranges, "import_module", lambda name: pytest.fail(f"{name} is loaded"))
    monkeypatch.setattr(measurement, "range_name", lambda *of: pytest.fail(f"{of} is named"))
    (cell,) = measure(PLAIN, COPY)
    assert (cell.status, cell.notes) == ("pass", ())


def test_without_the_package_cells_are_measured_all_the_same(monkeypatch):
    monkeypatch.setitem(sys.modules, "nvtx", None)
    (cell,) = measure(UNDER_NSYS, COPY)
    assert (cell.status, cell.notes) == ("pass", (Profiled("nsys"),))


def test_a_profiler_that_the_user_started_is_noticed(monkeypatch, seen):
    assert profiled_by(PLAIN) is None
    monkeypatch.setenv("NVTX_INJECTION64_PATH", "/opt/libInjection64.so")
    (cell,) = measure(PLAIN, COPY)
    assert cell.notes == (Profiled("a profiler"),)
    assert seen
    assert profiled_by(UNDER_NSYS) == "nsys"


class TestAdvice:
    @pytest.fixture
    def no_nvtx(self, monkeypatch):
        monkeypatch.setattr(ranges, "find_spec", lambda name: None)

    def test_says_how_to_get_ranges(self, no_nvtx):
        assert f"without NVIDIA's nvtx: {sys.executable} -m pip install nvtx" in advice(UNDER_NSYS)

    def test_is_none_without_a_profiler(self, no_nvtx):
        assert advice(PLAIN) is None

    def test_is_none_where_the_package_is_there(self, tmp_path, monkeypatch):
        (tmp_path / "nvtx.py").write_text(NVTX)
        monkeypatch.syspath_prepend(tmp_path)
        assert advice(UNDER_NSYS) is None


def test_nvidias_own_package_takes_what_it_is_told():
    pytest.importorskip("nvtx", reason="pip install nvtx")
    with pytest.raises(json.JSONDecodeError), marked([NAME, NAME], "nsys"):
        json.loads("")
