"""Which threads search primes, and for how long."""

import pytest
from msgspec.structs import replace

from fakes import machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.cli.options import Sampling
from linkgauge.cli.requests import settings_of
from linkgauge.engine.plan import lay_out, make_plan, most_seconds
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import EngineSettings

NODE = machine([]).host.nodes[0]


def nodes(*cpus):
    return tuple(replace(NODE, index=number, cpus=own) for number, own in enumerate(cpus))


def cells(name, *cpus):
    return [str(cell) for cell in CATALOG[name].lay_out(DeviceSet("host", nodes(*cpus))).cells]


@pytest.mark.parametrize(
    ("cpus", "single", "all_cpus"),
    [
        ([(3,)], "null -> null by host:0.cpu*1", "null -> null by host:0.cpu*1"),
        (
            [(0, 1), (2, 3, 4)],
            "null -> null by host:0.cpu*1",
            "null -> null by host:0.cpu*2 & null -> null by host:1.cpu*3",
        ),
        ([(), (2, 3)], "null -> null by host:1.cpu*1", "null -> null by host:1.cpu*2"),
    ],
)
def test_one_thread_and_a_thread_on_every_cpu_search_primes(cpus, single, all_cpus):
    assert cells("cpu_primes_single", *cpus) == [single]
    assert cells("cpu_primes_all", *cpus) == [all_cpus]
    assert " & ".join(map(str, parse_transfers(all_cpus))) == all_cpus


@pytest.mark.parametrize("name", ["cpu_primes_single", "cpu_primes_all"])
def test_without_cpus_the_benchmark_says_why(name):
    benchmark = CATALOG[name].lay_out(DeviceSet("host", nodes(())))
    assert not benchmark.cells
    assert "cpuset" in benchmark.reason


@pytest.mark.parametrize(
    ("profile", "max_time", "seconds"),
    [("quick", None, 4), ("standard", None, 4), ("vm", None, 60), ("vm", 5.0, 10)],
)
def test_each_takes_30_seconds_with_the_profile_vm_and_2_else_unless_it_was_asked_for(
    profile, max_time, seconds
):
    sampling = Sampling(max_time=max_time)
    settings = settings_of(profile, None, sampling, EngineSettings(), None)
    here = machine([])
    rows = select((), ("cpu_primes",))
    plan = make_plan(lay_out(rows, (), here.host.nodes), here, settings.sizes)
    assert most_seconds(plan, settings) == pytest.approx(seconds, abs=0.5)
