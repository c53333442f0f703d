"""p2pBandwidthLatencyTest on CUDA: without peer access a copy is one call of the driver's."""

from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from fakes import device
from linkgauge.compat import cuda_samples_p2p
from linkgauge.compat.base import Where
from linkgauge.compat.cuda_samples_p2p import Apart, PeerTestOptions
from linkgauge.model.result import CellResult
from linkgauge.model.settings import Settings
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report

ONE, OTHER = DEVICES = device(0, "cuda"), device(1, "cuda")


class Measured:
    """A gauge that remembers what it is asked for: each copy has 40 GB/s, or takes 5 us."""

    exit_code = 0
    context = SimpleNamespace(devices=DEVICES)

    def __init__(self):
        self.asked = []

    def measure(self, cells, operation="copy", *, optional=False):
        self.asked += [tuple(map(str, cell)) for cell in cells]
        figures = (5e-6 if operation == "enqueue" else 40e9,) * 6
        return [CellResult("0", "0", tuple(cell), Report.SPAN, "pass", summary=summarize(figures))
                for cell in cells]  # fmt: skip

    def tell(self, line): ...


@pytest.fixture
def gauges():
    return Measured(), Measured()


def test_its_bandwidth_is_that_of_the_one_copy(gauges):
    reaching, closed = gauges
    found = Apart(closed).rates(reaching, {(ONE, OTHER): [(ONE, OTHER), (OTHER, ONE)]})
    assert found == {(ONE, OTHER): pytest.approx(40)}
    assert closed.asked == [("cuda:0 -> cuda:1 by ce", "cuda:1 -> cuda:0 by ce")]
    assert reaching.asked == []


def test_where_no_driver_does_it_there_are_two_legs(gauges):
    reaching, _ = gauges
    found = Apart(None).rates(reaching, {(ONE, OTHER): [(ONE, OTHER)]})
    assert found == {(ONE, OTHER): pytest.approx(20)}
    assert reaching.asked == [("cuda:0 -> host:0 by ce", "host:0 -> cuda:1 by ce")]


def test_so_are_its_latencies(gauges, capsys):
    reaching, closed = gauges
    options = PeerTestOptions(reads=False, engine="ce", size=16)
    cuda_samples_p2p._latencies(reaching, Apart(closed), options, frozenset())
    there, back = ("cuda:0 -> cuda:1 by ce",), ("cuda:1 -> cuda:0 by ce",)
    assert closed.asked == [there, back] * 2  # of the device, then of the host
    assert set(reaching.asked) == {("cuda:0 -> cuda:0 by ce",), ("cuda:1 -> cuda:1 by ce",)}
    disabled = capsys.readouterr().out.partition("P2P=Enabled")[0]
    assert disabled.count("5.00") == 4


@pytest.mark.parametrize(
    ("backend", "devices", "own"), [("cuda", 2, True), ("cuda", 1, False), ("opencl", 2, False)]
)
def test_only_cuda_has_a_process_of_its_own_for_it(monkeypatch, backend, devices, own):
    opened = []

    @contextmanager
    def open_devices(where, settings, tells):
        opened.append(settings.engines.peer_access)
        yield None

    monkeypatch.setattr(cuda_samples_p2p, "opened_devices", open_devices)
    context = SimpleNamespace(backend=backend, devices=DEVICES[:devices], settings=Settings((16,)))
    with cuda_samples_p2p._without_access(Where(), context) as apart:
        assert (apart.driver is not None) == own
    assert opened == [False] * own
