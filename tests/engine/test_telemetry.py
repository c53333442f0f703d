"""Devices are sensed while they are measured, by nobody who measures, and at no cell's cost."""

import threading
import time

import pytest

from fakes import FakeBackend
from linkgauge.backends.protocol import Virtual
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.pool import BufferPool
from linkgauge.engine.telemetry import PATIENCE, PERIOD, devices_of, sensing
from linkgauge.engine.worker import LocalWorker
from linkgauge.model.inventory import Reading, Telemetry
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from sim_kit import SIZE, planned, settings

FIRST = Memory("fake", 0)


class SensedBackend(FakeBackend):
    """`answer(n)` is what the n-th question about a device is answered with."""

    def __init__(self):
        super().__init__()
        self.asked = []
        self.threads = set()
        self.answer = lambda number: {}

    def inventory(self):
        return ()

    def sense(self, devices):
        self.asked.append(tuple(devices))
        self.threads.add(threading.current_thread())
        number = len(self.asked)
        return tuple(Telemetry(memory=str(device), **self.answer(number)) for device in devices)


@pytest.fixture
def backend():
    return SensedBackend()


def wait_for(true, seconds=10.0):
    deadline = time.monotonic() + seconds
    while not true() and time.monotonic() < deadline:
        time.sleep(0.001)
    assert true()


def sensed(backend, count, threaded=True):
    """The reading of a time in which the device was asked so often."""
    with sensing({FIRST: backend}, threaded) as sensed:
        wait_for(lambda: len(backend.asked) >= count)
    (reading,) = sensed.readings([FIRST])
    return reading


def measure(backend, *texts, **more):
    """The results of cells that are measured together."""
    options = Settings((4096,), samples=6, **more)
    cells = []
    for number, text in enumerate(texts):
        transfers = parse_transfers(text)
        one = PlannedCell(str(number), "0", transfers, Report.SUM, number=number)
        cells.append(Measurement(one, 4096, options, [backend] * len(transfers)))
    return measure_together(cells, options, BufferPool()).cells


class TestDevices:
    def test_are_all_that_take_part(self, backend):
        text = "fake:0 -> fake:1 by fake:2.ce & host:0 -> fake:3 by ce & fake:3 -> null by sm"
        transfers = parse_transfers(text)
        found = devices_of(transfers, [backend] * 3)
        assert [str(memory) for memory in found] == ["fake:0", "fake:1", "fake:2", "fake:3"]

    def test_are_none_of_a_backend_without_a_library(self):
        transfers = parse_transfers("fake:0 -> fake:1 by ce")
        assert devices_of(transfers, [FakeBackend()]) == {}

    def test_are_none_where_only_the_host_is_measured(self, backend):
        host = FakeBackend("host")
        assert devices_of(parse_transfers("host:0 -> host:1 by cpu"), [host]) == {}


class TestReadings:
    def test_join_what_was_found_over_the_time(self, backend):
        found = [
            {"link_speed": 2.5, "link_width": 16, "clock": 345e6, "temperature": 40.0},
            {"link_speed": 32.0, "link_width": 16, "clock": 1980e6, "throttled": ("power cap",)},
            {"link_speed": 32.0, "link_width": 8, "clock": 1755e6, "temperature": 61.0,
             "throttled": ("power cap", "sync boost")},
        ]  # fmt: skip
        backend.answer = lambda number: (
            {**found[number - 1], "pcie_replays": 10 * number} if number <= 3 else found[2]
        )
        with sensing({FIRST: backend}, threaded=False) as sensed:
            sensed.take()
            sensed.take()
        (reading,) = sensed.readings([FIRST])
        assert (reading.memory, reading.count) == ("fake:0", 3)
        assert (reading.link_speed, reading.link_width) == (32.0, 16)
        assert (reading.clock_min, reading.clock_max) == (345e6, 1980e6)
        assert reading.temperature_max == 61.0
        assert reading.throttled == ("power cap", "sync boost")
        assert reading.pcie_replays == 20
        assert reading.seconds > 0

    def test_leave_null_what_the_library_does_not_tell(self, backend):
        reading = sensed(backend, 3)
        assert reading == Reading(memory="fake:0", count=reading.count, seconds=reading.seconds)
        assert sensed(SensedBackend(), 1, threaded=False) == Reading(memory="fake:0", count=1)

    def test_are_taken_several_times_a_second(self, backend):
        reading = sensed(backend, 6)
        # So many periods went by at the least; a loaded machine is slower, never faster.
        assert reading.seconds >= (reading.count - 1) * PERIOD
        assert 1 / PERIOD >= 10

    def test_of_a_virtual_backend_are_taken_once_and_without_a_thread(self, backend):
        assert sensed(backend, 1, threaded=False).count == 1
        assert backend.threads == {threading.current_thread()}

    def test_of_others_are_taken_off_the_measuring_thread(self, backend):
        sensed(backend, 3)
        assert len(backend.threads) == 1
        assert threading.current_thread() not in backend.threads

    def test_end_with_the_cell(self, backend):
        sensed(backend, 2)
        (thread,) = backend.threads
        thread.join(10)
        asked = len(backend.asked)
        time.sleep(2 * PERIOD)
        assert not thread.is_alive()
        assert len(backend.asked) == asked

    def test_are_one_at_least_however_short_the_cell(self, backend):
        with sensing({FIRST: backend}, threaded=True) as sensed:
            pass
        wait_for(lambda: sensed.readings([FIRST])[0].count == 1)

    def test_that_fail_are_null(self, backend):
        def fail(number):
            raise RuntimeError("the driver is gone")

        backend.answer = fail
        assert sensed(backend, 3) == Reading(memory="fake:0", count=0)
        assert sensed(backend, 4, threaded=False) == Reading(memory="fake:0", count=0)

    def test_that_hang_hold_nobody_up(self, backend):
        goes_on = threading.Event()

        def hang(number):
            if number == 2:
                goes_on.wait(60)
            return {}

        backend.answer = hang
        try:
            with sensing({FIRST: backend}, threaded=True) as sensed:
                wait_for(lambda: len(backend.asked) == 2)
                begun = time.monotonic()
            # It waits for no more than its patience, however long the scheduler takes.
            assert time.monotonic() - begun < 60 * PATIENCE + 10
            assert sensed.readings([FIRST])[0].count == 1
        finally:
            goes_on.set()


class TestCells:
    def test_have_the_readings_of_their_own_devices(self, backend):
        first, second = measure(backend, "fake:0 -> fake:1 by ce", "host:0 -> fake:2 by ce")
        assert [reading.memory for reading in first.readings] == ["fake:0", "fake:1"]
        assert [reading.memory for reading in second.readings] == ["fake:2"]
        assert set(backend.asked) == {tuple(Memory("fake", number) for number in range(3))}
        assert (first.status, second.status) == ("pass", "pass")

    def test_have_those_of_their_own_space(self, backend):
        spaces = [Memory("fake:cuda", 0), Memory("fake:xpu", 0)]
        with sensing(dict.fromkeys(spaces, backend), threaded=False) as sensed:
            assert backend.asked == [tuple(spaces)]
        readings = sensed.readings(spaces)
        assert [(one.memory, one.count) for one in readings] == [
            ("fake:cuda:0", 1), ("fake:xpu:0", 1),
        ]  # fmt: skip

    def test_have_none_without_a_library(self):
        (cell,) = measure(FakeBackend(), "fake:0 -> fake:1 by ce")
        assert cell.readings == ()

    def test_are_not_lost_by_a_library_that_fails(self, backend):
        def fail(number):
            raise OSError("no such device")

        backend.answer = fail
        (cell,) = measure(backend, "fake:0 -> fake:1 by ce")
        assert cell.status == "pass"
        assert [reading.count for reading in cell.readings] == [0, 0]

    def test_are_sensed_in_the_measuring_phase_alone(self, backend):
        phases = []
        options = Settings((4096,), samples=6)
        transfers = parse_transfers("fake:0 -> fake:1 by ce")
        one = PlannedCell("0", "0", transfers, Report.SUM)
        backend.answer = lambda number: phases.append(at[-1]) or {}
        at = []
        cell = Measurement(one, 4096, options, [backend])
        measure_together([cell], options, BufferPool(), at.append)
        assert set(phases) == {"measure"}


class TestSimulatedMachines:
    def test_show_a_slow_link_while_it_is_slow(self):
        worker = LocalWorker(settings("slow sim:1 rate=25% cells=1"))
        machine = worker.survey(["sim"])
        assert isinstance(worker._backend("sim"), Virtual)
        readings = []
        for number in range(3):
            cell = planned("sim:0 -> sim:1 by ce", number=number)
            (result,) = worker.measure((cell,), SIZE)
            readings.append(result.readings)
        assert [[one.memory for one in some] for some in readings] == [["sim:0", "sim:1"]] * 3
        throttled = [bool(second.throttled) for _, second in readings]
        assert throttled == [False, True, False]
        assert [one.memory for one in machine.inventory.accelerators] == [
            one.memory for one in machine.devices["sim"]
        ]

    def test_tell_afterwards_what_rose(self):
        worker = LocalWorker(settings("slow sim:0-sim:1 rate=25%"))
        before = worker.survey(["sim"]).inventory
        worker.measure((planned("sim:0 -> sim:1 by ce"),), SIZE)
        after = worker.look(["sim"])
        rose = {
            now.memory
            for then, now in zip(before.accelerators, after.accelerators, strict=True)
            if sum(link.errors for link in now.links) > sum(link.errors for link in then.links)
        }
        assert rose == {"sim:0", "sim:1"}
        assert after.host == before.host
