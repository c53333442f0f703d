"""Transfers of a cell that name one staging buffer share it, and every byte is still compared."""

from contextlib import ExitStack

import pytest

from fakes import FakeBackend
from linkgauge.backends import open_backend
from linkgauge.backends.protocol import Pattern, Timing
from linkgauge.engine.combined_group import CombinedGroup
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.pool import BufferPool
from linkgauge.engine.staging import Staging
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import EngineSettings, Settings
from linkgauge.model.transfer import Report
from visit_kit import whole

SETTINGS = Settings((4096,), samples=3, loops=2)
READ, WRITE = "host:0/staging -> null by cpu", "null -> host:0/staging by cpu"
PULL, PUSH = "host:0/staging -> fake:0 by ce", "fake:0 -> host:0/staging by ce"
TOGETHER = [f"{device} & {host}" for device in (PULL, PUSH) for host in (READ, WRITE)]


def measure(text, fake, host, size=4096, settings=SETTINGS):
    transfers = parse_transfers(text)
    planned = PlannedCell("0", "0", transfers, Report.SUM)
    backends = [fake if t.engine.owner.is_device else host for t in transfers]
    cell = Measurement(planned, size, settings, backends)
    (result,) = measure_together([cell], settings, BufferPool()).cells
    result = whole(result)
    return result, cell


@pytest.mark.parametrize("text", [*TOGETHER, PULL, PUSH, READ, WRITE])
@pytest.mark.parametrize("size", [1, 511, 4096, 5000])
def test_one_buffer_serves_all_and_every_byte_is_verified(text, size):
    fake, host = FakeBackend("fake"), FakeBackend("host")
    result, cell = measure(text, fake, host, size)
    assert (result.status, result.reason, result.verified) == ("pass", None, True)
    staging = {id(b) for c in cell.copies for b in (c.source, c.destination)
               if b is not None and b.memory.is_staging}  # fmt: skip
    assert len(staging) == 1
    allocated = [b for b in (*fake.buffers, *host.buffers) if b.memory.is_staging]
    assert len(allocated) == 1


@pytest.mark.parametrize("text", TOGETHER)
def test_an_accelerator_allocates_what_host_threads_use_too(text):
    for order in (text, " & ".join(reversed(text.split(" & ")))):
        fake, host = FakeBackend("fake"), FakeBackend("host")
        measure(order, fake, host)
        assert host.buffers == []
        assert sorted(str(b.memory) for b in fake.buffers) == ["fake:0", "host:0/staging"]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"{PULL} & {READ}", "fake:0"),
        (f"{PULL} & {WRITE}", "fake:0"),
        (f"{PULL} & {WRITE}", "host:0/staging"),
        (f"{PUSH} & {READ}", "host:0/staging"),
        (f"{PUSH} & {WRITE}", "host:0/staging"),
    ],
)
def test_a_wrong_byte_of_what_was_written_fails(text, written):
    fake, host = FakeBackend("fake"), FakeBackend("host")

    def harm(group):
        for buffer in fake.buffers:
            if str(buffer.memory) == written:
                buffer.data[77] ^= 1

    # Whoever waits last: nobody writes once more.
    host.on_sample = harm
    result, _ = measure(text, fake, host)
    assert result.status == "fail"
    assert "wrong at byte 77 of 4096" in result.reason


def test_a_device_that_copies_nothing_fails_although_threads_write():
    fake, host = FakeBackend("fake"), FakeBackend("host")
    fake.prepare = lambda copies: Idle(copies)
    for text in (f"{PULL} & {WRITE}", f"{PUSH} & {READ}"):
        result, _ = measure(text, fake, host)
        assert result.status == "fail", text


class Idle:
    """A group that does nothing, quickly."""

    most_loops = 1 << 20

    def __init__(self, copies):
        self.copies = copies

    def arm(self, loops, laps=1): ...
    def open(self): ...
    def close(self): ...

    def wait(self):
        count = len(self.copies)
        return Timing((1.0,) * count, 1.0, (None,) * count, ((0.0, 1.0),) * count)


@pytest.mark.parametrize(
    ("text", "pattern", "written"),
    [
        (f"{PULL} & {READ}", Pattern.WORDS, False),
        (f"{PULL} & {WRITE}", Pattern.CONSTANT, True),
        (f"{PUSH} & {READ}", Pattern.WORDS, True),
        (f"{PUSH} & {WRITE}", Pattern.CONSTANT, True),
    ],
)
def test_all_of_a_cell_move_one_content(text, pattern, written):
    staging = Staging(parse_transfers(text), 4096)
    assert staging
    assert (staging.pattern, bool(staging.written)) == (pattern, written)


def test_threads_that_only_read_or_write_go_on_until_the_others_end():
    transfers = parse_transfers(f"{PULL} & {READ} & {WRITE} & host:0 -> null by cpu")
    staging = Staging(transfers, 4096)
    assert [staging.is_endless(t) for t in transfers] == [False, True, True, False]


def test_a_cell_without_staging_is_none():
    assert not Staging(parse_transfers("host:0 -> fake:0 by ce"), 4096)


@pytest.mark.parametrize(
    "text", ["host:0/staging -> host:0/staging by cpu", "host:0/staging <-> fake:0 by sm"]
)
def test_what_cannot_share_is_skipped_with_the_reason(text):
    result, _ = measure(text, FakeBackend("fake"), FakeBackend("host"))
    assert result.status == "skip"
    assert "staging buffer" in result.reason


HERE = "host:0 -> host:0/staging by cpu*1 & host:0/staging -> null by cpu*1"


@pytest.mark.parametrize(
    "text",
    [
        HERE,
        HERE.replace("host:0/staging -> null", "null -> host:0/staging"),
        "host:0/staging -> host:0 by cpu*1 & null -> host:0/staging by cpu*1",
        "host:0/staging -> host:0 by cpu*1 & host:0/staging -> null by cpu*1",
        READ,
        WRITE,
    ],
)
def test_real_threads_share_a_real_buffer(text):
    host = open_backend("host", EngineSettings())
    result, cell = measure(text, host, host, size=100_000)
    assert (result.status, result.reason, result.verified) == ("pass", None, True)
    assert all(part.summary.median > 0 for part in result.parts)
    assert [copy.endless for copy in cell.copies][-1] is True


def test_endless_copies_alone_last_until_somebody_has_waited(monkeypatch):
    calls = []
    monkeypatch.setattr("time.sleep", calls.append)

    class Recorder(Idle):
        def wait(self):
            calls.append("wait")
            return super().wait()

    group = CombinedGroup([Recorder([None])], [[0]], ExitStack(), 0.25)
    group.arm(1)
    group.open()
    assert group.wait().seconds == (1.0,)
    assert calls == [0.25, "wait"]
