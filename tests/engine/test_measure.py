"""A cell is allocated, filled, warmed up, sampled and verified; what befalls it is its status."""

import pytest

from fakes import FakeBackend, content
from linkgauge.backends.protocol import Gated, Pace, Pattern, Timing
from linkgauge.engine.measure import Known, measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.messages import FIRST, Visit
from linkgauge.engine.pool import BufferPool
from linkgauge.engine.sampler import Sample
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from visit_kit import whole

SETTINGS = Settings((4096,), samples=6)


def measure(
    text, backend=None, report=Report.FIRST, size=4096, settings=SETTINGS, pool=None, visit=FIRST,
    operation="copy", known=None
):  # fmt: skip
    transfers = parse_transfers(text)
    planned = PlannedCell("0", "0", transfers, report, operation=operation)
    backend = backend or FakeBackend()
    cell = Measurement(planned, size, settings, [backend] * len(transfers))
    (result,) = measure_together(
        [cell], settings, pool or BufferPool(), visit=visit, known=known
    ).cells
    return whole(result, settings=settings)


@pytest.mark.parametrize(
    "text",
    [
        "fake:0 -> fake:1 by ce",
        "fake:0 <-> fake:1 by sm",
        "host:0 -> null by cpu",
        "null -> host:0 by cpu",
        "host:0 -> fake:0 by ce & fake:0 -> host:0 by ce x2",
    ],
)
@pytest.mark.parametrize("size", [1, 7, 511, 512, 513, 4096])
def test_every_kind_of_transfer_is_verified_at_any_size(text, size):
    cell = measure(text, size=size)
    assert (cell.status, cell.verified, cell.reason) == ("pass", True, None)
    assert cell.summary.n == 6
    assert cell.stopped == "samples"


@pytest.mark.parametrize(
    ("text", "victim", "pattern"),
    [
        ("fake:0 -> fake:1 by ce", 1, Pattern.WORDS),
        ("null -> fake:1 by ce", 0, Pattern.CONSTANT),
        ("fake:0 <-> fake:1 by sm", 0, Pattern.SPLIT),
        ("fake:0 <-> fake:1 by sm", 1, Pattern.SPLIT),
        ("host:0 -> fake:0 by ce & fake:0 -> host:0 by ce", 3, Pattern.WORDS),
    ],
)
@pytest.mark.parametrize("offset", [0, 1000, 4095])
def test_one_wrong_byte_fails_the_cell_and_is_found_at_its_offset(text, victim, pattern, offset):
    backend = FakeBackend()

    def harm(group):
        backend.buffers[victim].data[offset] ^= 0x40

    backend.on_sample = harm
    cell = measure(text, backend)
    assert (cell.status, cell.verified) == ("fail", False)
    assert f"wrong at byte {offset} of 4096" in cell.reason
    assert cell.summary is not None
    seed = 2 if victim == 3 else 1
    assert backend.buffers[victim].data != content(4096, pattern, seed, False)


def test_each_phase_and_each_sample_is_a_sign_of_life():
    signs = []
    transfers = parse_transfers("fake:0 -> fake:1 by ce")
    planned = PlannedCell("0", "0", transfers, Report.FIRST)
    cell = Measurement(planned, 4096, SETTINGS, [FakeBackend()])
    measure_together([cell], SETTINGS, BufferPool(), signs.append)
    begun = 1 + SETTINGS.samples
    assert signs == ["allocate", "warm up", "fill", *["measure"] * begun, "verify"]


def test_a_read_that_misses_bytes_fails():
    backend = FakeBackend()
    backend.on_sample = lambda group: backend.buffers[0].data.__setitem__(9, 0)
    backend.checksum = lambda buffer, size: 1
    cell = measure("host:0 -> null by cpu", backend)
    assert (cell.status, cell.verified) == ("fail", False)


def test_a_transfer_that_moves_nothing_fails_although_the_warm_up_moved():
    backend = FakeBackend()
    count = 0

    def lazy(group):
        nonlocal count
        count += 1
        if count > 6:
            group.copies[0].destination.data[:] = content(4096, Pattern.WORDS, 1, True)

    backend.on_sample = lazy
    assert measure("fake:0 -> fake:1 by ce", backend).status == "fail"


def test_without_verification_nothing_is_claimed():
    cell = measure("fake:0 -> fake:1 by ce", settings=Settings((1,), samples=1, verify=False))
    assert (cell.status, cell.verified) == ("pass", None)


def test_headline_figures_are_what_the_report_says():
    def figure(text, report):
        return measure(text, report=report).summary.median

    pair = "fake:0 -> fake:1 by ce & fake:1 -> fake:0 by ce x2"
    assert figure(pair, Report.FIRST) == pytest.approx(1e9)
    assert figure(pair, Report.SUM) == pytest.approx(2e9)
    # Each at its own rate while both run, and three times the size within the longer one's span.
    assert figure(pair, Report.TOTAL) == pytest.approx(2e9)
    assert figure(pair, Report.SPAN) == pytest.approx(1.5e9)
    assert figure("fake:0 <-> fake:1 by sm", Report.FIRST) == pytest.approx(0.5e9)
    assert figure("fake:0 <-> fake:1 by sm", Report.TOTAL) == pytest.approx(1e9)


def test_parts_are_each_transfers_own():
    cell = measure("fake:0 -> fake:1 by ce & fake:1 -> fake:0 by ce x2", report=Report.SUM)
    assert [(part.transfer, part.bytes) for part in cell.parts] == [(0, 4096), (1, 8192)]
    assert [part.summary.median for part in cell.parts] == pytest.approx([1e9, 1e9])
    assert cell.bytes == 3 * 4096


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (AllocationError("cuMemAlloc", "out of memory"), "error"),
        (Unsupported("no huge pages"), "skip"),
    ],
)
def test_what_goes_wrong_while_allocating_is_the_cells_own(error, status):
    backend = FakeBackend()

    def refuse(memory, size):
        raise error

    backend.on_allocate = refuse
    cell = measure("fake:0 -> fake:1 by ce", backend)
    assert cell.status == status
    assert str(error) in cell.reason
    assert status == "skip" or "while allocating" in cell.reason


@pytest.mark.parametrize(("when", "phase"), [(1, "while warming up"), (20, "while measuring")])
def test_an_error_names_the_phase_and_leaves_nothing_open(when, phase):
    backend, pool = FakeBackend(), BufferPool()
    backend.seconds_a_byte = lambda n: 1e-3

    def fail(group):
        if backend.samples >= min(when, 4):
            raise BackendError("clFinish", "DEVICE_LOST")

    backend.on_sample = fail
    cell = measure("fake:0 -> fake:1 by ce", backend, pool=pool)
    assert (cell.status, phase in cell.reason) == ("error", True)
    assert backend.open_groups == 0
    pool.free_idle()
    assert all(buffer.freed for buffer in backend.buffers)


def test_a_clock_that_stands_still_is_an_error_not_a_crash():
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 0.0
    cell = measure("fake:0 -> fake:1 by ce", backend, settings=Settings((1,), samples=1, loops=1))
    assert (cell.status, "too short for the clock" in cell.reason) == ("error", True)


def test_another_visit_has_other_buffers_but_for_what_only_interferes():
    backend, pool = FakeBackend(), BufferPool()
    text = "host:0 -> fake:0 by ce & fake:0 -> host:0 by ce x2"
    for number in (0, 1, 0, 1):
        measure(text, backend, pool=pool, visit=Visit(number))
    assert [buffer.size for buffer in backend.buffers] == [4096, 4096, 8192, 8192, 4096, 4096]


def test_another_visit_takes_the_same_loops_without_finding_them_anew():
    backend = FakeBackend()
    measure("fake:0 -> fake:1 by ce", backend, visit=Visit(1, 6), known=Known(Sample(7)))
    assert backend.samples == 1 + 6


def test_buffers_are_used_again_but_never_twice_in_one_cell():
    backend, pool = FakeBackend(), BufferPool()
    for _ in range(3):
        measure("fake:0 -> fake:0 by ce & fake:0 -> fake:0 by ce", backend, pool=pool)
    assert len(backend.buffers) == 4


def test_idle_buffers_make_room_before_more_is_allocated():
    backend, pool = FakeBackend(), BufferPool(budget=3 * 4096)
    measure("fake:0 -> fake:1 by ce", backend, pool=pool)
    measure("fake:2 -> fake:3 by ce", backend, pool=pool)
    held = sum(buffer.size for buffer in backend.buffers if not buffer.freed)
    assert held <= 3 * 4096


def test_a_failed_allocation_is_tried_again_once_idle_buffers_are_gone():
    backend, pool = FakeBackend(), BufferPool()

    def full(memory, size):
        if sum(not buffer.freed for buffer in backend.buffers) >= 2:
            raise AllocationError("allocate", "full")

    measure("fake:0 -> fake:1 by ce", backend, pool=pool)
    backend.on_allocate = full
    assert measure("fake:2 -> fake:3 by ce", backend, pool=pool).status == "pass"


class ChasingBackend(FakeBackend):
    """Follows 500 pointers a loop, each in 200 ns."""

    def prepare(self, copies, operation="copy"):
        assert operation == "chase"
        group = super().prepare(copies)
        group.pace = Pace(loops=1, steps=500)
        self.seconds_a_byte = lambda n: 500 * 200e-9 / copies[0].size
        return group


def test_a_latency_is_seconds_an_access_and_verifies_nothing():
    text = "host:0 -> null by fake:0.sm"
    cell = measure(text, ChasingBackend(), Report.LATENCY, operation="chase")
    assert cell.summary.median == pytest.approx(200e-9)
    assert (cell.status, cell.verified, cell.operation) == ("pass", None, "chase")


class EnqueuingBackend(FakeBackend):
    """The host takes 3 us a call."""

    def prepare(self, copies, operation="copy"):
        assert operation == "enqueue"
        self.seconds_a_byte = lambda n: 3e-6 / copies[0].size
        return super().prepare(copies)


def test_what_enqueueing_takes_is_seconds_a_loop_and_the_bytes_are_compared():
    text = "host:0 -> fake:0 by fake:0.ce"
    cell = measure(text, EnqueuingBackend(), Report.LATENCY, operation="enqueue")
    assert cell.summary.median == pytest.approx(3e-6)
    assert (cell.status, cell.verified, cell.operation) == ("pass", True, "enqueue")
    cell = measure(text, FakeBackend(), Report.LATENCY, operation="enqueue")
    assert (cell.status, "does not time" in cell.reason) == ("skip", True)
    assert cell.operation == "enqueue"


def test_a_backend_that_follows_no_pointers_skips_latencies():
    text = "host:0 -> null by fake:0.sm"
    cell = measure(text, FakeBackend(), Report.LATENCY, operation="chase")
    assert (cell.status, "does not measure latency" in cell.reason) == ("skip", True)


@pytest.mark.parametrize(
    ("report", "laps"),
    [
        (Report.FIRST, [3, 3]), (Report.LATENCY, [3, 3]), (Report.RATE, [3, 3]),
        (Report.SUM, [1] * 6),
    ],
)  # fmt: skip
def test_only_a_cell_of_its_first_transfer_is_sampled_lap_by_lap(report, laps):
    """Other copies may be a lap ahead of the first one."""
    backend = FakeBackend()
    gates = []

    def prepare(copies, operation="copy"):
        group = FakeBackend.prepare(backend, copies)
        group.pace = Pace(4096e-9, 1, 3)
        return group

    backend.prepare = prepare
    backend.on_sample = lambda group: gates.append(group.laps)
    measure("fake:0 -> fake:1 by ce", backend, report, operation="chase")
    assert gates[-len(laps) :] == laps


class TestComputed:
    """What a group computed itself is its own to check."""

    def measured(self, found, **how):
        class Group(Gated):
            pace = Pace(steps=10)

            def wait(self):
                loops, laps = self.pass_gate()
                return Timing((0.1 * loops * laps,), 0.1 * loops * laps, (None,))

            def mismatch(self):
                checked.append(self)
                return found

        class Backend(FakeBackend):
            def prepare(self, copies, operation="copy"):
                return Group()

        checked = []
        settings = Settings((4096,), samples=3, **how)
        work = "null -> null by fake:0.sm", Backend(), Report.RATE
        cell = measure(*work, operation="matmul-fp32", settings=settings)
        assert cell.summary.median == pytest.approx(10 / 0.1)
        return cell, checked

    def test_a_wrong_result_fails_the_cell(self):
        cell, checked = self.measured("the product is wrong in row 5")
        assert (cell.status, cell.kind, cell.verified) == ("fail", "wrong-bytes", False)
        assert cell.reason == "the product is wrong in row 5"
        assert len(checked) == 1

    def test_a_right_one_passes(self):
        cell, _ = self.measured(None)
        assert (cell.status, cell.verified) == ("pass", True)

    def test_without_verification_none_is_looked_at(self):
        cell, checked = self.measured("wrong", verify=False)
        assert (cell.status, cell.verified, checked) == ("pass", None, [])
