"""A worker measures whole cells, whether or not anybody asked it what machine there is."""

from contextlib import closing

import pytest
from msgspec.structs import replace

from fakes import FakeBackend
from linkgauge.engine import worker
from linkgauge.engine.worker import LocalWorker
from linkgauge.machine.host import read_host
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report

SIZE = 4096


@pytest.fixture
def backend(monkeypatch):
    """A host with room for two buffers: half of what is available may be kept."""
    backend = FakeBackend("host")
    host = replace(read_host(), memory_available=4 * SIZE)
    monkeypatch.setattr(worker, "read_host", lambda: host)
    monkeypatch.setattr(worker, "open_backend", lambda name, engines, host: backend)
    return backend


@pytest.mark.parametrize("surveyed", [True, False])
def test_a_worker_keeps_no_more_than_its_share_of_the_hosts_memory(backend, surveyed):
    with closing(LocalWorker(Settings((SIZE,), samples=1))) as here:
        if surveyed:
            here.survey([])
        for node in range(4):
            text = f"host:{node} -> host:{node} by cpu"
            here.measure([PlannedCell("0", "0", parse_transfers(text), Report.FIRST)], SIZE)
        kept = [buffer for buffer in backend.buffers if not buffer.freed]
        assert len(kept) == 2
    assert all(buffer.freed for buffer in backend.buffers)


def test_a_worker_skips_what_the_plan_has_a_reason_against():
    transfers = parse_transfers("host:0 -> host:0 by cpu")
    cell = PlannedCell("0", "0", transfers, Report.FIRST, "needs 2 TiB, host:0 has 1 TiB")
    with closing(LocalWorker(Settings((4096,), samples=1))) as local:
        (result,) = local.measure((cell,), 4096)
    assert (result.status, result.reason, result.kind) == ("skip", cell.reason, "size")
