"""Configurations compared: which figure stands for a label, its interval, the baseline, and in what
machines differ."""

import random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from configurations_kit import GUEST, HOST, THREE, cell, machine_of, measured, result, run_of
from linkgauge.benchmarks.vm import ASPECTS, VM
from linkgauge.judge.configurations import compare
from linkgauge.judge.machine_facts import differing_facts
from linkgauge.model.errors import InputError
from linkgauge.model.settings import Simulation

TRIAD = "memory_stream_triad"


def figures(comparison, name):
    """A figure for each label, by its name."""
    (one,) = (one for one in comparison.compared if one.name == name)
    labels = (configuration.label for configuration in comparison.configurations)
    return dict(zip(labels, one.figures, strict=True))


def triads(*scales, label="a", seed=0):
    """Runs of a label, a second apart, whose triads are these multiples of 100 GB/s."""
    return [
        run_of(label, result(TRIAD, cell("0 stream", "8", 100e9 * scale)),
               started=f"2026-11-21T20:{seed:02d}:{n:02d}Z")
        for n, scale in enumerate(scales)
    ]  # fmt: skip


def test_every_aspect_is_of_something_that_can_be_measured():
    for aspect in ASPECTS:
        measured_by_it = [name for name, _ in aspect.sources if name in VM]
        assert measured_by_it or aspect.name == "matmul FP32", aspect.name


def test_the_host_is_the_baseline_however_late_it_was_measured():
    found = compare("x", THREE)
    assert [one.label for one in found.configurations] == ["host", "pinned", "unpinned"]
    assert figures(found, "STREAM triad")["host"].against is None


def test_without_a_host_the_first_label_is_the_baseline_and_another_can_be_asked_for():
    guests = THREE[:2]
    assert [one.label for one in compare("x", guests).configurations] == ["pinned", "unpinned"]
    chosen = compare("x", guests, "unpinned")
    assert [one.label for one in chosen.configurations] == ["unpinned", "pinned"]
    with pytest.raises(InputError, match="no run is labelled 'host': there are pinned, unpinned"):
        compare("x", guests, "host")


def test_the_figure_is_of_most_threads_the_largest_size_and_the_slowest_device():
    found = compare(
        "x",
        [
            run_of(
                "a",
                result(
                    TRIAD,
                    cell("0 stream", "1", 10e9), cell("0 stream", "4", 40e9),
                    cell("0 peak", "4", 44e9), cell("0 stream", "host:1", 20e9),
                ),
                result("memory_latency", cell("0 base", "4 KiB", 1e-9),
                       cell("0 base", "512 MiB", 9e-8), cell("0<-1 base", "512 MiB", 2e-7)),
                result("host_to_device_memcpy_ce", cell("0", "0", 55e9), cell("0", "1", 25e9),
                       cell("0", "2", 5e9, status="error")),
                result("cpu_primes_all", cell("0", "4", 6000.0)),
            )
        ],
    )  # fmt: skip
    shown = {one.name: one.figures[0].median for one in found.compared}
    assert shown == pytest.approx(
        {"STREAM triad": 40e9, "latency base": 9e-8, "H2D pinned": 25e9, "primes all/n": 1500},
        rel=0.001,
    )


def test_a_single_run_keeps_the_interval_that_it_states():
    (figure,) = figures(compare("x", triads(1.0)), "STREAM triad").values()
    assert (figure.low, figure.high) == pytest.approx((99.525e9, 100.525e9), rel=1e-4)
    assert figure.runs == 1


def test_without_intervals_nothing_is_proven():
    def alone(label, figure):
        (run,) = triads(figure, label=label, seed=1 if label == "b" else 0)
        sheet = run.results[0]
        bare = msgspec.structs.replace(
            sheet.cells[0],
            summary=msgspec.structs.replace(sheet.cells[0].summary, ci95=None),
        )
        sheets = (msgspec.structs.replace(sheet, cells=(bare,)),)
        return msgspec.structs.replace(run, results=sheets)

    found = figures(compare("x", [alone("a", 1.0), alone("b", 0.5)]), "STREAM triad")
    assert found["b"].against.ratio == pytest.approx(0.5)
    assert not found["b"].against.is_proven


def test_runs_that_vary_widen_the_interval_of_all_alike_labels():
    """Runs 5 % apart, whose own samples scatter by 0.2 %."""
    runs = [
        *triads(1.0, 1.05, 0.95, label="a"),
        *triads(1.02, 0.97, label="b", seed=1),
    ]
    found = figures(compare("x", runs), "STREAM triad")
    assert [one.runs for one in found.values()] == [3, 2]
    assert (found["a"].high - found["a"].low) / found["a"].median > 0.05
    assert not found["b"].against.is_proven
    apart = [*triads(1.0, 1.01, 0.99, label="a"), *triads(0.7, 0.71, label="b", seed=1)]
    assert figures(compare("x", apart), "STREAM triad")["b"].against.is_proven


def test_two_runs_of_one_label_do_not_blur_a_difference_that_visits_prove():
    """One degree of freedom would make every interval nine deviations wide."""
    runs = [*triads(1.0, 1.004, label="a"), *triads(0.9, label="b", seed=1)]
    assert figures(compare("x", runs), "STREAM triad")["b"].against.is_proven


@given(st.integers(0, 10_000), st.integers(1, 3))
def test_a_difference_lies_within_its_interval(seed, runs):
    draw = random.Random(seed)
    scales = [[draw.gauss(1, 0.001) for _ in range(runs)] for _ in range(2)]
    both = [*triads(*scales[0], label="a"), *triads(*scales[1], label="b", seed=1)]
    against = figures(compare("x", both), "STREAM triad")["b"].against
    assert against.low <= against.ratio <= against.high
    assert abs(against.ratio - 1) < 0.01


def test_an_aspect_that_nobody_measured_is_left_out():
    found = compare("x", [run_of("a", *measured(devices=0))])
    assert {one.of for one in found.compared} == {"host"}
    assert compare("x", [run_of("a")]).compared == ()


def test_facts_are_those_that_differ():
    facts = {fact.name: fact.values for fact in differing_facts([THREE[2], THREE[0]])}
    assert facts["hypervisor"] == ("none", "KVM")
    assert facts["CPUs"] == (
        "64 of 2 sockets × 16 cores × 2 threads",
        "16 of 1 socket × 8 cores × 2 threads",
    )
    assert facts["kernel options"] == ("isolcpus=2-7", "none")
    assert facts["device nodes"] == ("0", "unknown")
    assert "governor" not in facts
    assert differing_facts([THREE[0], THREE[0]]) == ()


def test_facts_of_a_machine_without_an_inventory_are_unknown():
    bare = msgspec.structs.replace(HOST, inventory=None)
    facts = {
        fact.name: fact.values
        for fact in differing_facts([run_of("a", of=bare), run_of("b", of=GUEST)])
    }
    assert facts["hypervisor"] == (None, "KVM")
    assert facts["kernel options"][0] is None


def test_huge_pages_of_a_pool_are_told_from_transparent_ones():
    pool = machine_of("vm", 1, 4, "6", 512)
    none = machine_of("vm", 1, 4, "6", 0)
    facts = differing_facts([run_of("a", of=pool), run_of("b", of=none)])
    assert [fact.values for fact in facts] == [
        ("512 of 2.0 MiB, transparent: madvise", "transparent: madvise")
    ]


def test_faults_of_a_simulated_machine_are_a_difference():
    def struck(*faults):
        run = run_of("a", simulated=True)
        simulation = Simulation("m", "text", faults)
        settings = msgspec.structs.replace(run.settings, simulation=simulation)
        return msgspec.structs.replace(run, settings=settings)

    (fact,) = differing_facts([struck(), struck("slow host:0 rate=60%")])
    assert (fact.name, fact.values) == ("faults", ("none", "slow host:0 rate=60%"))
