"""A run ends by its time budget, and spends it where figures are least precise."""

import gzip
import time
from collections import Counter
from contextlib import closing

import msgspec
import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.backends.sim.description import load
from linkgauge.engine import budget, controller
from linkgauge.engine.budget import (
    Promise,
    budget_of,
    expected_seconds,
    promise_of,
    seconds_between,
)
from linkgauge.engine.controller import Observer, execute
from linkgauge.engine.kept.journal import (
    MeasuredRepetition,
    Opened,
    assemble,
    follow,
    repetitions_of,
)
from linkgauge.engine.kept.run_state import state_of
from linkgauge.engine.repetitions import Repetitions
from linkgauge.engine.workers import process
from linkgauge.engine.workers.outcomes import Repetition
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.result import PlannedCell, PlannedTable
from linkgauge.model.documents.soak import Soaking
from linkgauge.model.settings import Budget, Settings, Simulation
from linkgauge.report.words.run_notes import more_precise, unreached
from recorded_kit import OF_ANOTHER, OF_ONE, OF_TWO, RECORDED, recorded_of_one
from repetition_kit import plan_of, planned, repeated, table

SETTINGS = Settings((64,), precision=0.01, max_time=6000.0)
PLAN = (table(*map(planned, "12345678")),)


class Clock:
    """Time that passes only while cells are measured, each for `seconds` of its column."""

    def __init__(self, monkeypatch, seconds):
        self.now, self.seconds, self.repetitions = 0.0, seconds, Counter()
        self.most = []
        monkeypatch.setattr(controller.time, "monotonic", lambda: self.now)

    def measure(self, cells, size, repetition):
        (cell,) = cells
        self.now += self.seconds(cell.column)
        self.most.append(repetition.most)
        self.repetitions[cell.column] += 1
        rate = 1.0 + (self.repetitions[cell.column] % 3) * (0.2 if cell.column in "38" else 0.001)
        return (repeated(cell, rate, rate, rate, seconds=0.06),)

    def look(self, names):
        return None


def ran(clock, seconds, plan=PLAN):
    """The records of a run with this time for measuring, and the run."""
    opened = Opened(
        id="1", label="l", command=(), started="s", machine=machine(), settings=SETTINGS,
        plan=plan, budget=Budget(seconds + 5, seconds + 5, 0.9 * seconds, seconds),
    )  # fmt: skip
    records = [opened]
    return records, execute((opened,), clock, records.append, Observer())


def test_time_goes_to_the_least_precise_figures(monkeypatch):
    clock = Clock(monkeypatch, lambda column: 1.0)
    _, run = ran(clock, 40.0)
    assert clock.now <= 40
    steady = max(count for column, count in clock.repetitions.items() if column not in "38")
    assert min(clock.repetitions["3"], clock.repetitions["8"]) > steady >= 2
    stopped = {cell.column: cell.stopped for cell in run.results[0].cells}
    assert stopped["3"] == stopped["8"] == "budget"
    assert {stopped[column] for column in "124567"} == {"precision"}
    assert "the time budget of 45 s was used" in more_precise(run)


def test_what_the_budget_does_not_reach_is_skipped_and_said(monkeypatch):
    clock = Clock(monkeypatch, lambda column: 1.0)
    records, run = ran(clock, 5.0)
    cells = {cell.column: cell for cell in run.results[0].cells}
    assert [cells[column].status for column in "12345678"] == ["pass"] * 5 + ["skip"] * 3
    assert {cells[column].kind for column in "678"} == {"budget"}
    assert unreached(run).startswith("3 cells of b in 10 s")
    assert run.finished is not None
    assert state_of(records).is_complete
    assert assemble(records) == run


def test_a_repetition_knows_when_it_is_given_up(monkeypatch):
    clock = Clock(monkeypatch, lambda column: 1.0)
    ran(clock, 5.0)
    assert clock.most == [
        6.0 - passed for passed in range(5)
    ]  # a fifth of what is left for the end


def test_what_was_expensive_is_repeated_again_only_if_there_is_time(monkeypatch):
    clock = Clock(monkeypatch, lambda column: 10.0 if column == "8" else 0.1)
    ran(clock, 20.0)
    assert clock.repetitions["8"] == 1
    assert clock.repetitions["3"] > 2
    assert clock.now < 20


@pytest.mark.parametrize("cut", [3, 9, 14, 21])
def test_a_resumed_run_goes_on_with_what_is_left_of_its_time(monkeypatch, cut):
    records, _ = ran(Clock(monkeypatch, lambda column: 1.0), 25.0)
    repetitions = repetitions_of(records[:cut])
    assert repetitions.at == max(0, cut - 1)
    for record in records[cut:]:
        if isinstance(record, MeasuredRepetition) and record.at is not None:
            assert any(record.cell.column == one.column for one in repetitions.left()[0])
        follow(repetitions, record)
    assert not any(repetitions.left())


def test_cells_measured_at_once_stay_together():
    rounds = [planned(column, round=number // 2) for number, column in enumerate("123456")]
    repetitions = Repetitions((table(*rounds),), SETTINGS, Budget(20.0, 20.0, 10.0, 11.0))
    at = 0.0
    while any(left := repetitions.left()):
        assert len(left[0]) % 2 == 0
        for first, second in zip(left[0][::2], left[0][1::2], strict=True):
            assert first.round == second.round
            at += 1.0
            for cell in (first, second):
                rate = 1.0 + 0.3 * (at % 2) * (cell.column == "4")
                repetitions.add(0, repeated(cell, rate, rate), at)
    assert at <= 11


def test_a_cell_under_way_is_given_up_when_the_time_is_over():
    hanging = Simulation(*load("ppu-8"), ("hang sim:1 cells=0",))
    cells = [planned("1", "sim:0 -> sim:1 by sim:0.sm", number=number) for number in (0, 1)]
    with closing(Supervisor(Settings((64,), samples=6, simulation=hanging))) as worker:
        worker.survey(["sim"])
        began = time.monotonic()
        (cut,) = worker.measure(cells[:1], 1 << 20, Repetition(most=0.5))
        assert time.monotonic() - began < 9
        assert (cut.status, cut.kind) == ("skip", "budget")
        (after,) = worker.measure(cells[1:], 1 << 20)
        assert after.status == "pass"


def test_what_is_promised():
    plan = plan_of(machine([device()]), "host_to_device_memcpy_ce")
    quick = replace(SETTINGS, profile="quick", max_time=0.3)
    cells = sum(len(one.cells) for one in plan)
    assert promise_of(plan, quick, 12.5) == (12.5, 12.5)
    assert promise_of(plan, quick, None) is None
    assert promise_of(plan, quick, "plan") == (30, 60)
    assert promise_of(plan * 90, quick, "plan") == (45 * cells, 90 * cells)
    short = replace(quick, profile="standard")
    needs = budget.START_SECONDS + budget.TIMES * budget.most_seconds(plan, short)
    assert promise_of(plan, short, "plan") == (round(needs), 2 * round(needs))
    aim, most = promise_of(plan, SETTINGS, "plan")
    assert most == 2 * aim > cells * SETTINGS.max_time
    simulated = replace(quick, simulation=Simulation("m", "d"))
    for endless in (replace(quick, samples=3), replace(quick, soak=Soaking(9.0)), simulated):
        assert promise_of(plan, endless, "plan") is None
    order = ("host_to_device_memcpy_ce",)
    assert budget_of(plan, simulated, 7.0, 0.0) == Budget(7.0, 7.0, pytest.approx(6.3), 7.0, order)


def test_a_busy_machine_leaves_more_time_for_the_report(monkeypatch):
    plan = plan_of(machine([device()]), "host_to_device_memcpy_ce")
    monkeypatch.setattr(budget.time, "monotonic", lambda: 103.0)
    monkeypatch.setattr(budget.time, "process_time", lambda: 0.3)
    found = []
    for waited in (0.0, 1.0, 100.0):
        monkeypatch.setattr(process, "waits_for_cpu", lambda pid, waited=waited: {str(pid): waited})
        found.append(budget_of(plan, SETTINGS, 40.0, 100.0))
    assert {one.most for one in found} == {40}
    quiet, busy, overloaded = (one.measuring for one in found)
    # Three seconds went by until the machine was open, and loading had taken 0.3 s.
    assert quiet == pytest.approx(40 - 3 - 5 * 0.3, abs=0.1)
    assert busy == overloaded == pytest.approx(40 - 3 - 0.1 * 40)  # time was given to measure
    assert all(one.passes < one.measuring for one in found)


def test_a_busy_machine_leaves_more_time_for_the_report_where_the_plan_says_how_long(monkeypatch):
    plan = plan_of(machine([device()]), "host_to_device_memcpy_ce")
    quick = replace(SETTINGS, profile="quick", max_time=0.3)
    monkeypatch.setattr(budget.time, "monotonic", lambda: 103.0)
    monkeypatch.setattr(budget.time, "process_time", lambda: 0.3)
    found = []
    for waited in (0.0, 1.0, 100.0):
        monkeypatch.setattr(process, "waits_for_cpu", lambda pid, waited=waited: {str(pid): waited})
        found.append(budget_of(plan, quick, "plan", 100.0))
    assert {one.most for one in found} == {60}
    quiet, busy, overloaded = (one.measuring for one in found)
    assert quiet == pytest.approx(60 - 3 - 5 * 0.3, abs=0.1)
    assert busy == pytest.approx(60 - 3 - 5 * 1.3, abs=0.1)
    assert overloaded == pytest.approx(60 - 3 - 5 * 7.5, abs=1.5)
    assert all(one.order == () for one in found)


class Ends(msgspec.Struct):
    started: str
    finished: str


@pytest.fixture
def quiet(monkeypatch):
    monkeypatch.setattr(process, "waits_for_cpu", lambda pid: {})


def test_recorded_runs_took_about_as_long_as_their_plans_let_expect(quiet):
    near = 0
    for names in (OF_ONE, OF_ANOTHER, OF_TWO):
        first = recorded_of_one(names[0])
        plan = tuple(
            by_name(PlannedTable, result, cells=tuple(
                by_name(PlannedCell, cell, reason=None, number=0, round=None, at_once=False)
                for cell in result.cells if cell.summary is not None
            )) for result in first.results if result.benchmark != "gpu_matmul"
        )  # fmt: skip
        # They had fewer repetitions then.
        products = sum(cell.seconds for result in first.results for cell in result.cells
                       if result.benchmark == "gpu_matmul")  # fmt: skip
        promise = promise_of(plan, first.settings, "plan")
        seconds = expected_seconds(plan, first.settings, promise)
        assert promise.aim > 4 * seconds  # what was said before
        files = (gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()) for name in names)
        ends = [msgspec.json.decode(file, type=Ends) for file in files]
        took = [seconds_between(one.started, one.finished) - products for one in ends]
        near += sum(0.8 < one / seconds < 1.2 for one in took)
    assert near >= 0.95 * len(OF_ONE + OF_ANOTHER + OF_TWO)


def test_what_is_expected_grows_with_waits_up_to_what_the_passes_may_take(quiet, monkeypatch):
    slow = plan_of(machine([device(0)]), "host_to_device_memcpy_ce", settings=SETTINGS)
    assert expected_seconds(slow, SETTINGS, Promise(9.0, 18.0)) == pytest.approx(8.1)
    short = replace(SETTINGS, max_time=0.1)
    free = expected_seconds(slow, short, None)
    monkeypatch.setattr(process, "waits_for_cpu", lambda pid: {1: 3 * time.process_time()})
    assert expected_seconds(slow, short, None) == pytest.approx(4 * free, rel=0.1)
    assert expected_seconds(slow, SETTINGS, Promise(9.0, 9.0)) is None  # the user said it
    assert expected_seconds(slow, replace(SETTINGS, profiler="nsys"), None) is None
