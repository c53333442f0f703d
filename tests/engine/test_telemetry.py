"""Devices are sensed while they are measured, by nobody who measures, and at no cell's cost."""

import threading
import time

import pytest

from fakes import FakeBackend
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.hardware.inventory import Reading, Telemetry
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from repetition_kit import worker_with

LIMIT = 10.0
COPY = "fake:0 -> null by sm"


class SensedBackend(FakeBackend):
    """`answer(n)` is what the n-th question about devices is answered with."""

    def __init__(self):
        super().__init__()
        self.asked = []
        self.threads = set()
        self.answer = lambda number: {}

    def inventory(self):
        return ()

    def sense(self, devices):
        self.asked.append(tuple(map(str, devices)))
        self.threads.add(threading.current_thread())
        number = len(self.asked)
        return tuple(Telemetry(memory=str(device), **self.answer(number)) for device in devices)


@pytest.fixture
def backend():
    return SensedBackend()


def measure(backend, *texts, questions=0, on_phase=lambda phase: None):
    """The results of cells that are measured together, for as long as so many questions take."""
    options = Settings((4096,), samples=1, loops=1)
    cells = [
        PlannedCell(str(number), "0", parse_transfers(text), Report.SUM, number=number)
        for number, text in enumerate(texts)
    ]

    def wait(group):
        deadline = time.monotonic() + LIMIT
        while backend.asked and len(backend.asked) < questions and time.monotonic() < deadline:
            time.sleep(0.001)

    backend.on_sample = wait
    return worker_with(options, on_phase, fake=backend).measure(cells, 4096)


def test_a_reading_joins_what_was_found_over_the_time(backend):
    found = [
        {"link_speed": 2.5, "link_width": 16, "clock": 345e6, "temperature": 40.0},
        {"link_speed": 32.0, "link_width": 16, "clock": 1980e6, "throttled": ("power cap",)},
        {"link_speed": 32.0, "link_width": 8, "clock": 1755e6, "temperature": 61.0,
         "throttled": ("power cap", "sync boost")},
    ]  # fmt: skip
    backend.answer = lambda number: {**found[min(number, 3) - 1], "pcie_replays": 10 * number}
    (cell,) = measure(backend, COPY, questions=4)
    (reading,) = cell.readings
    assert (reading.memory, reading.link_speed) == ("fake:0", 32.0)
    assert (reading.clock_min, reading.clock_max) == (345e6, 1980e6)
    assert reading.temperature_max == 61.0
    assert reading.throttled == ("power cap", "sync boost")
    assert reading.pcie_replays == 10 * (reading.count - 1)
    assert reading.seconds > 0


def test_readings_are_taken_off_the_measuring_thread_and_end_with_the_cell(backend):
    measure(backend, COPY, questions=2)
    (thread,) = backend.threads
    assert thread is not threading.current_thread()
    thread.join(LIMIT)
    assert not thread.is_alive()


def test_a_library_that_fails_loses_no_cell(backend):
    def fail(number):
        raise OSError("no such device")

    backend.answer = fail
    (cell,) = measure(backend, COPY, questions=3)
    assert cell.status == "pass"
    assert cell.readings == (Reading(memory="fake:0", count=0),)


def test_a_library_that_hangs_holds_nobody_up(backend):
    goes_on = threading.Event()

    def hang(number):
        if number == 2:
            goes_on.wait(60)
        return {}

    backend.answer = hang
    begun = time.monotonic()
    try:
        (cell,) = measure(backend, COPY, questions=2)
        assert time.monotonic() - begun < 30
        assert cell.readings[0].count == 1
    finally:
        goes_on.set()


def test_cells_have_the_readings_of_their_own_devices(backend):
    texts = "fake:0 -> fake:1 by fake:3.ce", "host:0 -> fake:2 by ce"
    first, second = measure(backend, *texts)
    assert {one.memory for one in first.readings} == {"fake:0", "fake:1", "fake:3"}
    assert [one.memory for one in second.readings] == ["fake:2"]
    assert {frozenset(asked) for asked in backend.asked} == {
        frozenset(f"fake:{number}" for number in range(4))
    }
    (without,) = measure(Silent(), COPY)
    assert without.readings == ()


class Silent(FakeBackend):
    """Without a library."""

    asked = ()


def test_devices_are_sensed_in_the_measuring_phase_alone(backend):
    phases, at = [], []
    backend.answer = lambda number: phases.append(at[-1]) or {}
    measure(backend, COPY, questions=2, on_phase=at.append)
    assert set(phases) == {"measure"}
