"""On a host that others use, copies vary, and nothing is wrong with the machine: what varies in the
same way on all parts of a kind is a note. Real runs, and such runs with samples that are drawn."""

import random

import pytest
from msgspec.structs import replace

from campaigns import trials
from linkgauge.judge.findings import Evidence, evidence_of
from linkgauge.judge.outcome import doubtful, outcome_of
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.notation import parse_transfers
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from recorded_kit import HEALTHY
from unsteady_kit import real, redrawn, warned

EQUIVALENT = "doctor, shared hosts: what varies in the same way is a warning"
LOUD = "doctor, shared hosts: a card three times as noisy is found"
CPUS = "doctor, shared hosts: CPUs that are interrupted are a warning"


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_run_on_a_shared_host_does_not_warn(name):
    outcome = outcome_of(real(name))
    assert (outcome.code, outcome.findings) == (0, ())
    assert not [finding for finding in outcome.found if finding.severity in ("fail", "warn")]


def test_noise_and_spikes_alike_on_both_cards_are_no_warning(holds):
    drawn = [
        warned(redrawn(f"{noise} {spikes} {n}", noise=noise, spikes=spikes))
        for noise in (0.003, 0.03, 0.04, 0.06, 0.1)
        for spikes in (0.0, 0.002, 0.005, 0.01, 0.02)
        for n in range(trials(EQUIVALENT))
    ]
    alarms = [found for found in drawn if found]
    print(alarms)
    holds(EQUIVALENT, len(alarms), len(drawn))


def test_a_card_three_times_as_noisy_as_its_peer_is_found(holds):
    drawn = [
        warned(redrawn(f"louder {noise} {n}", noise=noise, louder=3.0))
        for noise in (0.03, 0.06, 0.1)
        for n in range(trials(LOUD))
    ]
    right = [found for found in drawn
             if any(f.check == "scatter" and "cuda:1" in f.subject for f in found)]  # fmt: skip
    holds(LOUD, len(right), len(drawn))
    assert not [f for found in drawn for f in found if "cuda:0" in f.subject]


def test_figures_of_a_machine_as_quiet_as_its_peers_are_not_compared_with_zero():
    """Three times nothing is nothing: 0.9 % beside 0.3 %."""
    assert not warned(redrawn("quiet", noise=0.003, louder=3.0))


def latencies(draw, spiky, pinned=None, count=16):
    """Latencies between CPUs: each of 128 round trips may be interrupted; of pairs with the CPU
    `pinned`, ten times as often."""
    cells = []
    for one in range(count):
        for other in range(one + 1, count):
            chance = spiky() * (10 if pinned in (one, other) else 1)
            longer = [draw.uniform(2, 60) if draw.random() < chance else 1 for _ in range(128)]
            samples = [draw.gauss(80e-9, 1e-9) * times for times in longer]
            transfers = parse_transfers(f"cpu:{one} -> cpu:{other} by cpu")
            cells.append(CellResult(
                str(one), str(other), transfers, Report.LATENCY, "pass", bytes=64, loops=1000,
                repetitions=((64,), (64,)), samples=tuple(samples),
                summary=summarize(samples, "lower"),
            ))  # fmt: skip
    result = Result(
        benchmark="core_to_core_latency", title="t", backend="host", size=64, unit="s",
        better="lower", sweep=True, status="pass", cells=tuple(cells),
    )  # fmt: skip
    return Evidence(real("01").machine, None, (result,))


def test_cpus_that_a_host_interrupts_now_and_then_are_no_stall(holds):
    drawn = []
    for n in range(trials(CPUS)):
        draw = random.Random(n)
        drawn.append(warned(latencies(draw, lambda: draw.choice((0, 0, 0, 0.001, 0.004)))))  # noqa: B023
    holds(CPUS, sum(map(bool, drawn)), len(drawn))


def test_a_cpu_that_is_interrupted_ten_times_as_often_as_others_is_found():
    draw = random.Random(1)
    found = warned(latencies(draw, lambda: 0.002, pinned=3))
    assert [(f.check, f.subject) for f in found] == [("stall", "cpu:3")]


def unsettled(repetitions):
    """A run of which copies of cuda:1 over PCIe vary by 20 % in these repetitions (of three)."""
    run, draw = real("01"), random.Random(7)
    results = []
    for result in run.results:
        cells = []
        for cell in result.cells:
            loud = "cuda:1" in str(cell.transfers[0]) and "host:0" in str(cell.transfers[0])
            samples = [
                cell.summary.median * draw.gauss(1, 0.2 if loud and n in repetitions else 0.003)
                for n in range(3) for _ in range(3)
            ]  # fmt: skip
            cells.append(replace(cell, samples=tuple(samples), repetitions=((3,),) * 3,
                                 summary=summarize(samples, result.better)))  # fmt: skip
        results.append(replace(result, cells=tuple(cells)))
    return replace(run, results=tuple(results))


def test_what_later_repetitions_confirm_is_a_warning_and_was_doubtful_before():
    run = unsettled({0, 1, 2})
    (found,) = warned(evidence_of(run))
    assert (found.check, "cuda:1" in found.subject) == ("scatter", True)
    asked = {(run.results[cell.table].benchmark, str(cell.place)) for cell in doubtful(run)}
    assert {name for name, _ in asked} >= {"host_to_device_memcpy_ce", "device_to_host_memcpy_ce"}


def test_what_one_repetition_saw_and_no_later_one_is_no_warning(holds):
    assert not warned(evidence_of(unsettled({1})))
