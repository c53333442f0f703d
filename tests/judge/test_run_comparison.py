"""Runs compared: what counts as evidence, which cells are the same, and what differs besides."""

import pytest
from msgspec.structs import replace

from gate_kit import AIM, cell, run, runs
from linkgauge.judge.compare.gate import hold
from linkgauge.model.settings import EngineSettings, Settings


def compared(*sides, history=(), aim=AIM):
    return hold(*sides, history, aim).comparison


def unlike(*sides):
    """Names of what they differ in that figures depend on, each with its values."""
    cells = (cell(0, 1.0),)
    made = [[replace(one, cells=cells) for one in side] for side in sides]
    return {fact.name: fact.values for fact in compared(*made).unlike}


def only(*sides, **more):
    (one,) = compared(*sides, **more).cells
    return one


def test_single_runs_are_judged_by_their_intervals_and_it_is_said():
    known = {"low": 99.0, "high": 101.0, "coverage": 0.95, "degrees": 20}
    one = only(runs("a", 100.0, **known), runs("b", 90.0, **known)).changes[0]
    assert (one.direction, one.change.basis) == ("worse", "within")
    samples_alone = {**known, "coverage": None}
    one = only(runs("a", 100.0, **samples_alone), runs("b", 90.0, **samples_alone)).changes[0]
    assert (one.direction, one.change) == ("unknown", None)


def test_a_quiet_cell_of_a_single_run_whose_fellows_are_noisy_is_not_proven_different():
    """Its few repetitions may have agreed by chance: then its interval is that of quiet cells."""

    def one(name, figure, *halves):
        known = {"coverage": 0.95, "degrees": 70}
        cells = [
            cell(n, 100.0 if n else figure, low=(100 if n else figure) * (1 - half),
                 high=(100 if n else figure) * (1 + half), **known)
            for n, half in enumerate(halves)
        ]  # fmt: skip
        return [run(name, *cells)]

    quiet = one("a", 100.0, 0.002, 0.002, 0.002, 0.002)

    def direction(other):
        return compared(quiet, other).cells[0].changes[0].direction

    assert direction(one("b", 97.0, 0.002, 0.002, 0.002, 0.002)) == "worse"
    assert direction(one("b", 97.0, 0.002, 0.08, 0.07, 0.09)) == "unknown"
    assert direction(one("b", 50.0, 0.002, 0.08, 0.07, 0.09)) == "worse"


def test_a_step_in_the_history_that_a_driver_made_is_no_variation():
    def of(kernel):
        box = run("x").machine
        return replace(box, host=replace(box.host, kernel=kernel))

    def history(second):
        first = runs("h", *(100.0 + 0.1 * (-1) ** n for n in range(6)))
        later = [replace(one, machine=of(second), id=f"k{n}") for n, one in
                 enumerate(runs("k", *(70.0 + 0.1 * (-1) ** n for n in range(6))))]  # fmt: skip
        return [*first, *later]

    def deviation(second):
        found = only(runs("a", 100.0), runs("b", 99.0), history=history(second))
        return found.changes[0].change.deviation

    assert deviation("6.2") < 0.01 < deviation(run("x").machine.host.kernel)


def test_what_is_measured_again_shows_how_much_its_own_cell_varies_and_not_how_much_others_do():
    base = [run(f"a{n}", cell(0, x), cell(1, x)) for n, x in enumerate((100.0, 101.0, 99.0))]
    first = run("b", cell(0, 100.0), cell(1, 100.0))
    own, other = compared(base, [first, run("c", cell(0, 60.0), again=True)]).cells
    assert own.changes[0].change.deviation > 5 * other.changes[0].change.deviation
    (_, other), once = (
        compared(base, current).cells
        for current in (
            [first, run("c", cell(0, 60.0))],
            [first, run("c", cell(0, 60.0), again=True)],
        )
    )
    assert other.changes[0].change.deviation > 2 * once[1].changes[0].change.deviation


@pytest.mark.parametrize(
    ("scales", "devices"),
    [
        ({1: 0.9}, {"gpu:1"}),
        ({1: 0.9, 3: 0.5}, {"gpu:1", "gpu:3"}),
        (dict.fromkeys(range(4), 1.1), {None}),
    ],
)
def test_cells_that_changed_alike_are_named_by_what_they_share(scales, devices):
    """Rates and times, apart."""

    def cells(x, n):
        return (cell(n, x, devices=(f"gpu:{n % 4}",)),
                cell(16 + n, 1e4 / x, better="lower", devices=(f"gpu:{n % 4}",)))  # fmt: skip

    def side(name, scales):
        every = [(n, 100 * scales.get(n % 4, 1)) for n in range(16)]
        return [run(f"{name}{shift}", *(one for n, x in every for one in cells(x + shift, n)))
                for shift in (0.0, 0.1, 0.2)]  # fmt: skip

    found = compared(side("a", {}), side("b", scales)).changed
    assert {one.shared.device for one in found} == devices
    assert {one.ratio > 1 for one in found} == {False, True}
    assert sum(one.cells for one in found) == 8 * len(scales)


def test_machines_and_settings_that_figures_depend_on_make_runs_unlike():
    base, streams = run("a"), Settings((1 << 20,), engines=EngineSettings(streams=4))
    other = replace(base, settings=streams)
    assert unlike([base], [other]) == {"streams": ("None", "4")}
    host = replace(base.machine.host, cpu_model="Other CPU", kernel="6.12")
    changed = replace(base, machine=replace(base.machine, host=host))
    assert set(unlike([base], [changed])) == {"CPU"}


def test_another_host_is_unlike_unless_the_baseline_has_several():
    def on(name):
        one = run(name)
        return replace(one, machine=replace(one.machine, host=replace(one.machine.host,
                                                                      hostname=name)))  # fmt: skip

    assert set(unlike([on("n1")], [on("n2")])) == {"machine"}
    assert unlike([on("n1"), on("n2")], [on("n3")]) == {}
