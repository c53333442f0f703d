"""What a run of hours keeps does not grow with the hours."""

import random
import re
from contextlib import closing
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from command_kit import called
from fakes import device, machine
from linkgauge.engine.kept.journal import JOURNAL_FILE, Journal, MeasuredRepetition, Opened, Resumed
from linkgauge.engine.kept.runs import read_run
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable
from linkgauge.model.documents.soak import SLICES, Soaking
from linkgauge.model.hardware.inventory import Reading
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from linkgauge.report.files import write_run

COPY = parse_transfers("host:0 -> fake:0 by ce")
CELL = PlannedCell("0", "0", COPY, Report.FIRST)
START = "2026-11-24T12:00:00.000Z"


def opened(*cells, seconds=100.0, most=None):
    table = PlannedTable(
        benchmark="b", title="B", backend="fake", size=1000, unit="B/s", better="higher",
        cells=cells,
    )  # fmt: skip
    settings = Settings((1000,), soak=Soaking(seconds, most))
    return Opened(
        id="1", label="l", command=(), started=START, machine=machine([device(0)]),
        settings=settings, plan=(table,),
    )  # fmt: skip


def repetition(number, at, *samples, cell=CELL, **more):
    values = {"status": "pass", "verified": True, "bytes": 1000, "seconds": 0.1, **more}
    found = CellResult(
        cell.row, cell.column, cell.transfers, cell.report, samples=samples,
        repetitions=((1,) * len(samples),) if samples else (), **values,
    )  # fmt: skip
    return MeasuredRepetition(0, found, number, at)


def kept(folder, records, begun=None, **more):
    """The run whose journal has these records."""
    path = folder / JOURNAL_FILE
    path.unlink(missing_ok=True)
    with closing(Journal.begin(path, begun or opened(CELL, **more))) as journal:
        for record in records:
            journal.append(record)
    return read_run(path)


@pytest.fixture
def run_of(tmp_path):
    return partial(kept, tmp_path)


def test_thousands_of_rounds_keep_a_few_repetitions_and_count_all(run_of):
    rounds = 5000
    records = (repetition(n, n * 0.02, 10.0, 11.0, 9.0 + n / rounds) for n in range(rounds))
    run = run_of(records)
    (cell,) = run.results[0].cells
    assert 8 <= len(cell.repetitions) <= 16
    assert len(cell.samples) == 3 * len(cell.repetitions)
    (one,) = run.soak.cells
    assert (one.repetitions, one.samples, one.checked) == (rounds, 3 * rounds, rounds)
    assert run.soak.compared == rounds * 1000
    assert one.median == pytest.approx(10.0, rel=0.005)
    assert one.worst == 9.0
    assert len(run.soak.worst) <= 10
    assert len(one.means) == SLICES


def test_what_did_not_pass_stays_however_long_it_goes_on(run_of):
    def at(n):
        bad = {"status": "fail", "reason": "wrong", "verified": False} if n == 37 else {}
        return repetition(n, n * 0.02, 10.0, **bad)

    run = run_of(map(at, range(3000)))
    assert run.results[0].cells[0].status == "fail"
    (struck,) = run.soak.failed
    assert (struck.moment.round, struck.moment.at, struck.reason) == (38, 0.74, "wrong")
    assert struck.moment.time == "2026-11-24T12:00:00.740Z"


def test_a_flood_of_failures_is_counted(run_of):
    records = (repetition(n, n * 0.01, status="error", reason="lost") for n in range(500))
    soak = run_of(records).soak
    assert len(soak.failed) + soak.more == 500
    assert len(soak.failed) <= 100


def test_moments_after_a_break_are_those_of_the_clock(run_of):
    records = [
        repetition(0, 10.0, 5.0),
        Resumed("2026-11-24T15:00:00.000Z", ()),
        repetition(1, 12.0, status="error", reason="lost"),
    ]
    (struck,) = run_of(records).soak.failed
    assert (struck.moment.at, struck.moment.time) == (12.0, "2026-11-24T15:00:02.000Z")


def hot(celsius, *throttled):
    return (Reading(memory="fake:0", count=1, temperature_max=celsius, throttled=throttled),)


def test_a_limit_on_temperature_ends_it(run_of):
    cool = repetition(0, 1.0, 5.0, readings=hot(84.0))
    assert run_of([cool], most=85.0).soak.stopped is None
    soak = run_of([cool, repetition(1, 2.0, 5.0, readings=hot(85.0, "heat"))], most=85.0).soak
    assert soak.stopped == "temperature"
    (one,) = soak.devices
    assert one.hottest == 85.0
    assert [(why.reason, why.repetitions, why.first.round) for why in one.throttled] == [
        ("heat", 1, 2)
    ]


def test_the_slowest_of_a_time_are_the_longest(run_of):
    table = replace(opened(CELL).plan[0], unit="s", better="lower")
    figures = enumerate((1.0, 1.0, 4.0, 1.0, 2.0))
    repetitions = [repetition(number, number + 1.0, seconds) for number, seconds in figures]
    worst = run_of(repetitions, replace(opened(CELL), plan=(table,))).soak.worst
    assert [one.figure for one in worst[:2]] == [4.0, 2.0]
    assert worst[0].share == pytest.approx(0.25, rel=0.01)


def told(folder, *columns, better="higher", seconds=480.0):
    """What `linkgauge show` tells of the drift of these cells, of which each has a figure for each
    part of the time; None: no repetition."""
    cells = [replace(CELL, column=str(number), number=number) for number in range(len(columns))]
    first = opened(*cells, seconds=seconds)
    unit = "B/s" if better == "higher" else "s"
    first = replace(first, plan=(replace(first.plan[0], unit=unit, better=better),))
    repetitions = (
        repetition(number, (number + 0.5) * seconds / SLICES, figure, cell=cell)
        for number, figures in enumerate(zip(*columns, strict=True))
        for cell, figure in zip(cells, figures, strict=True)
        if figure is not None
    )
    write_run(folder, replace(kept(folder, repetitions, first), finished=START))
    out = " ".join(called("show", folder, "--matrix", COLUMNS=300).stdout.split())
    return re.findall(r"drift (\w+) by (\S+) in (\d+) cells?, the first from (\S+) on", out)


def noisy(seed, level=lambda at: 100.0, sigma=0.003):
    draw = random.Random(seed)
    return [level(at) * (1 + draw.gauss(0, sigma)) for at in range(SLICES)]


def step(to):
    return lambda at: to if at >= 24 else 100.0


@pytest.mark.parametrize(
    ("figures", "better", "moment", "percent"),
    [
        (noisy(1, step(95.0)), "higher", "0:04:00", -5),
        (noisy(3, step(110.0)), "lower", "0:04:00", 10),
        # Parts without a repetition are passed over.
        ([None if n % 4 else one for n, one in enumerate(noisy(5, step(80.0)))], "higher",
         "0:04:00", -20),
        (noisy(2, lambda at: 100.0 - 0.2 * at), "higher", None, None),
    ],
    ids=["step", "longer times", "few repetitions", "slow fall"],
)  # fmt: skip
def test_a_level_that_changes_is_found_with_its_moment(figures, better, moment, percent, tmp_path):
    ((direction, change, cells, since),) = told(tmp_path, figures, better=better)
    assert (direction, cells) == ("worse", "1")
    if moment:
        assert since == moment
        assert float(change.rstrip("%")) == pytest.approx(percent, abs=0.5)


def test_noise_and_small_changes_are_no_drift(tmp_path):
    small = noisy(4, lambda at: 99.5 if at >= 24 else 100.0, 0.0005)
    assert told(tmp_path, *(noisy(seed) for seed in range(10, 60)), small) == []


@given(st.lists(st.floats(1e-9, 1e12), min_size=1, max_size=200))
def test_the_slow_side_of_all_samples_lies_near_the_sample_of_that_rank(tmp_path_factory, figures):
    folder = tmp_path_factory.mktemp("course")
    run = kept(folder, [repetition(n, n * 0.02, figure) for n, figure in enumerate(figures)])
    (one,) = run.soak.cells
    ordered = sorted(figures)
    assert one.median == pytest.approx(ordered[(len(ordered) - 1) // 2], rel=0.005)
    slow = ordered[int(0.05 * (len(ordered) - 1))]
    assert (one.slow_p95 is None) is (len(figures) < 20)
    assert one.slow_p95 is None or one.slow_p95 == pytest.approx(slow, rel=0.005)
    assert one.worst == ordered[0]
