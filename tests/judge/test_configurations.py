"""Configurations compared: which figure stands for a label, its interval, the baseline, and in what
machines differ."""

import json

import msgspec
import pytest

from command_kit import called
from configurations_kit import SPREAD, THREE, cell, machine_of, result, run_of
from linkgauge.model.settings import Simulation
from linkgauge.report.files import write_run

TRIAD = "memory_stream_triad"


@pytest.fixture
def compare(tmp_path):
    """`linkgauge show` of a folder of these runs."""

    def compared(*runs):
        for number, run in enumerate(runs):
            folder = tmp_path / "results/card" / run.label / str(number)
            folder.mkdir(parents=True)
            write_run(folder, run)
        document = json.loads(called("show", "results", "--json", cwd=tmp_path).stdout)
        return document["comparisons"][0]

    return compared


def triad(comparison):
    """The figure of STREAM triad for each label."""
    (one,) = (one for one in comparison["compared"] if one["name"] == "STREAM triad")
    labels = (configuration["label"] for configuration in comparison["configurations"])
    return dict(zip(labels, one["figures"], strict=True))


def is_proven(figure):
    low, high = figure["against"]["low"], figure["against"]["high"]
    return low is not None and not low <= 1 <= high


def triads(*scales, label="a", seed=0, spread=SPREAD):
    """Runs of a label, a second apart, whose triads are these multiples of 100 GB/s."""
    return [
        run_of(label, result(TRIAD, cell("0 stream", "8", 100e9 * scale, spread)),
               started=f"2026-11-21T20:{seed:02d}:{n:02d}Z")
        for n, scale in enumerate(scales)
    ]  # fmt: skip


def test_the_figure_is_of_most_threads_the_largest_size_and_the_slowest_device(compare):
    run = run_of(
        "a",
        result(
            TRIAD,
            cell("0 stream", "1", 10e9), cell("0 stream", "4", 40e9), cell("0 peak", "4", 44e9),
            cell("0 stream", "host:1", 20e9),
        ),
        result("memory_latency", cell("0 base", "4 KiB", 1e-9), cell("0 base", "512 MiB", 9e-8),
               cell("0<-1 base", "512 MiB", 2e-7)),
        result("host_to_device_memcpy_ce", cell("0", "0", 55e9), cell("0", "1", 25e9),
               cell("0", "2", 5e9, status="error")),
        result("cpu_primes_all", cell("0", "4", 6000.0)),
    )  # fmt: skip
    shown = {one["name"]: one["figures"][0]["median"] for one in compare(run)["compared"]}
    assert shown == pytest.approx(
        {"STREAM triad": 40e9, "latency base": 9e-8, "H2D pinned": 25e9, "primes all/n": 1500},
        rel=0.001,
    )


def test_without_intervals_nothing_is_proven(compare):
    def bare(run):
        (table,) = run.results
        summary = msgspec.structs.replace(table.cells[0].summary, ci95=None)
        # Of a file that records no repetitions.
        cells = (msgspec.structs.replace(table.cells[0], summary=summary, repetitions=()),)
        return msgspec.structs.replace(run, results=(msgspec.structs.replace(table, cells=cells),))

    found = compare(*map(bare, triads(1.0)), *map(bare, triads(0.5, label="b", seed=1)))
    assert triad(found)["b"]["against"]["ratio"] == pytest.approx(0.5)
    assert not is_proven(triad(found)["b"])


@pytest.mark.parametrize(
    ("first", "second", "wider", "proven"),
    [
        # Runs 5 % apart, whose own samples scatter by 0.2 %, widen all intervals.
        ((1.0, 1.05, 0.95), (1.02, 0.97), 1, False),
        ((1.0, 1.01, 0.99), (0.7, 0.71), 1, True),
        # One degree of freedom would make every interval nine deviations wide.
        # Of several host threads that vary by 4 %, runs vary by more than their repetitions show.
        ((1.0, 1.004), (0.5,), 20, True),
        ((1.0, 1.004), (0.9,), 20, False),
    ],
)
def test_runs_that_vary_widen_the_interval_of_all_alike_labels(
    first, second, wider, proven, compare
):
    spread = [wider * each for each in SPREAD]
    sides = *triads(*first, spread=spread), *triads(*second, label="b", seed=1, spread=spread)
    found = triad(compare(*sides))
    assert [one["runs"] for one in found.values()] == [len(first), len(second)]
    assert is_proven(found["b"]) is proven


def facts(comparison):
    return {fact["name"]: fact["values"] for fact in comparison["facts"]}


def test_facts_are_those_that_differ(compare):
    found = facts(compare(THREE[2], THREE[0]))
    assert found["hypervisor"] == ["none", "KVM"]
    assert found["CPUs"] == [
        "64 of 2 sockets × 16 cores × 2 threads",
        "16 of 1 socket × 8 cores × 2 threads",
    ]
    assert found["kernel options"] == ["isolcpus=2-7", "none"]
    assert found["device nodes"] == ["0", "unknown"]
    assert "governor" not in found


def test_huge_pages_and_faults_are_facts(compare):
    def struck(label, huge, *faults):
        run = run_of(label, of=machine_of("vm", 1, 4, "6", huge), simulated=True)
        simulation = Simulation("m", "text", faults)
        settings = msgspec.structs.replace(run.settings, simulation=simulation)
        return msgspec.structs.replace(run, settings=settings)

    assert facts(compare(struck("a", 512), struck("b", 0, "slow host:0 rate=60%"))) == {
        "huge pages": ["512 of 2.0 MiB, transparent: madvise", "transparent: madvise"],
        "faults": ["none", "slow host:0 rate=60%"],
    }
