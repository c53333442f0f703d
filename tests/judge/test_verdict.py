"""Healthy hardware is never low, on every simulated machine; what is too slow is."""

import random
from collections import Counter

import pytest
import yaml
from msgspec.structs import replace

from fakes import machine
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.judge.expected.expect import Expectation
from linkgauge.judge.expected.link_rates import START
from linkgauge.judge.verdict import HIGH, LOOSE, LOW, judge, verdict
from linkgauge.model.documents.result import CellResult, Expected, TransferFigure
from linkgauge.model.notation import parse_transfers
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from machine_kit import SHIPPED

SIZE = 512 << 20
DGX = load("dgx-h200-8")[1]
ALL = [f"sim:{n}" for n in range(8)]


# Efficiencies go up and down by a twentieth, noise to 2 %: what the judge is not told.
@pytest.mark.parametrize("seed", [None, 1])
@pytest.mark.parametrize("name", [name for name in SHIPPED if name != "fat-tree-1000"])
def test_a_healthy_simulated_machine_is_never_low(name, seed):
    _, text = load(name)
    if seed is not None:
        text = _varied(text, random.Random(f"{name} {seed}"))
    few = [f"sim:{n}" for n in range(3 if name not in ("riscv-2gpu", "vm-degraded") else 1)]
    if name == "riscv-2gpu":
        few.append("sim:1")
    judged = judge(run_of(name, text, *(_ON_HOST + _ON_DEVICES), size=SIZE, devices=few))
    found = {cell.verdict for result in judged.results for cell in result.cells}
    slowed = {"degraded"} if name == "vm-degraded" else set()
    assert found <= {"ok", "not judged", *slowed}
    assert found & {"ok", *slowed}
    all_devices = [f"sim:{n}" for n in range(DEVICES.get(name, 8))]
    judged = judge(run_of(name, text, *TOTALS, size=128 << 20, devices=all_devices))
    found = {cell.verdict for result in judged.results for cell in result.cells}
    assert found <= {"ok", "not judged"}
    if name in ("dgx-h200-8", "gb200-nvl72") and seed is None:
        assert found == {"ok"}


APART = ("disjoint_pairs_write_ce", "bisect_write_ce", "disjoint_pairs_write_sm", "bisect_write_sm")
TOTALS = (*APART, "all_to_all_write_ce", "all_to_all_read_ce", "all_to_all_write_sm",
          "all_to_all_read_sm")  # fmt: skip
DEVICES = {"ppu-2x2": 4, "ipu-m2000": 4, "riscv-2gpu": 2, "vm-degraded": 1}
_ON_HOST = ("host_to_host_memcpy_read_cpu", "host_to_host_memcpy_copy_cpu")
_ON_DEVICES = ("device_local_copy", *(
    name for name in CATALOG
    if name.endswith(("_ce", "_sm")) and name not in TOTALS
    and not name.startswith("multinode") and "latency" not in name
))  # fmt: skip


def _varied(text, draw):
    tree = yaml.safe_load(text)
    for kind in tree["link_kinds"].values():
        for name in {"efficiency", "sm_efficiency"} & kind.keys():
            ways = kind[name].items()
            kind[name] = {w: min(1.0, float(v) * draw.uniform(0.95, 1.05)) for w, v in ways}
    tree["noise"], tree["seed"] = f"{draw.uniform(0.1, 2):.3f}%", draw.randrange(1 << 20)
    return yaml.safe_dump(tree)


def test_a_slow_device_is_low_wherever_it_takes_part():
    names = ("device_to_device_memcpy_write_ce", "host_to_device_memcpy_ce")
    run = run_of("dgx", DGX, *names, size=SIZE, devices=["sim:0", "sim:1"],
                 faults=["slow sim:1 rate=50%"])  # fmt: skip
    pairs, from_host = judge(run).results[::-1]
    assert [cell.verdict for cell in from_host.cells] == ["ok", "low"]
    assert {cell.verdict for cell in pairs.cells} == {"low"}


def test_one_slow_device_is_low_although_the_total_would_do():
    faults = ["slow sim:3 rate=50%"]
    run = run_of("dgx", DGX, *TOTALS, size=128 << 20, devices=ALL, faults=faults)
    for result in judge(run).results:
        (cell,) = result.cells
        apart = result.benchmark in APART
        assert {part.expected is not None for part in cell.parts} == {apart}
        if apart:
            assert cell.summary.median > 0.75 * cell.expected.achievable
            assert cell.verdict == "low"


ONE_FAR = {("ok", None): 7, ("not judged", None): 1}


@pytest.mark.parametrize(
    ("name", "fault", "share", "judged"),
    [
        ("all_to_host_memcpy_ce", "slow sim:3 rate=25%", 0.26, ONE_FAR),
        ("device_local_copy", "slow sim:3 rate=25%", 0.26, ONE_FAR),
        # Memory of the other node is farther from threads than their own.
        ("host_to_host_memcpy_read_cpu", None, None, {("not judged", None): 4}),
        ("device_to_device_latency_sm", None, None, {("ok", 56): 56}),
        ("latency_copy_device", None, None, {("ok", 14): 112, ("ok", 16): 128}),
    ],
)
def test_a_cell_of_which_nothing_is_expected_is_held_against_its_peers(name, fault, share, judged):
    run = run_of("dgx", DGX, name, size=64 << 20, faults=[fault] if fault else [])
    (result,) = judge(run).results
    far = [
        (cell.column, cell.headline / cell.peers, cell.verdict)
        for cell in result.cells if cell.peers is not None
    ]  # fmt: skip
    assert far == ([("3", pytest.approx(share, abs=0.03), "not judged")] if fault else [])
    by = Counter((cell.verdict, cell.expected.peers) for cell in result.cells)
    assert by == judged


def test_only_cells_that_cross_a_degraded_link_have_a_nominal_figure():
    name = "device_to_device_memcpy_read_ce"
    run = run_of("dgx-h200-8", DGX, name, faults=("slow sim:2-nvswitch rate=50%",))
    for cell in judge(run).results[0].cells:
        assert (cell.expected.nominal is not None) == ("2" in cell.place)
        assert cell.verdict == ("degraded" if "2" in cell.place else "ok")
        if cell.expected.nominal:
            assert cell.expected.nominal == pytest.approx(2 * cell.expected.achievable)


@pytest.mark.parametrize(("machine_name", "is_known"), [("rbln-32", False), ("dgx-h200-8", True)])
def test_pairs_beside_others_are_held_against_what_they_reach_alone_if_they_share_nothing(
    machine_name, is_known
):
    devices = ["sim:0", "sim:1", "sim:4", "sim:5"]
    run = run_of(machine_name, load(machine_name)[1], "device_to_device_memcpy_write_ce",
                 size=SIZE, devices=devices, pairs=True)  # fmt: skip
    (result,) = run.results
    alone = (replace(result, cells=tuple(replace(cell, notes=()) for cell in result.cells)),)
    beside, alone = (judge(one).results[0].cells for one in (run, replace(run, results=alone)))
    assert any(cell.expected.achievable for cell in alone)
    if is_known:
        assert [cell.expected for cell in beside] == [cell.expected for cell in alone]
    else:
        assert {cell.expected.achievable for cell in beside} == {None}


def reached(figure, bytes_=1 << 30, **more):
    return CellResult("0", "0", parse_transfers("host:0 -> x:0 by ce"), Report.FIRST,
                      more.pop("status", "pass"), bytes=bytes_,
                      summary=summarize([figure] * 6), **more)  # fmt: skip


PERHAPS = "perhaps low"
ESTIMATE = Expectation(Expected(50e9, 40e9, ""), most=50e9)
BOUND = Expectation(Expected(50e9, None, ""), most=50e9)
SUMMARY = reached(10e9).summary
BEFORE, REPETITIONS = (10e9,) * 9, ((3,), (1, 2), (3,), (2,))


def longest(share):
    """A hair faster than what is low, which leaves the start of a copy aside."""
    seconds = (1 << 30) / (share * 40e9) + START
    return (1 << 30) / seconds * 1.0001


@pytest.mark.parametrize(
    ("cell", "estimate", "said"),
    [
        (reached(longest(LOW)), ESTIMATE, "ok"),
        (reached(longest(LOW) * 0.999), ESTIMATE, "low"),
        # More room where it is known roughly.
        (reached(longest(LOOSE)), replace(ESTIMATE, loose=True), "ok"),
        (reached(longest(LOOSE) * 0.999), replace(ESTIMATE, loose=True), "low"),
        (reached(50e9 * HIGH), ESTIMATE, "ok"),
        (reached(50e9 * HIGH * 1.001), ESTIMATE, "high"),
        # Low is a cell with its whole interval, as far as it is known …
        (replace(reached(10e9), summary=replace(SUMMARY, ci95=(9e9, 11e9))), ESTIMATE, "low"),
        (replace(reached(10e9), summary=replace(SUMMARY, ci95=(9e9, 39e9))), ESTIMATE, PERHAPS),
        (replace(reached(10e9), summary=replace(SUMMARY, ci95=None)), ESTIMATE, "low"),
        # … and with its last repetition.
        (reached(10e9, samples=(*BEFORE, 10e9, 10e9), repetitions=REPETITIONS), ESTIMATE, "low"),
        (reached(10e9, samples=(*BEFORE, 39e9, 39e9), repetitions=REPETITIONS), ESTIMATE, PERHAPS),
        # A short copy may spend its time starting; a theoretical figure never makes low.
        (reached(10e9, bytes_=1 << 20), ESTIMATE, "ok"),
        (reached(LOW * 50e9), BOUND, "ok"),
        (reached(1e9), BOUND, "not judged"),
        (reached(1e9), Expectation(Expected()), "not judged"),
        (replace(reached(1e9), summary=None, status="error"), ESTIMATE, "not judged"),
    ],
)
def test_verdicts(cell, estimate, said):
    assert verdict(cell, estimate)[0] == said


EACH = Expectation(Expected(100e9, 80e9, ""), most=100e9, each=(40e9, 40e9))


def total(*rates, samples=None, expected=40e9):
    """Of two transfers that should reach 40 GB/s each."""
    parts = tuple(
        TransferFigure(
            n,
            1 << 30,
            samples or (rate,) * 6,
            summarize([rate or 1] * 6) if rate else None,
            expected,
        )
        for n, rate in enumerate(rates)
    )
    whole = sum(map(bool, rates)) and sum(rate or 40e9 for rate in rates)
    return CellResult(
        "0", "0", parse_transfers("x:0 -> x:1 by ce & x:2 -> x:3 by ce"), Report.TOTAL, "pass",
        bytes=2 << 30, parts=parts, summary=summarize([whole] * 6), samples=(whole,) * 6,
        repetitions=((3,), (3,)), definition="sustained",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        (total(45e9, 20e9), "low"),
        (total(45e9, 31e9), "ok"),
        (total(45e9, 20e9, samples=(20e9,) * 3 + (39e9,) * 3), "perhaps low"),
        # Of which nothing is expected leaves it to the sum.
        (total(45e9, 20e9, expected=None), "ok"),
        (total(25e9, 20e9, expected=None), "low"),
        (total(45e9, None), "not judged"),
    ],
)
def test_a_transfer_that_is_low_makes_the_total_low(cell, said):
    assert verdict(cell, EACH)[0] == said


SMALL = replace(machine(nodes=2).host.nodes[1], cpus=(2,))


@pytest.mark.parametrize(
    ("own", "unlike", "cache", "verdicts"),
    [
        (["host:0 -> null by cpu"], False, 0, ["not judged"]),
        (["host:0 -> null by cpu", "host:1 -> null by cpu"], False, 0, ["ok", "ok"]),
        (["host:0 -> null by cpu", "host:1 -> null by cpu"], True, 0, ["not judged"] * 2),
        (["host:0 -> null by cpu", "host:1 -> null by host:0.cpu"], False, 0, ["not judged"] * 2),
        (["host:0 -> null by cpu", "host:1 -> null by cpu"], False, 2 * SIZE, ["not judged"] * 2),
    ],
    ids=["alone", "equivalent nodes", "nodes that differ", "from afar", "in a cache"],
)
def test_host_memory_is_held_against_that_of_nodes_alike(own, unlike, cache, verdicts):
    """No figure is held against itself."""
    of = machine(nodes=2)
    nodes = (of.host.nodes[0], SMALL) if unlike else of.host.nodes
    of = replace(of, host=replace(of.host, nodes=nodes, last_level_cache=cache or None))
    run = run_of("dgx", DGX, "device_local_copy", devices=["sim:0"])
    cells = tuple(
        replace(reached((100 - n) * 1e9), row=str(n), transfers=parse_transfers(text))
        for n, text in enumerate(own)
    )
    result = replace(run.results[0], backend="host", size=SIZE, unit="B/s", cells=cells)
    (judged,) = judge(replace(run, machine=of, results=(result,))).results
    assert [cell.verdict for cell in judged.cells] == verdicts
