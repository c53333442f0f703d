"""Noise by kind of path, as recorded runs of real machines have it (docs/recordings.md): between
samples, repetitions and runs, with single repetitions and figures far off."""

import math
import re
from pathlib import Path
from statistics import median, stdev

import pytest
import yaml
from msgspec.structs import replace

from campaign_peers import NOISES
from command_kit import called
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.backends.sim.quantities import Fraction
from linkgauge.backends.sim.run_position import Noise, RunPosition
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.engine.plan import fabrics, lay_out
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.settings import Settings, Simulation
from recorded_kit import FOLDER, recordings_tool

HOST = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
PEERS = ("device_to_device_memcpy_read_ce",)


def text(noises, seed=1):
    tree = yaml.safe_load(load("dgx-h200-8")[1])
    return yaml.safe_dump({**tree, "seed": seed, "noises": noises})


def samples(noises, names, seed=1, **more):
    """The samples of each cell of a run."""
    run = run_of("noisy", text(noises, seed), *names, **{"samples": 8, **more})
    return [c.samples for r in run.results for c in r.cells if c.status == "pass"]


def spread(values):
    return stdev(values) / median(values)


def test_each_kind_of_path_has_its_noise():
    each = {"host and device": {"samples": "4%"}, "between devices": {"samples": "0.03%"}}
    for names, most in ((HOST, 0.04), (PEERS, 0.0003)):
        found = median(map(spread, samples(each, names, samples=40)))
        assert found == pytest.approx(most, rel=0.25)


def test_repetitions_differ_and_their_samples_do_not():
    course, noise = RunPosition(1), Noise(repetitions=Fraction(0.07))
    factors = []
    for repetition in range(400):
        course.enter(5, "measure", repetition)
        factors.append(course.noise(0, noise))
        assert course.noise(1, noise) == factors[-1]
    assert spread(factors) == pytest.approx(0.07, rel=0.1)


def medians(noises, seeds=40):
    """How far the median of each cell of each run is from the one of all runs."""
    runs = [[median(cell) for cell in samples(noises, HOST, seed)] for seed in range(seeds)]
    usual = [median(each) for each in zip(*runs, strict=True)]
    return [own / of - 1 for run in runs for own, of in zip(run, usual, strict=True)]


def test_runs_differ_by_what_the_description_says():
    found = medians({"host and device": {"runs": "2%"}})
    assert spread([1 + off for off in found]) == pytest.approx(0.02, rel=0.15)


def test_disturbed_repetitions_are_slower_and_so_is_each_of_their_samples():
    course, noise = RunPosition(1), Noise(far=Fraction(0.3), by=Fraction(0.12))
    found = []
    for repetition in range(1000):
        course.enter(5, "measure", repetition)
        found.append([course.noise(number, noise) for number in range(8)])
    disturbed = [each for each in found if max(each) > 1]
    assert min(map(min, found)) == 1
    assert len(disturbed) == pytest.approx(300, rel=0.15)
    assert sum(map(median, disturbed)) / len(disturbed) - 1 == pytest.approx(0.12, rel=0.2)
    assert all(len(set(each)) > 1 for each in disturbed)


@pytest.fixture(scope="module")
def by_kind():
    """The cells of ten recorded runs, and of ten simulated ones of the same benchmarks, by kind."""
    module = recordings_tool()
    recorded = list(module.runs_in(FOLDER))
    names = [one.benchmark for one in recorded[0].results if one.benchmark in CATALOG]
    settings = replace(PROFILES["standard"], sizes=recorded[0].settings.sizes)
    simulated = [
        run_of("noisy", text(NOISES, seed), *names, devices=("sim:0", "sim:1"), settings=settings)
        for seed in range(10)
    ]
    sets = [module.by_kind(module.figures_of(runs)) for runs in (recorded, simulated)]
    return module, *map(dict, sets)


def shown(module, cells):
    """What varies of the middle cell: of samples, repetitions and runs; how many of 100 single
    figures are over 2, 5 and 10 % off."""
    parts = (
        [math.sqrt(v) for cell in cells if (v := part(cell)) is not None]
        for part in (module.within, module.between, module.of_runs)
    )
    off = [abs(math.expm1(one)) for cell in cells for one in module.deviations(cell)]
    varies = [100 * median(part) if part else None for part in parts]
    return varies, [100 * sum(one > far for one in off) / len(off) for far in module.FAR]


@pytest.mark.parametrize("kind", NOISES)
def test_runs_vary_as_recorded(by_kind, kind):
    module, recorded, simulated = by_kind
    (expected, far), (found, off) = (shown(module, one[kind]) for one in (recorded, simulated))
    print(kind, expected, far, found, off)
    for real, made in zip(expected, found, strict=True):
        if real is not None and made is not None:
            assert made == pytest.approx(real, rel=0.5, abs=0.03)
    for real, made, within in zip(far, off, (5, 3, 2), strict=True):
        assert made == pytest.approx(real, abs=within)


def test_what_is_not_named_has_the_usual_noise():
    usual = yaml.safe_load(load("dgx-h200-8")[1])
    del usual["seed"]
    plain = run_of("plain", yaml.safe_dump(usual), *PEERS)
    named = run_of("named", yaml.safe_dump({**usual, "noises": {"latency": {"samples": "9%"}}}),
                   *PEERS)  # fmt: skip
    for one, other in zip(plain.results[0].cells, named.results[0].cells, strict=True):
        assert spread(one.samples or (1, 1)) == pytest.approx(
            spread(other.samples or (1, 1)), abs=0.003
        )


@pytest.mark.parametrize(
    ("noises", "problem"),
    [("{elsewhere: {runs: 1%}}", "noises"), ("{latency: {off: 5%}}", "a key is no text")],
)
def test_mistakes_are_one_line(noises, problem, tmp_path):
    path = tmp_path / "m.yml"
    path.write_text(load("full-8")[1] + f"noises: {noises}\n")
    done = called("devices", "--machine", path)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert problem in done.stderr


def test_the_page_has_these_noises():
    page = (Path(__file__).parents[2] / "docs" / "simulated-noise.md").read_text("utf-8")
    (block,) = re.findall(r"```yaml\n(noises:.*?)```", page, re.DOTALL)
    assert yaml.safe_load(block) == {"noises": NOISES}


def test_an_operation_knows_whether_its_figure_is_a_latency():
    """The noise of a simulated cell is drawn where its report is not known."""
    settings = Settings((1,), simulation=Simulation(*load("dgx-h200-8")))
    machine = LocalWorker(settings).survey(["sim"])
    rows = [one for one in select((), ()) if not one.name.startswith("ai_")]
    laid_out = lay_out(rows, fabrics(machine, ()), machine.host.nodes)
    cells = [c for one in laid_out for c in one.cells if c.does.collective is None]
    assert len({cell.operation for cell in cells}) > 10
    assert [str(c) for c in cells if c.does.is_latency != c.report.is_latency] == []
