"""Healthy hardware is never low, two real GPUs and every simulated machine; what is too slow is."""

import random

import pytest
import yaml
from msgspec.structs import replace

from fakes import device, machine
from judge_kit import run_of
from linkgauge.backends.sim.description import load, shipped
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.judge.dram import measured_ceilings
from linkgauge.judge.expect import START, Expectation, Expectations
from linkgauge.judge.verdict import HIGH, LOOSE, LOW, judge, judge_result, verdict
from linkgauge.model.inventory import (
    Accelerator,
    FabricLink,
    HostDetails,
    Inventory,
    PciFunction,
    PciLink,
)
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Profiled
from linkgauge.model.result import CellResult, Expected, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report

SIZE = 512 << 20


def h200(n):
    links = tuple(
        FabricLink(k, "nvlink", active=True, version="4.0", rate=26.562e9, remote="nvswitch")
        for k in range(18)
    )
    peak = 3201e6 * 2 * 6144 / 8
    return Accelerator(memory=f"cuda:{n}", model="NVIDIA H200", links=links, memory_rate=peak)


def two_h200s():
    """What readers find in the virtual machine of docs/benchmarks.md: no node, no bridge."""
    addresses = ["0000:8d:00.0", "0000:91:00.0"]
    gen5 = PciLink(speed=32, width=16, max_speed=32, max_width=16)
    inventory = Inventory(
        host=HostDetails(hypervisor="KVM"),
        pci=tuple(
            PciFunction(address=a, link=gen5, max_payload=256, max_read_request=512)
            for a in addresses
        ),
        accelerators=(h200(0), h200(1)),
    )
    found = [device(n, "cuda", 141 << 30, pci=a) for n, a in enumerate(addresses)]
    return replace(machine(found), inventory=inventory)


# The median of each cell in docs/benchmarks.md, GB/s: the lowest of a benchmark's cells.
MEASURED = {
    "host_to_device_memcpy_ce": 55.41,
    "device_to_host_memcpy_ce": 55.35,
    "host_to_device_bidirectional_memcpy_ce": 51.05,
    "device_to_host_bidirectional_memcpy_ce": 50.79,
    "device_to_device_memcpy_read_ce": 393.57,
    "device_to_device_memcpy_write_ce": 396.13,
    "device_to_device_bidirectional_memcpy_read_ce": 778.88,
    "device_to_device_bidirectional_memcpy_write_ce": 783.51,
    "all_to_host_memcpy_ce": 55.12,
    "all_to_host_bidirectional_memcpy_ce": 51.27,
    "host_to_all_memcpy_ce": 54.72,
    "all_to_one_write_ce": 396.05,
    "all_to_one_read_ce": 393.67,
    "one_to_all_write_ce": 396.08,
    "one_to_all_read_ce": 393.58,
    "host_to_device_memcpy_sm": 51.34,
    "device_to_host_memcpy_sm": 52.56,
    "host_to_device_bidirectional_memcpy_sm": 42.15,
    "device_to_host_bidirectional_memcpy_sm": 42.32,
    "device_to_device_memcpy_read_sm": 376.29,
    "device_to_device_memcpy_write_sm": 370.38,
    "device_to_device_bidirectional_memcpy_read_sm": 677.80,
    "device_to_device_bidirectional_memcpy_write_sm": 732.63,
    "all_to_host_memcpy_sm": 52.36,
    "host_to_all_memcpy_sm": 51.24,
    "all_to_one_write_sm": 370.37,
    "all_to_one_read_sm": 370.35,
    "one_to_all_write_sm": 370.41,
    "one_to_all_read_sm": 370.37,
    "device_local_copy": 2092.29,
}
# Two devices at once that both meet the host both ways: what the host carries nobody tells.
UNKNOWN = {
    "host_to_all_bidirectional_memcpy_ce": 31.79,
    "all_to_host_bidirectional_memcpy_sm": 42.17,
    "host_to_all_bidirectional_memcpy_sm": 41.91,
}


def measured(name, gigabytes, of):
    """The benchmark's cells on this machine, each with this figure."""
    benchmark = CATALOG[name].lay_out(DeviceSet("cuda", of.host.nodes, of.devices["cuda"]))
    cells = tuple(
        CellResult(cell.row, cell.column, cell.transfers, cell.report, "pass",
                   bytes=cell.bytes_reported(SIZE), summary=summarize([gigabytes * 1e9] * 6))
        for cell in benchmark.cells
    )  # fmt: skip
    return Result(benchmark=name, title=name, backend="cuda", size=SIZE, unit="B/s",
                  better="higher", status="pass", cells=cells)  # fmt: skip


def verdicts(name, gigabytes):
    of = two_h200s()
    judged = judge_result(measured(name, gigabytes, of), Expectations(of))
    return {cell.verdict for cell in judged.cells}


@pytest.mark.parametrize("name", MEASURED)
def test_what_two_h200s_reach_is_ok(name):
    assert verdicts(name, MEASURED[name]) == {"ok"}


@pytest.mark.parametrize("name", UNKNOWN)
def test_what_nothing_tells_of_two_h200s_is_unknown(name):
    assert verdicts(name, UNKNOWN[name]) == {"unknown"}


@pytest.mark.parametrize(
    "name", [name for name in MEASURED if not name.startswith(("all_to_host", "host_to_all"))]
)
def test_half_of_what_two_h200s_reach_is_low(name):
    assert verdicts(name, MEASURED[name] / 2) == {"low"}


@pytest.mark.parametrize("name", MEASURED)
def test_twice_what_two_h200s_reach_is_high(name):
    assert verdicts(name, MEASURED[name] * 2) == {"high"}


# Efficiencies go up and down by a twentieth, noise to 2 %: what the judge is not told.
@pytest.mark.parametrize("seed", [None, 1, 2, 3])
@pytest.mark.parametrize("name", shipped())
def test_a_healthy_simulated_machine_is_never_low(name, seed):
    _, text = load(name)
    if seed is not None:
        text = _varied(text, random.Random(f"{name} {seed}"))
    few = [f"sim:{n}" for n in range(3 if name not in ("riscv-2gpu", "vm-degraded") else 1)]
    if name == "riscv-2gpu":
        few.append("sim:1")
    judged = judge(run_of(name, text, *(_ON_HOST + _ON_DEVICES), size=SIZE, devices=few))
    beside = [
        (result.benchmark, cell.row, cell.column, cell.summary.median, cell.expected)
        for result in judged.results
        for cell in result.cells
        if cell.verdict in ("low", "high")
    ]
    assert beside == []
    assert any(cell.verdict == "ok" for result in judged.results for cell in result.cells)


_ON_HOST = ("host_to_host_memcpy_read_cpu", "host_to_host_memcpy_copy_cpu")
_ON_DEVICES = tuple(MEASURED) + tuple(UNKNOWN)


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
    run = run_of("dgx", load("dgx-h200-8")[1], *names, size=SIZE, devices=["sim:0", "sim:1"],
                 faults=["slow sim:1 rate=50%"])  # fmt: skip
    pairs, from_host = judge(run).results[::-1]
    assert [cell.verdict for cell in from_host.cells] == ["ok", "low"]
    assert {cell.verdict for cell in pairs.cells} == {"low"}


def test_nothing_is_expected_under_a_profiler():
    run = run_of("dgx", load("dgx-h200-8")[1], "host_to_device_memcpy_ce", size=SIZE,
                 faults=["slow sim:1 rate=50%"])  # fmt: skip
    (result,) = run.results
    cells = tuple(replace(cell, notes=(Profiled("ncu"),)) for cell in result.cells)
    profiled = replace(run, results=(replace(result, cells=cells),))
    found = [(cell.expected, cell.verdict) for cell in judge(profiled).results[0].cells]
    assert found == [(None, "unknown")] * 8


def _beside(machine_name):
    """Pairs as judged, measured beside others; and as if each had been alone."""
    text, name = load(machine_name)[1], "device_to_device_memcpy_write_ce"
    devices = ["sim:0", "sim:1", "sim:4", "sim:5"]
    run = run_of(machine_name, text, name, size=SIZE, devices=devices, pairs=True)
    return judge(run).results[0].cells, judge(replace(run, results=_alone(run))).results[0].cells


def test_pairs_beside_others_are_not_held_against_what_they_reach_alone():
    """Where what they may share is not known."""
    beside, alone = _beside("rbln-32")
    assert {cell.expected.achievable for cell in beside} == {None}
    # Those within a switch have an expectation of their own; other ways have none.
    known = [cell.expected.achievable is not None for cell in alone]
    assert ["other pairs" in cell.expected.because for cell in beside] == known
    assert any(known)


def test_pairs_beside_others_that_share_no_link_are_as_fast_as_alone():
    beside, alone = _beside("dgx-h200-8")
    assert [cell.expected for cell in beside] == [cell.expected for cell in alone]
    assert {cell.verdict for cell in beside} == {"ok"}


def _alone(run):
    (result,) = run.results
    return (replace(result, cells=tuple(replace(cell, notes=()) for cell in result.cells)),)


def reached(figure, bytes_=1 << 30, **more):
    return CellResult("0", "0", parse_transfers("host:0 -> x:0 by ce"), Report.FIRST,
                      more.pop("status", "pass"), bytes=bytes_,
                      summary=summarize([figure] * 6), **more)  # fmt: skip


class TestVerdict:
    ESTIMATE = Expectation(Expected(50e9, 40e9, ""), most=50e9)

    def longest(self, share):
        """A hair faster than what is low, which leaves the start of a copy aside."""
        seconds = (1 << 30) / (share * 40e9) + START
        return (1 << 30) / seconds * 1.0001

    def test_low_leaves_room_below_what_is_achievable(self):
        assert verdict(reached(self.longest(LOW)), self.ESTIMATE) == "ok"
        assert verdict(reached(self.longest(LOW) * 0.999), self.ESTIMATE) == "low"

    def low(self, **more):
        return verdict(replace(reached(10e9), **more), self.ESTIMATE)

    def test_low_is_a_cell_with_its_whole_interval(self):
        wide = replace(reached(10e9).summary, ci95=(9e9, 39e9))
        assert self.low() == "low"
        assert self.low(summary=replace(wide, ci95=(9e9, 11e9))) == "low"
        assert self.low(summary=wide) == "unknown"

    def test_without_an_interval_the_median_decides(self):
        assert self.low(summary=replace(reached(10e9).summary, ci95=None)) == "low"

    def test_low_is_no_cell_whose_last_visit_was_not(self):
        before, visits = (10e9,) * 9, ((3,), (1, 2), (3,), (2,))
        assert self.low(samples=(*before, 10e9, 10e9), visits=visits) == "low"
        assert self.low(samples=(*before, 39e9, 39e9), visits=visits) == "unknown"

    def test_more_room_where_it_is_known_roughly(self):
        loose = replace(self.ESTIMATE, loose=True)
        assert verdict(reached(self.longest(LOOSE)), loose) == "ok"
        assert verdict(reached(self.longest(LOOSE) * 0.999), loose) == "low"

    def test_high_is_more_than_any_sharing_lets_through(self):
        assert verdict(reached(50e9 * HIGH), self.ESTIMATE) == "ok"
        assert verdict(reached(50e9 * HIGH * 1.001), self.ESTIMATE) == "high"

    def test_a_short_copy_may_spend_its_time_starting(self):
        assert verdict(reached(10e9, bytes_=1 << 20), self.ESTIMATE) == "ok"

    def test_a_theoretical_figure_alone_never_makes_low(self):
        bound = Expectation(Expected(50e9, None, ""), most=50e9)
        assert verdict(reached(LOW * 50e9), bound) == "ok"
        assert verdict(reached(1e9), bound) == "unknown"

    def test_nothing_measured_or_expected_is_unknown(self):
        assert verdict(reached(1e9), Expectation(Expected())) == "unknown"
        cell = replace(reached(1e9), summary=None, status="error")
        assert verdict(cell, self.ESTIMATE) == "unknown"


class TestCeilings:
    def result(self, of, figures, size=SIZE):
        cells = tuple(
            replace(reached(figure * 1e9), transfers=parse_transfers(text))
            for text, figure in figures.items()
        )
        return measured_ceilings([Result(
            benchmark="host_to_host", title="", backend="host", size=size, unit="B/s",
            better="higher", status="pass", cells=cells,
        )], of)  # fmt: skip

    def test_nodes_alike_are_held_against_the_best_of_them(self):
        found = self.result(machine(nodes=2), {
            "host:0 -> null by host:0.cpu": 100, "host:1 -> null by host:1.cpu": 60,
            "host:1 -> null by host:0.cpu": 500, "host:0 -> null by host:0.cpu*1": 500,
        })  # fmt: skip
        assert found.best[0, "read"] == found.best[1, "read"] == 100e9
        assert (0, "copy") not in found.best

    @pytest.mark.parametrize(("nodes", "verdicts"), [(1, ["unknown"]), (2, ["ok", "ok"])])
    def test_no_figure_is_held_against_itself(self, nodes, verdicts):
        """The only node's is not judged; of two, each is held against the other."""
        run = run_of("dgx", load("dgx-h200-8")[1], "device_local_copy", devices=["sim:0"])
        cells = tuple(
            replace(reached((100 - node) * 1e9), row=str(node),
                    transfers=parse_transfers(f"host:{node} -> null by host:{node}.cpu"))
            for node in range(nodes)
        )  # fmt: skip
        result = replace(run.results[0], backend="host", size=SIZE, unit="B/s", cells=cells)
        (judged,) = judge(replace(run, machine=machine(nodes=nodes), results=(result,))).results
        assert [cell.verdict for cell in judged.cells] == verdicts
        figures = [cell.summary.median for cell in cells]
        assert [cell.expected.achievable for cell in judged.cells] == (
            [None] if nodes == 1 else figures[::-1]
        )

    def test_unlike_nodes_are_not(self):
        of = machine(nodes=2)
        small = replace(of.host.nodes[1], cpus=(2,))
        of = replace(of, host=replace(of.host, nodes=(of.host.nodes[0], small)))
        figures = {"host:0 -> null by host:0.cpu": 100, "host:1 -> null by host:1.cpu": 60}
        assert self.result(of, figures).best[1, "read"] == 60e9

    def test_a_copy_reads_and_writes(self):
        found = self.result(machine(), {"host:0 -> host:0 by cpu": 60,
                                        "host:0 -> null by cpu": 100})  # fmt: skip
        assert found.traffic(0) == 120e9
        assert found.traffic(1) is None

    def test_what_a_cache_holds_tells_nothing(self):
        of = machine()
        of = replace(of, host=replace(of.host, last_level_cache=SIZE))
        assert self.result(of, {"host:0 -> null by cpu": 100}).traffic(0) is None
