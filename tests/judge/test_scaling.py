"""Where collectives stop to scale, on simulated machines whose answers are known beforehand."""

import json
from contextlib import closing, contextmanager

import pytest

from command_kit import called
from linkgauge.engine.request import RunRequest
from linkgauge.engine.session import Session
from linkgauge.engine.worker import LocalWorker

SLOW = "slow sim:2-sim:3 rate=50%"
STEPS = {1: 1, 2: 2, 4: 6, 8: 14}
"""Of a ring that reduces: 2 (n - 1); one device copies."""
SIZES = "8,64K,512M"


@contextmanager
def in_process(request: RunRequest, _first=None):
    with closing(LocalWorker(request.settings)) as worker:
        yield Session(request, worker)


@pytest.fixture
def scaled(monkeypatch, tmp_path):
    """`linkgauge scale` in this process, workers included."""
    monkeypatch.setattr("linkgauge.cli.scale_run.opened", in_process)

    def scale(machine, *faults, collective="all_reduce", counts="1,2,4,8", sizes=SIZES):
        struck = [word for fault in faults for word in ("--fault", fault)]
        done = called(
            "scale", collective, "--machine", machine, "--gpus", counts, "--size", sizes,
            "--samples", 3, "--out", tmp_path, "--json", *struck,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return scale


@pytest.mark.parametrize(
    ("machine", "startup", "rate"),
    [("ring-8", 2e-6, 100e9), ("full-8", 3e-6, 50e9), ("islands-2x4", 4e-6, None),
     ("pcie-tree-8", 5e-6, None)],
)  # fmt: skip
def test_the_floor_is_a_startup_for_each_step_and_a_ring_or_full_mesh_has_no_knee(
    machine, startup, rate, scaled
):
    scaling = scaled(machine)
    for count in scaling["counts"]:
        assert count["floor"] == pytest.approx(STEPS[count["gpus"]] * startup, rel=0.01)
        assert count["line"]["latency"] == pytest.approx(count["floor"], rel=0.01)
    if rate is None:
        return
    assert (scaling["knee"], scaling["below"]) == (None, [])
    first, *others = scaling["counts"]
    assert first["plateau"] is None
    for count in others:
        expected = count["expected"]
        assert count["plateau"] == pytest.approx(0.84 * rate, rel=0.02)
        figure = expected["achievable"] or expected["theoretical"]
        assert count["efficiency"] == pytest.approx(count["plateau"] / figure)
        assert (count["verdict"], expected["theoretical"]) == ("ok", pytest.approx(rate))


@pytest.mark.parametrize(
    ("machine", "counts", "gpus", "left", "names"),
    [
        ("islands-2x4", "1,2,4,8", 8, 31.51 * 0.83 / (450 * 0.84),
         ("sim:3 -> sim:4", "sim:7 -> sim:0", "host:0-host:1")),
        ("islands-2x4", "2,3,4,5,6", 5, 31.51 * 0.83 / (450 * 0.84), ("sim:4 -> sim:0",)),
        ("pcie-tree-8", "2,4,5,8", 5, 12 / (31.51 * 0.83), ("sim:4 -> sim:0", "host:0-host:1")),
    ],
)  # fmt: skip
def test_the_knee_is_at_the_first_count_that_leaves_an_island(
    machine, counts, gpus, left, names, scaled
):
    scaling = scaled(machine, counts=counts)
    assert (scaling["knee"]["gpus"], scaling["below"]) == (gpus, [])
    assert scaling["knee"]["left"] == pytest.approx(left, rel=0.02)
    assert all(name in scaling["knee"]["because"] for name in names)


def test_a_slow_link_is_measured_alone_and_named(scaled):
    scaling = scaled("full-8", SLOW)
    assert scaling["below"] == [4, 8]
    knee = scaling["knee"]
    assert (knee["gpus"], knee["because"]) == (4, "also slow alone: sim:2 -> sim:3")
    ring = {f"sim:{n} -> sim:{(n + 1) % 4}": n == 2 for n in range(4)}
    assert {one["pair"]: one["slow"] for one in scaling["pairs"]} == ring
    shares = [count["efficiency"] for count in scaling["counts"][2:]]
    assert shares == pytest.approx([0.5 * 0.84 * 18 / 16] * 2, rel=0.01)
    verdicts = [count["verdict"] for count in scaling["counts"]]
    assert verdicts == ["unknown", "ok", "low", "low"]


@pytest.mark.parametrize(
    ("collective", "bus"), [("alltoall", 7), ("gather", 7), ("scatter", 7), ("sendrecv", 1)]
)
def test_all_links_of_a_full_mesh_carry_pairs_at_once(collective, bus, scaled):
    scaling = scaled("full-8", collective=collective, counts="8", sizes="512M")
    (count,) = scaling["counts"]
    assert scaling["below"] == []
    assert count["plateau"] == pytest.approx(bus * 0.84 * 50e9, rel=0.02)
    assert count["expected"]["achievable"] == pytest.approx(bus * 50e9 * 16 / 18)


def test_a_hypercube_of_three_is_skipped_with_the_reason(scaled):
    scaling = scaled("full-8", collective="hypercube", counts="2,3,4")
    assert [count["gpus"] for count in scaling["counts"]] == [2, 4]
    (problem,) = scaling["problems"]
    assert "not 3" in problem


def test_wrong_elements_are_no_point(scaled):
    scaling = scaled("full-8", "flip sim:1 bit=6 cells=3", counts="2,4")
    assert [len(count["points"]) for count in scaling["counts"]] == [3, 2]
    assert len(scaling["problems"]) == 1


def test_many_steps_are_no_slow_link(scaled):
    small = {"counts": "2,8", "sizes": "8,1M"}
    scaling = scaled("full-8", **small)
    assert (scaling["below"], scaling["knee"]["gpus"]) == ([], 8)
    assert scaled("full-8", SLOW, **small)["below"] == [8]
