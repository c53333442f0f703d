"""Transfers of a cell that name one staging buffer share it, and every byte is still compared."""

import pytest

from fakes import FakeBackend
from linkgauge.backends.protocol import Timing
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import whole, worker_with

SETTINGS = Settings((4096,), samples=3, loops=2)
READ, WRITE = "host:0/staging -> null by cpu", "null -> host:0/staging by cpu"
PULL, PUSH = "host:0/staging -> fake:0 by ce", "fake:0 -> host:0/staging by ce"
TOGETHER = [f"{device} & {host}" for device in (PULL, PUSH) for host in (READ, WRITE)]


def measure(text, size=4096, **backends):
    planned = PlannedCell("0", "0", parse_transfers(text), Report.SUM)
    (repetition,) = worker_with(SETTINGS, **backends).measure([planned], size)
    return whole(repetition)


@pytest.fixture
def both():
    return {"fake": FakeBackend("fake"), "host": FakeBackend("host")}


@pytest.mark.parametrize("text", [*TOGETHER, PULL, PUSH, READ, WRITE])
@pytest.mark.parametrize("size", [1, 511, 5000])
def test_one_buffer_serves_all_and_every_byte_is_verified(both, text, size):
    result = measure(text, size, **both)
    assert (result.status, result.reason, result.verified) == ("pass", None, True)
    buffers = [*both["fake"].buffers, *both["host"].buffers]
    assert len([one for one in buffers if one.memory.is_staging]) == 1


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (f"{PULL} & {READ}", "fake:0"), (f"{PULL} & {WRITE}", "fake:0"),
        (f"{PULL} & {WRITE}", "host:0/staging"), (f"{PUSH} & {READ}", "host:0/staging"),
        (f"{PUSH} & {WRITE}", "host:0/staging"),
    ],
)  # fmt: skip
def test_a_wrong_byte_of_what_was_written_fails(both, text, written):
    def harm(group):
        for buffer in both["fake"].buffers:
            if str(buffer.memory) == written:
                buffer.data[77] ^= 1

    # Whoever waits last: nobody writes once more.
    both["host"].on_sample = harm
    result = measure(text, **both)
    assert result.status == "fail"
    assert "wrong at byte 77 of 4096" in result.reason


class Idle:
    """A group that does nothing, quickly."""

    most_loops = 1 << 20

    def __init__(self, copies):
        self.copies = copies

    def arm(self, loops, batches=1): ...
    def open(self): ...
    def close(self): ...

    def wait(self):
        count = len(self.copies)
        return Timing((1.0,) * count, 1.0, (None,) * count, ((0.0, 1.0),) * count)


@pytest.mark.parametrize("text", [f"{PULL} & {WRITE}", f"{PUSH} & {READ}"])
def test_a_device_that_copies_nothing_fails_although_threads_write(both, text):
    both["fake"].prepare = lambda copies: Idle(copies)
    assert measure(text, **both).status == "fail"


@pytest.mark.parametrize(
    "text", ["host:0/staging -> host:0/staging by cpu", "host:0/staging <-> fake:0 by sm"]
)
def test_what_cannot_share_is_skipped_with_the_reason(both, text):
    result = measure(text, **both)
    assert result.status == "skip"
    assert "staging buffer" in result.reason


@pytest.mark.parametrize(
    "text",
    [
        "host:0 -> host:0/staging by cpu*1 & host:0/staging -> null by cpu*1",
        "host:0 -> host:0/staging by cpu*1 & null -> host:0/staging by cpu*1",
        "host:0/staging -> host:0 by cpu*1 & host:0/staging -> null by cpu*1", READ, WRITE,
    ],
)  # fmt: skip
def test_real_threads_share_a_real_buffer(text):
    result = measure(text, size=100_000)
    assert (result.status, result.reason, result.verified) == ("pass", None, True)
    assert all(part.summary.median > 0 for part in result.parts)
