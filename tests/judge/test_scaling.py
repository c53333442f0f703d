"""Where collectives stop to scale, on simulated machines whose answers are known beforehand."""

import json

import pytest

from command_kit import called
from sim_kit import in_process

SLOW = "slow sim:2-sim:3 rate=20%"
SIZES = "8,64K,512M"


@pytest.fixture
def scaled(monkeypatch, tmp_path):
    """`linkgauge scale` in this process, workers included."""
    monkeypatch.setattr("linkgauge.rooms.scale.carrying_out.opened_by_launch", in_process)

    def scale(machine, *faults, collective="all_reduce", counts="1,2,4,8", sizes=SIZES):
        struck = [word for fault in faults for word in ("--fault", fault)]
        done = called(
            "scale", collective, "--machine", machine, "--gpus", counts, "--size", sizes,
            "--samples", 3, "--out", tmp_path, "--json", *struck,
        )  # fmt: skip
        assert done.stdout, done.stderr
        return json.loads(done.stdout)

    return scale


def test_a_slow_link_is_measured_alone_and_named(scaled):
    scaling = scaled("full-8", SLOW)
    assert scaling["below"] == [4, 8]
    knee = scaling["knee"]
    assert (knee["gpus"], knee["because"]) == (4, "also slow alone: sim:2 -> sim:3")
    rings = {
        f"sim:{n} -> sim:{(n + 1) % of}": n == 2 and of > 3 for of in (4, 8) for n in range(of)
    }
    assert {one["pair"]: one["slow"] for one in scaling["pairs"]} == rings
    shares = [count["efficiency"] for count in scaling["counts"][2:]]
    # All rings wait for the one over the link that is slow.
    assert shares == pytest.approx([0.2 * 0.84 * 10 / 8] * 2, rel=0.01)
    verdicts = [count["verdict"] for count in scaling["counts"]]
    assert verdicts == ["not judged", "ok", "low", "low"]


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
    small = {"counts": "2,8", "sizes": "8,256K"}
    scaling = scaled("full-8", **small)
    assert (scaling["below"], scaling["knee"]["gpus"]) == ([], 8)
    assert scaled("full-8", SLOW, **small)["below"] == [8]
