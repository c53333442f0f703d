"""Noise by kind of path, as recorded runs of real machines have it (docs/recordings.md): between
samples, repetitions and runs, with single cells far off."""

from statistics import median, stdev

import pytest
import yaml

from command_kit import called
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.backends.sim.noise import Noise
from linkgauge.backends.sim.quantities import Fraction
from linkgauge.backends.sim.run_position import RunPosition

HOST = ("host_to_device_memcpy_ce", "device_to_host_memcpy_ce")
PEERS = ("device_to_device_memcpy_read_ce",)
NOISES = {
    "host and device": {"samples": "4.3%", "repetitions": "3%", "runs": "2.1%",
                        "far": "16%", "by": "5%"},
    "between devices": {"samples": "0.03%", "repetitions": "0.04%", "runs": "0.02%"},
}  # fmt: skip
"""Of two H100s in a virtual machine (tests/data/runs-2xH100)."""


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
    for names, most in ((HOST, 0.043), (PEERS, 0.0003)):
        only = {kind: {"samples": own["samples"]} for kind, own in NOISES.items()}
        found = median(map(spread, samples(only, names, samples=40)))
        assert found == pytest.approx(most, rel=0.25)


def test_repetitions_differ_and_their_samples_do_not():
    course, noise = RunPosition(1), Noise(repetitions=Fraction(0.07))
    factors = []
    for visit in range(400):
        course.enter(5, "measure", visit)
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


def test_single_cells_are_far_off_as_often_and_as_far_as_recorded():
    """Of 320 figures of the recording 20 are over 5 % off, 7 over 10 %, and one 18 %."""
    found = medians({"host and device": {"far": "16%", "by": "5%"}})
    over = [sum(abs(off) > by for off in found) / len(found) for by in (0.05, 0.10)]
    assert over[0] == pytest.approx(20 / 320, rel=0.4)
    assert over[1] == pytest.approx(7 / 320, rel=0.5)
    assert min(found) < -0.12
    assert max(found) < 0.01  # they are slower


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
