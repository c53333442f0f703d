"""Where collectives stop to scale, on simulated machines whose answers are known beforehand."""

import pytest

from linkgauge.judge.scaling import pairs_in_doubt, scaling_of
from linkgauge.model.notation import parse_memory
from scale_kit import SIZES, run_of

SLOW = "slow sim:2-sim:3 rate=50%"
STEPS = {1: 1, 2: 2, 4: 6, 8: 14}
"""Of a ring that reduces: 2 (n - 1); one device copies."""


def scaled(*given, **more):
    return scaling_of(run_of(*given, **more))


def plateaus(scaling):
    return {count.gpus: count.plateau for count in scaling.counts}


@pytest.mark.parametrize(
    ("machine", "startup"),
    [("ring-8", 2e-6), ("full-8", 3e-6), ("islands-2x4", 4e-6), ("pcie-tree-8", 5e-6)],
)
def test_the_floor_is_a_startup_for_each_step(machine, startup):
    scaling = scaled(machine)
    floors = {count.gpus: count.floor for count in scaling.counts}
    assert floors == pytest.approx({n: steps * startup for n, steps in STEPS.items()}, rel=0.01)
    for count in scaling.counts:
        assert count.line.latency == pytest.approx(count.floor, rel=0.01)


@pytest.mark.parametrize(("machine", "rate"), [("ring-8", 100e9), ("full-8", 50e9)])
def test_a_ring_and_a_full_mesh_have_no_knee(machine, rate):
    scaling = scaled(machine)
    assert (scaling.knee, scaling.below) == (None, ())
    found = plateaus(scaling)
    assert found.pop(1) is None
    assert found == pytest.approx(dict.fromkeys((2, 4, 8), 0.84 * rate), rel=0.02)
    for count in scaling.counts[1:]:
        assert count.efficiency == pytest.approx(count.plateau / count.expected.figure)
        assert count.verdict == "ok"
        assert count.expected.theoretical == pytest.approx(rate)


def test_what_devices_pass_on_is_not_known():
    two, four, eight = (count.expected for count in scaled("ring-8").counts[1:])
    assert two.achievable == eight.achievable == pytest.approx(100e9 * 16 / 18)
    assert four.achievable is None
    assert "sim:3 -> sim:0: no link joins the two" in four.because


def test_two_islands_have_a_knee_at_the_way_between_them():
    scaling = scaled("islands-2x4")
    knee = scaling.knee
    assert (knee.gpus, scaling.below) == (8, ())
    assert knee.left == pytest.approx(31.51e9 * 0.83 / (450e9 * 0.84), rel=0.02)
    assert knee.because.startswith("sim:3 -> sim:4 and sim:7 -> sim:0, over PCIe")
    assert "host:0-host:1" in knee.because
    assert scaling.counts[-1].expected.theoretical == pytest.approx(31.51e9, rel=1e-3)
    assert scaling.counts[-1].expected.narrow == ("sim:3 -> sim:4", "sim:7 -> sim:0")


def test_the_knee_is_at_the_first_count_that_leaves_an_island():
    assert scaled("islands-2x4", counts=(2, 3, 4, 5, 6), sizes=(512 << 20,)).knee.gpus == 5


def test_a_tree_has_a_knee_where_the_ring_first_crosses_the_sockets():
    scaling = scaled("pcie-tree-8", counts=(2, 4, 5, 8))
    knee = scaling.knee
    assert (knee.gpus, scaling.below) == (5, ())
    assert knee.left == pytest.approx(12 / (31.51 * 0.83), rel=0.02)
    assert knee.because == (
        "sim:3 -> sim:4 and sim:4 -> sim:0, over what joins the host's nodes (host:0-host:1)"
    )


def test_a_slow_link_is_measured_alone_and_named():
    run = run_of("full-8", SLOW)
    scaling = scaling_of(run)
    assert scaling.below == (4, 8)
    assert scaling.knee.gpus == 4
    assert scaling.knee.because is None  # nothing that the machine reports says so
    ring = [(f"sim:{n}", f"sim:{(n + 1) % 4}") for n in range(4)]
    assert pairs_in_doubt(scaling, run) == tuple(ring)
    shares = [count.efficiency for count in scaling.counts[2:]]
    assert shares == pytest.approx([0.5 * 0.84 * 18 / 16] * 2, rel=0.01)
    assert [count.verdict for count in scaling.counts] == ["unknown", "ok", "low", "low"]


def test_a_link_that_reports_its_loss_is_what_the_map_names():
    scaling = scaled("ring-8", SLOW)
    assert scaling.below == ()
    assert scaling.knee.gpus == 4
    assert scaling.knee.because.startswith("sim:2 -> sim:3 and sim:3 -> sim:0, over links")
    assert "2 of 4 nvlink" in scaling.counts[2].expected.because


@pytest.mark.parametrize(
    ("collective", "share"), [("alltoall", 7), ("gather", 1), ("scatter", 1), ("sendrecv", 1)]
)
def test_all_links_of_a_full_mesh_carry_pairs_at_once(collective, share):
    scaling = scaled("full-8", collective=collective, counts=(8,), sizes=(512 << 20,))
    (count,) = scaling.counts
    assert scaling.below == ()
    per_link = 0.84 * 50e9
    bus = {"alltoall": 7, "gather": 7, "scatter": 7, "sendrecv": 1}[collective]
    assert count.plateau == pytest.approx(bus * per_link, rel=0.02)
    assert count.expected.achievable == pytest.approx(bus * 50e9 * 16 / 18)


def test_one_device_has_time_and_algbw_alone():
    scaling = scaled("full-8", counts=(1,))
    (count,) = scaling.counts
    assert (count.plateau, count.efficiency, scaling.knee) == (None, None, None)
    assert all(point.algbw > 0 and point.busbw is None for point in count.points)
    assert count.expected.because == "one device sends nothing"


def test_a_hypercube_of_three_is_skipped_with_the_reason():
    scaling = scaled("full-8", collective="hypercube", counts=(2, 3, 4))
    assert [count.gpus for count in scaling.counts] == [2, 4]
    (problem,) = scaling.problems
    assert "a power of two of ranks, not 3" in problem


def test_wrong_elements_are_no_point():
    scaling = scaled("full-8", "flip sim:1 bit=6 cells=3", counts=(2, 4), sizes=SIZES)
    assert [len(count.points) for count in scaling.counts] == [3, 2]
    (problem,) = scaling.problems
    assert problem.startswith("fail: float sum, 4 GPUs, 8 B: 1 element is wrong")


def test_devices_are_those_of_the_largest_count():
    scaling = scaled("full-8", counts=(2, 4), sizes=(8,))
    assert [parse_memory(name).index for name in scaling.devices] == [0, 1, 2, 3]


def test_many_steps_are_no_slow_link():
    small = {"counts": (2, 8), "sizes": (8, 1 << 20)}
    scaling = scaled("full-8", **small)
    assert scaling.below == ()
    assert scaling.knee.gpus == 8
    took = 14 * 3e-6
    moving = (1 << 20) * 7 / 4 / (0.84 * 50e9)
    assert scaling.knee.because == (
        f"no link: of 1 MiB, starting its steps takes {took / (took + moving):.0%} of the time"
    )
    assert scaled("full-8", SLOW, **small).below == (8,)
