"""The gate: what fails, what is not known, and what is measured again."""

import math
import random

import pytest
from msgspec.structs import replace

from gate_kit import AIM, MACHINE, Trial, cell, normal, run, runs
from linkgauge.judge.compare.gate import hold, suspects
from linkgauge.rooms.gate.words import why

BASE = (100.0, 100.4, 99.6, 100.2, 99.8)
LOSS = (90.0, 90.4, 89.6)


def verdicts(baseline, current, **more):
    return [one.verdict for one in hold(baseline, current, [], AIM, **more).cells]


@pytest.mark.parametrize(
    ("current", "more", "aim", "code"),
    [
        (LOSS, {}, AIM, 1), ((110.0, 111.0), {}, AIM, 0),
        ((110.0, 110.4), {"better": "lower"}, AIM, 1), ((98.0, 98.1, 97.9), {}, AIM, 0),
        ((98.0, 98.1, 97.9), {}, replace(AIM, least=0.01, detect=0.02), 1),
    ],
    ids=["loss", "gain", "latency", "small loss", "small loss that was asked for"],
)  # fmt: skip
def test_a_proven_loss_of_the_least_size_fails(current, more, aim, code):
    gate = hold(runs("a", *BASE, **more), runs("b", *current, **more), [], aim)
    assert (gate.code, gate.cells[0].verdict) == (code, "regression" if code else "ok")


def test_a_cell_that_is_missing_fails_but_none_that_the_baseline_never_measured():
    assert verdicts([run("a", cell(0, 1.0), cell(1, 1.0))], [run("b", cell(0, 1.0))]) == [
        "too noisy", "missing",
    ]  # fmt: skip
    skipped = cell(1, None, status="skip")
    assert verdicts([run("a", skipped)], [run("b", cell(0, 1.0))]) == ["ok"]
    assert verdicts([run("a")], [run("b", cell(0, 1.0))]) == []
    assert hold([run("a", skipped)], [run("b")], [], AIM).code == 4


@pytest.mark.parametrize("status", ["skip", "fail", "timeout", "error"])
def test_a_worse_status_fails_and_a_better_one_passes(status):
    good, bad = cell(0, 1.0), cell(0, None, status=status, reason="because")
    assert verdicts([run("a", good)], [run("b", bad)]) == ["worse status"]
    assert verdicts([run("a", bad)], [run("b", good)]) == ["ok"]
    assert verdicts([run("a", bad)], [run("b", bad)]) == ["ok"]


def test_a_figure_that_varies_too_much_for_a_range_is_not_taken_for_a_recorded_one():
    """One that was not repeated is, by the figures of its kind of path."""
    known, wild = {"path": "between devices"}, {"coverage": 0.95, "degrees": 2}
    for more, expected in ((known, "regression"), ({**known, **wild}, "too noisy")):
        sides = (run(name, cell(0, figure, **more)) for name, figure in (("a", 1.0), ("b", 0.9)))
        assert verdicts(*([side] for side in sides)) == [expected]


def untried(number):
    return cell(number, None, status="skip", reason="the time budget was used", tried=False)


def test_a_cell_that_one_side_did_not_try_is_not_compared_and_never_a_regression():
    measured, other = cell(0, 1.0), cell(1, 1.0)
    for sides in ((measured, untried(0)), (untried(0), measured), (untried(0), untried(0))):
        gate = hold([run("a", sides[0])], [run("b", sides[1])], [], AIM)
        assert (gate.cells[0].verdict, gate.code) == ("not compared", 4)
        assert "the time budget was used" in why(gate.cells[0])
    # A cell that failed is no cell that was not tried.
    failed = cell(0, None, status="error", reason="because")
    assert verdicts([run("a", measured)], [run("b", failed)]) == ["worse status"]
    # The rest is still judged.
    sides = [
        [replace(one, cells=(*one.cells, of)) for one in runs(name, *figures)]
        for name, figures, of in (("a", BASE, other), ("b", LOSS, untried(1)))
    ]
    gate = hold(*sides, [], AIM)
    assert [one.verdict for one in gate.cells] == ["regression", "not compared"]
    # One run that tried it is enough.
    assert verdicts(runs("a", *BASE), [*runs("b", *BASE), run("c", untried(0))]) == ["ok"]


def test_a_cell_that_was_not_asked_for_or_came_after_ctrl_c_is_not_compared():
    one, two = cell(0, 1.0, devices=("cuda:0",)), cell(1, 1.0, devices=("cuda:1",))
    other = cell(4, 1.0, devices=("cuda:0", "cuda:1"))  # of another benchmark
    assert verdicts([run("a", one, two)], [run("b", one)])[1] == "not compared"
    assert verdicts([run("a", one, other)], [run("b", one)])[1] == "not compared"
    stopped = replace(run("b", one, other), ended=False)
    assert verdicts([run("a", one, two, other)], [stopped])[1] == "not compared"
    assert verdicts([run("a", one, two, other)], [run("b", one, other)])[1] == "missing"


@pytest.mark.parametrize(("factor", "verdict"), [(1, "ok"), (8, "ok"), (9, "not compared")])
def test_a_table_of_a_far_other_size_is_not_compared(factor, verdict):
    one, other = (cell(0, 1.0, size=size, low=0.99, high=1.01, coverage=0.95, degrees=20)
                  for size in (1 << 20, factor << 20))  # fmt: skip
    assert verdicts([run("a", one)], [run("b", other)]) == [verdict]
    # A curve over sizes has its own.
    curve = replace(one, size=1 << 10)
    gate = hold([run("a", one, curve)], [run("b", other, curve)], [], AIM)
    assert len(gate.cells) == 2


@pytest.mark.parametrize(("left", "code"), [(1, 0), (2, 0), (3, 3)])
def test_a_gate_of_few_of_the_cells_does_not_pass(left, code):
    """Of two compared cells and so many that are not."""
    known = [cell(number, 1.0, low=0.999, high=1.001, coverage=0.95, degrees=20)
             for number in range(2)]  # fmt: skip
    others = [cell(number, 1.0) for number in range(4, 4 + left)]
    sides = [run("a", *known, *others)], [run("b", *known)]
    gate = hold(*sides, [], AIM)
    assert (gate.code, "not compared" in (gate.undetectable or "")) == (code, bool(code))
    assert hold(*sides, [], AIM, allow_noisy=True).code == 0


def test_a_cell_measured_under_another_load_is_inconclusive_and_names_the_process():
    for figures, busy in (((BASE, LOSS), (0.0, 1.0)), ((BASE, LOSS), (1.0, 0.0))):
        sides = [
            runs(name, *own, busy=load, process="backup" if load else None)
            for name, own, load in zip("ab", figures, busy, strict=True)
        ]
        gate = hold(*sides, [], AIM)
        found = gate.cells[0].disturbance
        assert (gate.cells[0].verdict, gate.code) == ("inconclusive", 3)
        assert (found.process, found.pid, found.baseline, found.current) == ("backup", 77, *busy)
        assert verdicts(*sides, force=True) == ["regression"]


@pytest.mark.parametrize("figures", [(BASE, BASE), (LOSS, BASE)])
def test_sides_that_agree_or_gained_are_never_inconclusive_whatever_the_load(figures):
    for busy in ((0.0, 1.0), (1.0, 0.0)):
        sides = [runs(n, *own, busy=of) for n, own, of in zip("ab", figures, busy, strict=True)]
        assert verdicts(*sides) == ["ok"]
    used = [replace(one, busy={"cuda:0": (1,)}) for one in runs("b", *BASE, devices=("cuda:0",))]
    assert verdicts(runs("a", *BASE, devices=("cuda:0",)), used) == ["ok"]


@pytest.mark.parametrize(("host", "busy", "verdict"), [
    ("none", 8.0, "regression"), ("memory", 0.9, "regression"), ("memory", 1.1, "inconclusive"),
    ("cpus", 0.3, "inconclusive"),
])  # fmt: skip
def test_load_counts_as_far_as_the_figure_depends_on_it(host, busy, verdict):
    """On a machine of four CPUs."""
    machine = replace(MACHINE, host=replace(MACHINE.host, cpus=4))
    base, lost = (
        [run(f"{name}{n}", cell(0, x, busy=of, host=host), of=machine) for n, x in enumerate(each)]
        for name, each, of in (("a", BASE, 0.0), ("b", LOSS, busy))
    )
    assert verdicts(base, lost) == [verdict]


def noisy(name, *figures, wide=0.4):
    """A run of cells whose intervals reach so far to both sides."""
    return run(name, *(
        cell(n, x, low=x * (1 - wide), high=x * (1 + wide), coverage=0.95, degrees=8)
        for n, x in enumerate(figures)
    ))  # fmt: skip


def test_a_gate_that_a_halved_figure_may_have_passed_does_not_pass():
    draw = random.Random(1)
    drawn = [[100.0 * math.exp(draw.gauss(0.0, 0.2)) for _ in range(18)] for _ in range(2)]
    before, after = noisy("a", 100.0, *drawn[0]), noisy("b", 50.0, *drawn[1])
    gate = hold([before], [after], [], AIM)
    assert (gate.cells[0].verdict, gate.code) == ("too noisy", 3)
    assert hold([before], [after], [], AIM, allow_noisy=True).code == 0
    some = noisy("a", 100.0, wide=0.1), noisy("b", 100.0, wide=0.1)
    for aim, code in ((AIM, 0), (replace(AIM, exclude=AIM.detect), 3)):
        assert hold(some[:1], some[1:], [], aim).code == code


NEAR, FAR = (28e-9,), (122e-9,)


@pytest.mark.parametrize(("before", "after"), [(FAR, NEAR), (NEAR, FAR)])
def test_virtual_cpus_that_the_host_moved_are_another_machine(before, after):
    base = runs("a", *BASE, busy=0.0, apart=before)
    gate = hold(base, runs("b", *LOSS, busy=0.0, apart=after), [], AIM)
    (one,) = gate.cells
    assert (one.verdict, gate.code) == ("inconclusive", 3)
    assert one.disturbance.cpu_distances == (*before, *after)


def test_runs_before_the_cpus_were_moved_are_judged():
    base = runs("a", *BASE, busy=0.0, apart=FAR)
    moved = runs("b", 60.0, busy=0.0, apart=NEAR)
    assert verdicts(base, [*moved, run("c", cell(0, 100.1, busy=0.0, apart=FAR))]) == ["ok"]


def test_where_some_runs_were_loaded_alike_these_are_judged():
    base = runs("a", *BASE, busy=0.05)
    current = [run("b", cell(0, 60.0, busy=1.0)), run("c", cell(0, 100.1, busy=0.1))]
    assert verdicts(base, current) == ["ok"]
    assert hold(base, current, [], AIM).cells[0].current.runs == 1


def test_a_device_that_others_used_is_a_different_load():
    base = runs("a", *BASE, devices=("cuda:0",))
    current = [replace(one, busy={"cuda:0": (4711,)})
               for one in runs("b", *LOSS, devices=("cuda:0",))]  # fmt: skip
    gate = hold(base, current, [], AIM)
    found = gate.cells[0].disturbance
    assert (found.device, found.pid, gate.code) == ("cuda:0", 4711, 3)


def test_suspects_are_what_may_have_lost_and_what_little_is_known_of():
    trial = Trial(3, normal, 40, loss=0.2)
    gate = trial.gate(trial.runs(5, current=False), trial.runs(1, current=True), AIM)
    chosen = {key.place for key in suspects(gate) if key.benchmark == "benchmark_0"}
    assert ("0", "0") in chosen
    assert len(suspects(gate)) < 10
    loaded = hold(runs("a", *BASE, busy=0.0), runs("b", 97.0, busy=1.0), [], AIM)
    assert (loaded.code, len(suspects(loaded))) == (3, 1)
    assert len(suspects(hold([run("a", cell(0, 1.0))], [run("b", cell(0, 1.0))], [], AIM))) == 1


@pytest.mark.parametrize("seed", range(8))
def test_a_cell_that_was_no_suspect_never_fails(seed):
    trial = Trial(seed, normal, 40, 0.05, loss=0.2)
    baseline, current = trial.runs(3, current=False), trial.runs(1, current=True)
    gate = trial.gate(baseline, current, AIM)
    assert {one.cell.name for one in gate.of("regression")} <= {
        f"{key.benchmark} [{key.place.row}, {key.place.column}]" for key in suspects(gate)
    }


def test_a_loss_of_one_run_that_the_next_ones_lack_does_not_fail():
    base = runs("a", *BASE)
    first, again = (
        run("b", cell(0, 94.0)),
        [run(f"c{n}", cell(0, 100.0), again=True) for n in (1, 2)],
    )
    assert hold(base, [first], [], AIM).code == 1
    assert hold(base, [first, *again], [], AIM).code == 0
