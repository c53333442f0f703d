"""How often the gate and earlier runs err, by simulation: for nothing, and in not seeing a loss.
Trials, bounds and rates are those of tests/campaigns.yml."""

import math

import pytest
from msgspec.structs import replace

from campaigns import FULL, trials
from gate_kit import AIM, Trial, drawn_from, failed, medians_of, normal, recorded, standardized
from judge_kit import run_of
from linkgauge.judge.compare import earlier
from linkgauge.judge.compare.gate import hold
from linkgauge.judge.compare.likeness import figures_of
from linkgauge.model.settings import Settings

DESIGNS = {"5 against 3": (5, 3, 0), "5 against 1 and --rerun 2": (5, 1, 2)}
SIMULATED = """
source: a test
noise: 0.5%
noise_buffers: 0.5%
noise_moments: 1%
host: {cpu_model: Example CPU, nodes: [{cpus: 4, memory: 64G}]}
link_kinds:
  pcie5: {kind: pcie, speed: 32, width: 16, latency: 300 ns}
devices: [{count: 2, model: Example Card, memory: 64G, memory_rate: 2 TB/s}]
links: [{kind: pcie5, each: "sim:0..1", to: "host:0"}]
"""


NAMES = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_local_copy",
    "host_to_device_bidirectional_memcpy_ce",
)  # fmt: skip


def measured(draws, text=SIMULATED, names=NAMES[:3]):
    """Runs of the sim backend."""
    settings = Settings((64 << 20,), precision=0.02, max_time=1.0)
    for draw in draws:
        yield run_of("test", text, *names, settings=settings, draw=draw)


def simulated():
    """Noise of runs that the sim backend measured."""
    found = [
        [cell.summary.median for result in run.results for cell in result.cells]
        for run in measured(range(400 if FULL else 6))
    ]
    return drawn_from([standardized(column) for column in zip(*found, strict=True)])


@pytest.fixture(scope="module")
def noises():
    return {"normal": normal, "recorded on 2 × H200": recorded(), "of sim": simulated()}


def count(happens, holds, name, case):
    found = [happens(seed) for seed in range(trials(name))]
    holds(name, sum(found), len(found), case)


@pytest.mark.parametrize("noise", ["normal", "recorded on 2 × H200", "of sim"])
@pytest.mark.parametrize("design", DESIGNS)
def test_of_alike_runs_at_most_one_in_a_hundred_fails(noise, design, noises, holds):
    before, after, rerun = DESIGNS[design]

    def code(seed):
        return Trial(seed, noises[noise], 300).held(before, after, AIM, rerun).code

    exits = [code(seed) for seed in range(trials("gate: equivalent runs fail"))]
    for wrong, happens in ((1, "fail"), (3, "are not known")):
        holds(
            f"gate: equivalent runs {happens}", exits.count(wrong), len(exits), f"{noise}, {design}"
        )


ALONE = SIMULATED.replace("count: 2", "count: 8").replace("0..1", "0..7")
"""With as many equivalent cells as a server has."""


def test_one_run_against_another_is_judged_by_what_their_intervals_tell(holds):
    """The gate's commonest use. Of these, the first copy to the host loses a tenth."""
    pairs = trials("gate: one run against another fails")
    every = [figures_of(run) for run in measured(range(2 * pairs), ALONE, NAMES)]
    exits, found = [], 0
    for before, after in zip(every[::2], every[1::2], strict=True):
        exits.append(hold([before], [after], [], AIM).code)
        lost = replace(after, cells=tuple(
            _slower(cell) if (cell.benchmark, cell.column) == (NAMES[1], "0") else cell
            for cell in after.cells
        ))  # fmt: skip
        found += hold([before], [lost], [], AIM).code == 1
    for wrong, happens in ((1, "fails"), (3, "is not known")):
        holds(f"gate: one run against another {happens}", exits.count(wrong), pairs)
    holds("gate: a loss of 10% is found by one run against another", found, pairs)


def _slower(cell):
    return replace(cell, **{of: 0.9 * getattr(cell, of) for of in ("figure", "low", "high")})


@pytest.mark.parametrize("noise", ["normal", "recorded on 2 × H200", "of sim"])
@pytest.mark.parametrize("design", DESIGNS)
def test_a_loss_of_five_percent_in_one_cell_of_a_hundred_is_found(noise, design, noises, holds):
    before, after, rerun = DESIGNS[design]

    def finds(seed):
        at = seed % 100
        trial = Trial(seed, noises[noise], 100, loss=0.05, at=at)
        return at in failed(trial.held(before, after, AIM, rerun))

    count(finds, holds, "gate: a loss of 5% in 1 of 100 cells is found", f"{noise}, {design}")


@pytest.mark.parametrize("noise", ["normal", "recorded on 2 × H200"])
def test_two_percent_are_found_with_the_runs_that_the_gate_asks_for(noise, noises, holds):
    aim = replace(AIM, least=0.01, detect=0.02)

    def finds(seed):
        trial = Trial(seed, noises[noise], 100, loss=0.02)
        baseline, current = trial.runs(5, current=False), trial.runs(3, current=True)
        asked = trial.gate(baseline, current, aim).cells[0].cell.changes[0].needed.more
        baseline += trial.runs(asked[0], current=False)
        current += trial.runs(asked[1], current=True)
        return 0 in failed(trial.gate(baseline, current, aim))

    count(finds, holds, "gate: a loss of 2% is found by as many runs as are asked for", noise)


@pytest.mark.parametrize("noise", ["normal", "recorded on 2 × H200"])
@pytest.mark.parametrize("deviation", [0.02, 0.05])
def test_the_smallest_detectable_loss_of_noisier_cells_is_true(deviation, noise, noises, holds):
    def finds(seed):
        first = Trial(seed, noises[noise], 100, deviation).held(5, 3, AIM)
        said = first.cells[0].cell.changes[0].needed.detectable
        trial = Trial(seed, noises[noise], 100, deviation, loss=said)
        trial.skip(8)
        return 0 in failed(trial.held(5, 3, AIM))

    count(
        finds,
        holds,
        "gate: the smallest loss that is said to be detectable is found",
        f"{noise}, deviation {deviation:.0%}",
    )


UNLIKE = {
    "deviations × e^±0.4": lambda n: 0.02 * (n % 41 - 20),
    "deviations × e^±1": lambda n: 0.05 * (n % 41 - 20),
    "deviations × e^±2": lambda n: 0.1 * (n % 41 - 20),
    "benchmarks × e^±1": lambda n: 0.2 * (n // 4 % 11 - 5),
    "1 of 60 × 3": lambda n: math.log(3) * (n % 60 == 7),
    "1 of 300 × 4": lambda n: math.log(4) * (n == 7),
}
"""Logarithm of how much more a cell varies than 1 %."""
MISSED = "1 of 300 × 4"
"""A single cell among hundreds is only seen by its own few runs (docs/gate-errors.md)."""


@pytest.mark.parametrize("how", UNLIKE if FULL else ("deviations × e^±1", "1 of 60 × 3"))
def test_cells_that_vary_unlike_each_other_do_not_make_runs_fail(how, holds):
    """With the gate's least loss."""
    name = "gate: equivalent runs fail of which a cell varies unlike the others"
    if how != MISSED:
        name = "gate: equivalent runs fail whose cells vary unlike each other"
    deviations = [0.01 * math.exp(UNLIKE[how](n)) for n in range(300)]

    def fails(seed):
        return bool(failed(Trial(seed, normal, 300, deviations).held(5, 3, AIM)))

    count(fails, holds, name, how)


LOSSES = {"earlier: a healthy run is slow": 0.0, "earlier: a second slow run is found": 0.1}


@pytest.mark.parametrize("noise", ["normal", "recorded on 2 × H200"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_run_is_held_against_earlier_ones(name, noise, holds):
    """A recorded run that is far off is drawn once: two such in a row are a loss."""
    noises = normal if noise == "normal" else recorded(once=True)

    def is_slow(seed):
        trial = Trial(seed, noises, 12, loss=LOSSES[name])
        before, now = trial.runs(10, current=False), trial.runs(2, current=True)
        known = earlier.changes_since(medians_of([now[0], *before[::-1]]), now[1]).earlier
        return any(known.since or lost.share < 0.75 for lost in known.lost)

    count(is_slow, holds, name, noise)
