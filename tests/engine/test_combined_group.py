"""Host threads and a device at the same time: one cell, two backends, each with its own clock."""

import pytest

from fakes import FakeBackend
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.pool import BufferPool
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from visit_kit import whole

TEXT = "host:0 -> host:0 by cpu & fake:0 -> host:0 by ce x2 & host:0 -> null by cpu"
SETTINGS = Settings((4096,), samples=6)


def measure(host, fake, report=Report.FIRST):
    transfers = parse_transfers(TEXT)
    planned = PlannedCell("0", "0", transfers, report)
    cell = Measurement(planned, 4096, SETTINGS, [host, fake, host])
    (result,) = measure_together([cell], SETTINGS, BufferPool()).cells
    return whole(result)


def backends():
    host, fake = FakeBackend("host"), FakeBackend("fake")
    host.seconds_a_byte, fake.seconds_a_byte = (lambda n: 1e-6), (lambda n: 2e-6)
    return host, fake


def test_each_transfer_is_timed_by_its_own_backend():
    host, fake = backends()
    cell = measure(host, fake)
    assert (cell.status, cell.verified) == ("pass", True)
    assert [part.summary.median for part in cell.parts] == pytest.approx([1e6, 0.5e6, 1e6])
    assert cell.summary.median == pytest.approx(1e6)
    assert (host.groups, fake.groups) == (1, 1)
    assert (host.open_groups, fake.open_groups) == (0, 0)


def test_buffers_are_those_of_the_backend_that_uses_them():
    host, fake = backends()
    measure(host, fake)
    assert [str(buffer.memory) for buffer in host.buffers] == ["host:0"] * 3
    assert [str(buffer.memory) for buffer in fake.buffers] == ["fake:0", "host:0"]


def test_a_wrong_byte_of_either_fails_the_cell():
    host, fake = backends()
    fake.on_sample = lambda group: fake.buffers[1].data.__setitem__(77, 0)
    cell = measure(host, fake)
    assert cell.status == "fail"
    assert "fake:0 -> host:0 by ce x2: host:0 is wrong at byte 77" in cell.reason


@pytest.mark.parametrize("guilty", ["host", "fake"])
def test_what_fails_in_one_leaves_nothing_open_in_the_other(guilty):
    host, fake = backends()
    failing = {"host": host, "fake": fake}[guilty]

    def fail(group):
        raise BackendError("copy", "lost")

    failing.on_sample = fail
    assert measure(host, fake).status == "error"
    assert (host.open_groups, fake.open_groups) == (0, 0)


def test_a_group_that_cannot_be_prepared_closes_the_one_that_was():
    host, fake = backends()

    def refuse(copies, operation="copy"):
        raise Unsupported("no streams left")

    fake.prepare = refuse
    cell = measure(host, fake)
    assert (cell.status, cell.reason) == ("skip", "no streams left")
    assert host.open_groups == 0
