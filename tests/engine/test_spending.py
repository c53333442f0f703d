"""A budget that the user gave goes to fewer benchmarks, the most wanted first, with three
repetitions of each cell, and is used until the precision is reached."""

import re
from collections import Counter

import pytest
from msgspec.structs import replace

import linkgauge
from fakes import machine
from linkgauge.backends.sim.description import load
from linkgauge.benchmarks.catalog import CATALOG, ranked
from linkgauge.engine import controller
from linkgauge.engine.controller import Observer, execute
from linkgauge.engine.kept.journal import (
    MeasuredRepetition,
    Opened,
    assemble,
    follow,
    repetitions_of,
)
from linkgauge.engine.repetitions import CellAt, Repetitions
from linkgauge.engine.spending import REPETITIONS
from linkgauge.engine.workers.outcomes import NOT_REACHED, unmeasured
from linkgauge.model.notes import Imprecise
from linkgauge.model.settings import Budget, Settings, Simulation
from linkgauge.report.words.run_notes import missed_precision, more_precise, unreached
from repetition_kit import planned, repeated, table

SETTINGS = Settings((64,), precision=0.01, max_time=0.1)
PLAN = tuple(table(*map(planned, "1234"), name=name) for name in "cab")
ORDER = ("a", "b", "c")


class Clock:
    """Time that passes only while cells are measured: `seconds` of the benchmark, and of the number
    of the repetition of the cell. The figures of the columns in `noisy` vary by tens of percent."""

    def __init__(self, monkeypatch, seconds=lambda benchmark, number: 0.1, noisy=""):
        self.now, self.seconds, self.noisy = 100.0, seconds, noisy
        self.repetitions, self.order = Counter(), []
        monkeypatch.setattr(controller.time, "monotonic", lambda: self.now)

    def measure(self, cells, size, repetition):
        (cell,) = cells
        key = repetition.benchmark, cell.column
        assert (
            repetition.number == self.repetitions[key]
        )  # which decides on the buffers and on what is learnt
        self.now += self.seconds(repetition.benchmark, self.repetitions[key])
        self.repetitions[key] += 1
        self.order.append(key)
        spread = 0.3 if cell.column in self.noisy else 0.0001
        rate = 1.0 + spread * (self.repetitions[key] * 7 % 5)
        return (repeated(cell, rate, rate, rate, seconds=0.06),)

    def look(self, names):
        return None

    def counts(self, benchmark):
        return [self.repetitions[benchmark, column] for column in "1234"]


def ran(clock, seconds, plan=PLAN, observer=None, settings=SETTINGS, doubts=lambda run: ()):
    opened = Opened(
        id="1", label="l", command=(), started="s", machine=machine(), settings=settings,
        plan=plan, budget=Budget(seconds + 5, seconds + 5, 0.9 * seconds, seconds, ORDER),
    )  # fmt: skip
    records = [opened]
    return records, execute((opened,), clock, records.append, observer or Observer(), doubts)


def test_time_goes_to_whole_benchmarks_by_rank_with_three_repetitions_of_each_cell(monkeypatch):
    clock = Clock(monkeypatch)
    records, run = ran(clock, 2.8)
    assert clock.counts("a") == clock.counts("b") == [REPETITIONS] * 4
    assert clock.counts("c") == [0] * 4
    by_name = {result.benchmark: result for result in run.results}
    assert {cell.kind for cell in by_name["c"].cells} == {"budget"}
    assert unreached(run).startswith("4 cells of c in 7.8 s")
    # A cell is repeated only after all others, and second repetitions go backwards.
    first, second = clock.order[:8], clock.order[8:16]
    assert [name for name, _ in first] == ["a"] * 4 + ["b"] * 4
    assert [name for name, _ in second] == ["b"] * 4 + ["a"] * 4
    assert assemble(records) == run


def test_a_doubtful_cell_is_found_behind_tables_that_were_not_reached(monkeypatch):
    """A run has no result of a table before any of its cells was measured."""
    clock = Clock(monkeypatch)

    def doubts(run):
        assert [result.benchmark for result in run.results] == ["a", "b"]
        return [CellAt(0, run.results[0].cells[0].place)]

    ran(clock, 2.8, doubts=doubts)
    assert clock.counts("a") == [REPETITIONS + 1, *[REPETITIONS] * 3]
    assert clock.counts("b") == [REPETITIONS] * 4


def test_a_benchmark_for_which_there_is_too_little_time_gets_as_many_cells_as_fit(monkeypatch):
    clock = Clock(monkeypatch)
    ran(clock, 2.2)
    assert clock.counts("a") == [REPETITIONS] * 4
    assert clock.counts("b") == [REPETITIONS, REPETITIONS, 0, 0]


def test_a_first_repetition_that_searches_a_kernel_does_not_use_up_the_budget(monkeypatch):
    clock = Clock(monkeypatch, lambda name, number: 3.0 if not clock.order else 0.1)
    ran(clock, 8.0)
    assert all(clock.counts(name) == [REPETITIONS] * 4 for name in "abc")


@pytest.mark.parametrize("seconds", [6.0, 20.0])
def test_a_budget_is_used_until_the_precision_is_reached_whatever_the_time_of_a_cell(
    monkeypatch, seconds
):
    """A repetition takes 0.06 s of the 0.1 s that a cell has without a budget."""
    clock = Clock(monkeypatch, noisy="3")
    _, run = ran(clock, seconds)
    assert 0.85 * seconds < clock.now - 100 <= seconds
    noisy = [cell for result in run.results for cell in result.cells if cell.column == "3"]
    assert min(clock.repetitions[name, "3"] for name in "abc") > max(
        count for (_, column), count in clock.repetitions.items() if column != "3"
    )
    assert {cell.stopped for cell in noisy} == {"budget"}
    (note,) = [note for note in noisy[0].notes if isinstance(note, Imprecise)]
    assert note.budget is True


def test_where_the_first_cell_takes_all_of_the_time_a_smaller_size_is_advised(monkeypatch):
    def given_up(cells, size, repetition):
        clock.now += 6.0
        return tuple(unmeasured(cell, "skip", NOT_REACHED, "budget") for cell in cells)

    clock = Clock(monkeypatch)
    clock.measure = given_up
    _, run = ran(clock, 5.0)
    assert unreached(run).endswith(" in 10 s: give a longer --budget or a smaller --size")


def test_it_ends_before_its_time_where_all_is_precise(monkeypatch):
    clock = Clock(monkeypatch)
    _, run = ran(clock, 60.0)
    assert clock.now < 110
    assert {cell.stopped for result in run.results for cell in result.cells} == {"precision"}
    assert missed_precision(run) is unreached(run) is None


@pytest.mark.parametrize("cut", [3, 9, 14, 21])
def test_a_resumed_run_goes_on_with_what_is_left_of_its_time(monkeypatch, cut):
    records, _ = ran(Clock(monkeypatch, noisy="2"), 3.5)
    repetitions = repetitions_of(records[:cut])
    assert repetitions.at == pytest.approx(0.1 * (cut - 1))
    for record in records[cut:]:
        if isinstance(record, MeasuredRepetition) and record.at is not None:
            left = repetitions.left()[record.table]
            assert any(record.cell.column == one.column for one in left)
        follow(repetitions, record)
    assert not any(repetitions.left())


def test_cells_measured_at_once_stay_together():
    rounds = [planned(column, round=number // 2) for number, column in enumerate("123456")]
    repetitions = Repetitions((table(*rounds),), SETTINGS, Budget(20.0, 20.0, 10.0, 11.0, ("b",)))
    at, counts = 0.0, Counter()
    while any(left := repetitions.left()):
        assert len(left[0]) % 2 == 0
        for first, second in zip(left[0][::2], left[0][1::2], strict=True):
            assert first.round == second.round
            at += 1.0
            for cell in (first, second):
                counts[cell.column] += 1
                repetitions.add(0, repeated(cell, 1.0, 1.001), at)
    assert at <= 11
    assert set(counts.values()) == {REPETITIONS}


def test_what_cannot_be_measured_keeps_its_own_reason_and_costs_nothing(monkeypatch):
    unable = planned("9", reason="needs 2 GiB")
    plan = (replace(PLAN[1], cells=(*PLAN[1].cells, unable)), PLAN[0])
    clock = Clock(monkeypatch)
    _, run = ran(clock, 1.5, plan)
    cells = {
        (result.benchmark, cell.column): cell for result in run.results for cell in result.cells
    }
    assert (cells["a", "9"].reason, cells["a", "9"].kind) == ("needs 2 GiB", "size")
    assert cells["c", "1"].kind == "budget"
    assert clock.counts("a") == [REPETITIONS] * 4


class Told(Observer):
    def __init__(self, clock):
        self.clock, self.moments, self.left = clock, [], []

    def ends_by(self, moment):
        self.moments.append(moment)

    def planned(self, repetitions):
        self.left.append((self.clock.now, repetitions))


def test_an_observer_knows_when_the_time_ends_and_how_many_repetitions_are_left(monkeypatch):
    clock = Clock(monkeypatch, noisy="3")
    observer = Told(clock)
    ran(clock, 6.0, observer=observer)
    assert observer.moments == pytest.approx([106.0] * len(observer.moments))
    assert observer.moments
    for now, repetitions in observer.left[1:]:  # before the first repetition, nothing is known
        assert 0.1 * repetitions <= 106.0 - now + 0.1
    observer.moments.clear()
    clock = Clock(monkeypatch)
    ran(clock, 6.0, observer=observer, settings=replace(SETTINGS, simulation=Simulation("m", "d")))
    assert observer.moments == []


def test_what_people_ask_for_first_comes_first():
    order = ranked(dict.fromkeys(CATALOG, False), (), "standard")
    assert sorted(order) == sorted(CATALOG)
    wanted = [
        "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_read_ce",
        "device_local_copy", "device_to_device_bidirectional_memcpy_read_ce",
        "device_to_device_latency_sm", "all_to_host_memcpy_ce", "all_reduce", "gpu_matmul",
        "latency_copy_device",
    ]  # fmt: skip
    assert sorted(wanted, key=order.index) == wanted
    named = ("latency_copy_device", "all_reduce")
    assert ranked(dict.fromkeys(CATALOG, False), named, "standard")[:2] == named
    # What accelerators carry out comes before what the host does alone.
    assert ranked({"memory_stream_copy": True, "latency_sync": False}, (), "quick")[-1] == (
        "memory_stream_copy"
    )


BENCHMARKS = ("host_to_device_memcpy_ce", "device_local_copy")


def noisy_machine(folder, seed, noise):
    """The file of a machine of four devices whose figures vary so much, from moment to moment
    too."""
    text = re.sub(r"(?m)^(noise\w*|seed):.*\n", "", load("ppu-2x2")[1])
    more = "".join(f"{name}: {noise}\n" for name in ("noise", "noise_moments", "noise_buffers"))
    path = folder / f"noisy-{seed}.yml"
    path.write_text(f"{text}\nseed: {seed}\n{more}")
    return str(path)


@pytest.mark.parametrize("seed", range(1, 5))
def test_who_follows_the_advice_gets_the_precision(tmp_path, seed):
    """Each step does what the run before said, until it says nothing more."""
    here, given, steps = noisy_machine(tmp_path, seed, "1%"), "1s", 0
    while given:
        run = linkgauge.run(*BENCHMARKS, machine=here, budget=given, out=None).run
        left, missed = unreached(run), missed_precision(run)
        advice = left or (more_precise(run) if missed else "")
        found = re.search(r"give --budget (\w+)", advice)
        before, given, steps = given, found and found[1], steps + 1
        assert (found is not None) == bool(left or missed)
        assert steps <= 3, before
    assert missed is None
    assert left is None


def test_no_advice_is_given_that_would_not_help(tmp_path):
    here = noisy_machine(tmp_path, 1, "20%")
    run = linkgauge.run(*BENCHMARKS, machine=here, budget="10s", out=None).run
    assert missed_precision(run) is not None
    assert more_precise(run).endswith("was used: stop other programs")


def test_who_had_no_budget_and_follows_the_advice_gets_the_precision(tmp_path):
    here = noisy_machine(tmp_path, 1, "1%")
    run = linkgauge.run(*BENCHMARKS, machine=here, out=None).run
    assert missed_precision(run) is not None
    (given,) = re.findall(r": give --budget (\w+)$", more_precise(run))
    run = linkgauge.run(*BENCHMARKS, machine=here, budget=given, out=None).run
    assert missed_precision(run) is None


def test_runs_with_a_budget_reach_other_cells_and_are_no_regression():
    """On a machine of eight GPUs, each cell that is measured has three repetitions."""
    one, two = (
        linkgauge.run(machine="dgx-h200-8", budget=given, out=None) for given in ("4s", "20s")
    )
    for measured in (one, two):
        cells = [
            cell for result in measured.run.results for cell in result.cells if cell.repetitions
        ]
        assert {len(cell.repetitions) for cell in cells} == {REPETITIONS}
        assert unreached(measured.run) is not None
    for before, after in ((one, two), (two, one)):
        gate = linkgauge.gate(after, baseline=before)
        assert gate.code != 1
        assert gate.of("not compared")
