"""Chases by a host thread: the cycle is laid once, proved, and loaded by no more than is asked."""

import pytest

from kinds_kit import outcome
from linkgauge import _native
from linkgauge.backends.host import HostBackend
from linkgauge.backends.protocol import Copy
from linkgauge.machine.host import read_host
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.machine import Node
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Report

CPU = read_host().nodes[0].cpus[0]
SIZE = 64 << 10


@pytest.fixture
def backend():
    return HostBackend([Node(0, (CPU, CPU))])  # one CPU stands for two: any machine has it


def copies_of(backend, text, size=SIZE, endless=True):
    return [
        Copy(t, *(None if m.is_null else backend.allocate(m, size, t.engine)
                  for m in (t.source, t.destination)), size, 1, endless=endless and number > 0)
        for number, t in enumerate(parse_transfers(text))
    ]  # fmt: skip


ALONE = "host:0/base -> null by cpu*1"


def test_a_cycle_is_laid_again_only_after_others_wrote_there(backend, monkeypatch):
    laid = []
    link = _native.link_cycle
    monkeypatch.setattr(_native, "link_cycle", lambda *of: laid.append(of) or link(*of))
    (copy,) = copies_of(backend, ALONE)
    for _ in range(2):
        backend.prepare([copy], "chase").close()
    assert len(laid) == 1
    backend.fill(copy.source, SIZE, 0, 1, inverted=False)
    backend.prepare([copy], "chase").close()
    assert len(laid) == 2
    (writes,) = parse_transfers("null -> host:0/base by cpu*1")
    backend.prepare([Copy(writes, None, copy.source, SIZE, 1)]).close()
    backend.prepare([copy], "chase").close()
    assert len(laid) == 3


def test_what_is_not_one_cycle_is_an_error(backend, monkeypatch):
    monkeypatch.setattr(_native, "cycle_length", lambda *of: 5)
    with pytest.raises(BackendError, match="a cycle of 5 lines instead of 1024"):
        backend.prepare(copies_of(backend, ALONE), "chase")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("host:0 -> null by cpu*2", "one thread"),
        ("null -> host:0 by cpu*1", "only reads"),
        ("host:0 -> host:0 by cpu*1", "only reads"),
        ("host:0 -> null by cpu*1 & host:0 -> null by cpu*2", "needs 3 CPUs of host:0, which"),
    ],
)
def test_what_is_no_chase_or_has_too_few_cpus_is_refused(backend, text, why):
    with pytest.raises(Unsupported, match=why):
        backend.prepare(copies_of(backend, text), "chase")


def test_others_run_for_as_long_as_the_chase_alone(backend):
    both = "host:0 -> null by cpu*1 & host:0 -> null by cpu*1"
    with pytest.raises(Unsupported, match="only a load on the memory"):
        backend.prepare(copies_of(backend, both, endless=False), "chase")


def test_a_cell_reports_the_latency_and_the_rate_beside_it():
    cpus = read_host().nodes[0].cpus
    if len(cpus) < 2:
        pytest.skip("needs two CPUs")
    backend = HostBackend([Node(0, cpus)])
    cell = outcome(
        backend,
        "host:0 -> null by cpu*1 & host:0 -> null by cpu*1 at 50%",
        SIZE,
        "chase",
        Report.LATENCY,
    )
    assert (cell.status, cell.reason) == ("pass", None)
    latency, concurrent = cell.parts
    assert latency.samples == cell.samples
    assert all(1e-10 < sample < 1e-3 for sample in cell.samples)
    assert all(rate > 0 for rate in concurrent.samples)
    assert cell.bytes == SIZE


def test_a_load_of_what_is_measured_is_refused(backend):
    cell = outcome(backend, "host:0 -> null by cpu*1 at 50%")
    assert (cell.status, "beside a latency" in cell.reason) == ("skip", True)
