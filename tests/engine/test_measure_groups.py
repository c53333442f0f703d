"""What groups check themselves, and host threads that work beside a device."""

import pytest

from engine.test_measure import SETTINGS, SIZE, measure, planned
from fakes import FakeBackend
from linkgauge.backends.protocol import Gated, SamplingPolicy, Timing
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import whole, worker_with


@pytest.mark.parametrize(
    ("found", "verify", "outcome"),
    [
        ("the product is wrong in row 5", True, ("fail", "wrong-bytes", False)),
        (None, True, ("pass", None, True)),
        ("wrong", False, ("pass", None, None)),
    ],
)
def test_what_a_group_computed_itself_is_its_own_to_check(found, verify, outcome):
    class Group(Gated):
        policy = SamplingPolicy(steps=10)

        def wait(self):
            loops, batches = self.pass_gate()
            return Timing((0.1 * loops * batches,), 0.1 * loops * batches, (None,))

        def mismatch(self):
            return found

    backend = FakeBackend()
    backend.prepare = lambda copies, operation: Group()
    settings = Settings((SIZE,), samples=3, verify=verify)
    cell = measure(
        "null -> null by fake:0.sm", backend, Report.RATE, settings=settings,
        operation="matmul-fp32",
    )  # fmt: skip
    assert cell.summary.median == pytest.approx(10 / 0.1)
    assert (cell.status, cell.kind, cell.verified) == outcome
    assert cell.reason == (found if verify else None)


class TestHostThreadsBesideADevice:
    """One cell, two backends, each with its own clock."""

    TEXT = "host:0 -> host:0 by cpu & fake:0 -> host:0 by ce x2 & host:0 -> null by cpu"

    @pytest.fixture
    def both(self):
        host, fake = FakeBackend("host"), FakeBackend("fake")
        host.seconds_a_byte, fake.seconds_a_byte = (lambda n: 1e-6), (lambda n: 2e-6)
        return host, fake

    def measure(self, host, fake):
        (repetition,) = worker_with(SETTINGS, host=host, fake=fake).measure(
            [planned(self.TEXT)], SIZE
        )
        assert (host.open_groups, fake.open_groups) == (0, 0)
        return whole(repetition, settings=SETTINGS)

    def test_each_transfer_is_timed_by_its_own_backend(self, both):
        host, fake = both
        cell = self.measure(host, fake)
        assert (cell.status, cell.verified) == ("pass", True)
        assert [part.summary.median for part in cell.parts] == pytest.approx([1e6, 0.5e6, 1e6])
        assert cell.summary.median == pytest.approx(1e6)
        assert [str(buffer.memory) for buffer in host.buffers] == ["host:0"] * 3
        assert [str(buffer.memory) for buffer in fake.buffers] == ["fake:0", "host:0"]

    def test_a_wrong_byte_of_either_fails_the_cell(self, both):
        both[1].on_sample = lambda group: both[1].buffers[1].data.__setitem__(77, 0)
        cell = self.measure(*both)
        assert cell.status == "fail"
        assert "fake:0 -> host:0 by ce x2: host:0 is wrong at byte 77" in cell.reason

    @pytest.mark.parametrize("guilty", [0, 1])
    def test_what_fails_in_one_leaves_nothing_open_in_the_other(self, both, guilty):
        def fail(group):
            raise BackendError("copy", "lost")

        both[guilty].on_sample = fail
        assert self.measure(*both).status == "error"

    def test_a_group_that_cannot_be_prepared_closes_the_one_that_was(self, both):
        def refuse(copies, operation="copy"):
            raise Unsupported("no streams left")

        both[1].prepare = refuse
        cell = self.measure(*both)
        assert (cell.status, cell.reason) == ("skip", "no streams left")
