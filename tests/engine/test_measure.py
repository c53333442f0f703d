"""A cell is allocated, filled, warmed up, sampled and verified; what befalls it is its status."""

from contextlib import closing

import pytest

from fakes import FakeBackend, content
from linkgauge.backends.protocol import Pattern, SamplingPolicy
from linkgauge.engine.workers.outcomes import Repetition
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.errors import AllocationError, BackendError, Unsupported
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import whole, worker_with

SIZE = 4096
SETTINGS = Settings((SIZE,), samples=6)


def planned(text, report=Report.FIRST, operation="copy", number=0):
    return PlannedCell(
        "0", str(number), parse_transfers(text), report, operation=operation, number=number
    )


def measure(text, backend=None, report=Report.FIRST, *, size=SIZE, settings=SETTINGS,
            operation="copy", **more):  # fmt: skip
    """The cell of these transfers, by one backend of all memories."""
    worker = worker_with(settings, **more)
    worker.measure_with(backend or FakeBackend())
    (repetition,) = worker.measure([planned(text, report, operation)], size)
    return whole(repetition, settings=settings)


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
@pytest.mark.parametrize("offset", [0, 1000, SIZE - 1])
def test_one_wrong_byte_fails_the_cell_and_is_found_at_its_offset(text, victim, pattern, offset):
    backend = FakeBackend()

    def harm(group):
        backend.buffers[victim].data[offset] ^= 0x40

    backend.on_sample = harm
    cell = measure(text, backend)
    assert (cell.status, cell.verified) == ("fail", False)
    assert f"wrong at byte {offset} of {SIZE}" in cell.reason
    assert cell.summary is not None
    seed = 2 if victim == 3 else 1
    assert backend.buffers[victim].data != content(SIZE, pattern, seed, False)


@pytest.mark.parametrize("asked", [0x0123456789ABCDEF, 0, 2**64 - 1])
def test_a_word_that_was_asked_for_is_what_arrives(asked):
    backend = FakeBackend()
    settings = Settings((1000,), samples=2, loops=1, pattern=asked)
    text = "host:0 -> fake:0 by ce & fake:0 -> fake:1 by ce"
    cell = measure(text, backend, Report.SUM, size=1000, settings=settings)
    assert (cell.status, cell.verified) == ("pass", True)
    arrived = asked.to_bytes(8, "little") * 125
    assert [bytes(buffer.data[:1000]) for buffer in backend.buffers] == [arrived] * 4


def test_each_phase_and_each_sample_is_a_sign_of_life():
    signs = []
    measure("fake:0 -> fake:1 by ce", on_phase=signs.append)
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
            group.copies[0].destination.data[:] = content(SIZE, Pattern.WORDS, 1, True)

    backend.on_sample = lazy
    assert measure("fake:0 -> fake:1 by ce", backend).status == "fail"


PAIR = "fake:0 -> fake:1 by ce & fake:1 -> fake:0 by ce x2"
BOTH = "fake:0 <-> fake:1 by sm"


@pytest.mark.parametrize(
    ("text", "report", "figure"),
    [
        (PAIR, Report.FIRST, 1e9),
        (PAIR, Report.SUM, 2e9),
        # Each at its own rate while both run, and three times the size within the longer's span.
        (PAIR, Report.TOTAL, 2e9),
        (PAIR, Report.SPAN, 1.5e9),
        (BOTH, Report.FIRST, 0.5e9),
        (BOTH, Report.TOTAL, 1e9),
    ],
)
def test_headline_figures_are_what_the_report_says(text, report, figure):
    assert measure(text, report=report).summary.median == pytest.approx(figure)


def test_parts_are_each_transfers_own():
    cell = measure(PAIR, report=Report.SUM)
    assert [(part.transfer, part.bytes) for part in cell.parts] == [(0, SIZE), (1, 2 * SIZE)]
    assert [part.summary.median for part in cell.parts] == pytest.approx([1e9, 1e9])
    assert cell.bytes == 3 * SIZE


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


@pytest.mark.parametrize(("when", "phase"), [(1, "while warming up"), (4, "while measuring")])
def test_an_error_names_the_phase_and_leaves_nothing_open(when, phase):
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 1e-3

    def fail(group):
        if backend.samples >= when:
            raise BackendError("clFinish", "DEVICE_LOST")

    backend.on_sample = fail
    worker = worker_with(SETTINGS, fake=backend)
    (cell,) = worker.measure([planned("fake:0 -> fake:1 by ce")], SIZE)
    assert (cell.status, phase in cell.reason) == ("error", True)
    assert backend.open_groups == 0
    worker.close()
    assert all(buffer.freed for buffer in backend.buffers)


def test_a_clock_that_stands_still_is_an_error_not_a_crash():
    backend = FakeBackend()
    backend.seconds_a_byte = lambda n: 0.0
    cell = measure("fake:0 -> fake:1 by ce", backend, settings=Settings((1,), samples=1, loops=1))
    assert (cell.status, "too short for the clock" in cell.reason) == ("error", True)


class Gates(FakeBackend):
    """Notes what stands behind each gate: loops of a sample, and samples. `policy` is its
    groups'."""

    def __init__(self, seconds, policy=SamplingPolicy(), most_loops=480):  # noqa: B008
        super().__init__()
        self.seconds_a_byte = lambda n: seconds / SIZE
        self.gates, self.policy, self.most_loops = [], policy, most_loops

    def prepare(self, copies, operation="copy"):
        group = super().prepare(copies, operation)
        group.policy, group.most_loops, arm = self.policy, self.most_loops, group.arm

        def noted(loops, batches=1):
            self.gates.append((loops, batches))
            arm(loops, batches)

        group.arm = noted
        return group


def repetition_of(backend, settings=Settings((SIZE,)), copies=1):  # noqa: B008
    text = " & ".join(["fake:0 -> fake:1 by ce"] * copies)
    (repetition,) = worker_with(settings, fake=backend).measure([planned(text)], SIZE)
    return repetition


@pytest.mark.parametrize(
    ("seconds", "loops", "samples"),
    [(1e-6, 480, 32), (1e-3, 20, 3), (0.004, 5, 3), (0.03, 2, 2), (0.5, 2, 1)],
)
def test_a_sample_lasts_at_least_20_ms_and_two_copies_and_a_repetition_some_of_them(
    seconds, loops, samples
):
    repetition = repetition_of(Gates(seconds), Settings((SIZE,), max_time=1.0))
    assert (repetition.loops, len(repetition.samples)) == (loops, samples)


@pytest.mark.parametrize(("seconds", "expected"), [(1e-6, [16, 16, 16]), (0.03, [16, 16])])
def test_short_samples_are_rehearsed_where_their_policy_says_so(seconds, expected):
    backend = Gates(seconds, SamplingPolicy(rehearsed=True))
    repetition = repetition_of(backend, Settings((SIZE,), loops=16, samples=2))
    assert len(repetition.samples) == 2
    assert [loops for loops, _ in backend.gates if loops > 1] == expected


@pytest.mark.parametrize(
    ("seconds", "first", "second"),
    [
        (0.003, [1, 1, 7, 7], [7, 7]),  # 7 loops take 21 ms, and two samples are nearest to 40 ms
        (0.015, [1, 2], [2]),  # a single loop is long enough to predict many
        (0.6, [1, 2], [1, 2]),  # deadlines rest on what a loop takes now
    ],
)
def test_steady_samples_are_few_and_only_a_first_repetition_warms_up(seconds, first, second):
    backend = Gates(seconds, SamplingPolicy(steady=True))
    with closing(worker_with(Settings((SIZE,), max_time=0.8), fake=backend)) as worker:
        for number, expected in enumerate((first, second)):
            backend.gates.clear()
            worker.measure([planned("fake:0 -> fake:1 by ce")], SIZE, Repetition(number))
            assert [loops for loops, _ in backend.gates] == expected


class TestBatches:
    """Samples behind one gate."""

    BATCHING = SamplingPolicy(0.008, 1, 32)

    def test_are_all_of_a_repetition(self):
        backend = Gates(0.01, self.BATCHING)
        repetition = repetition_of(backend, Settings((SIZE,), max_time=1.0))
        assert (repetition.loops, backend.gates[-1], len(repetition.samples)) == (1, (1, 5), 5)

    def test_are_no_more_than_the_policy_and_the_queues_allow(self):
        many = Settings((SIZE,), samples=40)
        for most, expected in ((480, [32, 8]), (9, [9, 9, 9, 9, 4])):
            backend = Gates(0.01, self.BATCHING, most)
            assert len(repetition_of(backend, many).samples) == 40
            assert [batches for _, batches in backend.gates if batches > 1] == expected


class TestBuffers:
    """What a worker keeps of one cell for the next."""

    def sizes(self, *texts, repetitions=(0,), samples=6, **more):
        """Of what was allocated for these cells, and of what is kept of it."""
        backend = FakeBackend()
        worker = worker_with(Settings((SIZE,), samples=samples), **more)
        worker.measure_with(backend)
        for number in repetitions:
            for text in texts:
                (cell,) = worker.measure([planned(text)], SIZE, Repetition(number))
                assert cell.status == "pass"
        return [one.size for one in backend.buffers], backend.samples, [
            str(one.memory) for one in backend.buffers if not one.freed
        ]  # fmt: skip

    def test_another_repetition_has_others_but_for_what_only_interferes(self):
        text = "host:0 -> fake:0 by ce & fake:0 -> host:0 by ce x2"
        made, *_ = self.sizes(text, repetitions=(0, 1, 0, 1))
        assert made == [SIZE, SIZE, 2 * SIZE, 2 * SIZE, SIZE, SIZE]

    def test_another_repetition_takes_the_same_loops_without_finding_them_anew(self):
        _, first, _ = self.sizes("fake:0 -> fake:1 by ce")
        _, both, _ = self.sizes("fake:0 -> fake:1 by ce", repetitions=(0, 1))
        assert first > 1 + 6
        assert both - first == 1 + 6

    def test_are_used_again_but_never_twice_in_one_cell(self):
        made, *_ = self.sizes(*["fake:0 -> fake:0 by ce & fake:0 -> fake:0 by ce"] * 3)
        assert len(made) == 4

    def test_are_kept_in_half_of_the_hosts_available_memory(self):
        texts = [f"host:{node} -> host:{node} by cpu" for node in range(4)]
        *_, kept = self.sizes(*texts, available=4 * SIZE)
        assert kept == ["host:3", "host:3"]
        *_, kept = self.sizes("host:0 -> null by cpu", "fake:0 -> fake:1 by ce", available=2 * SIZE)
        assert kept == ["fake:0", "fake:1"], "whose memory may be the host's"

    def test_that_are_idle_make_room_for_one_that_does_not_fit(self):
        backend = FakeBackend()
        worker = worker_with(SETTINGS, fake=backend)

        def full(memory, size):
            if sum(not buffer.freed for buffer in backend.buffers) >= 2:
                raise AllocationError("allocate", "full")

        worker.measure([planned("fake:0 -> fake:1 by ce")], SIZE)
        backend.on_allocate = full
        (cell,) = worker.measure([planned("fake:2 -> fake:3 by ce")], SIZE)
        assert cell.status == "pass"


class TimedBackend(FakeBackend):
    """Carries out another operation than copies: `steps` a loop, each in so many seconds."""

    def __init__(self, operation, steps, each):
        super().__init__()
        self._operation, self._steps, self._each = operation, steps, each

    def prepare(self, copies, operation="copy"):
        assert operation == self._operation
        group = super().prepare(copies)
        group.policy = SamplingPolicy(loops=1, steps=self._steps)
        self.seconds_a_byte = lambda n: self._steps * self._each / copies[0].size
        return group


@pytest.mark.parametrize(
    ("operation", "steps", "seconds", "verified"),
    [("chase", 500, 200e-9, None), ("enqueue", 1, 3e-6, True)],
)
def test_a_latency_is_seconds_a_step(operation, steps, seconds, verified):
    """Whoever follows pointers moves no bytes that could be compared."""
    text = "host:0 -> null by fake:0.sm" if verified is None else "host:0 -> fake:0 by fake:0.ce"
    backend = TimedBackend(operation, steps, seconds)
    cell = measure(text, backend, Report.LATENCY, operation=operation)
    assert cell.summary.median == pytest.approx(seconds)
    assert (cell.status, cell.verified, cell.operation) == ("pass", verified, operation)
    cell = measure(text, FakeBackend(), Report.LATENCY, operation=operation)
    assert (cell.status, cell.operation) == ("skip", operation)
    assert "does not " in cell.reason
