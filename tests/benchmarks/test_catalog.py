"""Which benchmarks there are, and which of them a profile measures."""

import os
import re

import pytest
from msgspec.structs import replace

from command_kit import linkgauge
from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.model.hardware.machine import Node
from linkgauge.model.settings import Settings

SECONDS = 30
"""What `make run` may take on a machine of two cores, whatever is added."""


@pytest.fixture
def two_cpus():
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(before)[:2])
    yield
    os.sched_setaffinity(0, before)


def test_the_quick_profile_stays_quick_on_two_cores(two_cpus):
    """`make run`: a host of two CPUs, and the one device that PoCL makes of it."""
    done = linkgauge("run", "--dry-run", "--profile", "quick", POCL_DEVICES="pthread")
    (most,) = re.findall(r"; at most (\d+) s", done.stdout)
    assert 0 < int(most) <= SECONDS


WITH_FULL = ("concurrency_", "copy_compute_overlap", "all_to_all_", "disjoint_pairs_", "bisect_")
NEVER = ("multinode_", "ai_", "host_threads", "host_kinds")
NOT_QUICK = ("gpu_", "device_memory_", "memory_pages_")


@pytest.mark.parametrize("profile", ["quick", "standard", "vm", "full"])
def test_what_takes_long_or_other_machines_is_measured_where_it_is_asked_for(profile):
    names = {row.name for row in select((), (), profile=profile)}
    for prefixes, profiles in ((WITH_FULL, {"full"}), (NEVER, set())):
        found = [name for name in names if name.startswith(prefixes)]
        assert bool(found) is (profile in profiles)
    assert profile != "quick" or not [name for name in names if name.startswith(NOT_QUICK)]


def test_profile_vm_takes_no_cpu_for_an_accelerator_unless_asked_to():
    here = machine([replace(device(0), is_cpu=True)], unavailable={"cuda": "no driver"})

    def laid_out(**more):
        request = RunRequest(
            what=Selection(("device_local_copy",)), settings=Settings((64,), profile="vm"), **more
        )
        (benchmark,) = request.what.lay_out(request, here)
        return benchmark

    why = "cuda: no driver; fake:0 is the CPU: --backend fake"
    assert laid_out().reason == f"no accelerator ({why})"
    assert len(laid_out(devices=("fake:0",)).cells) == 1
    assert len(laid_out(backends=("fake",)).cells) == 1


def test_profile_vm_searches_primes_for_as_long_as_the_suite():
    names = ("cpu_primes_single", "cpu_primes_all")
    fabric = DeviceSet("host", (Node(0, (0, 1)),), profile="vm")
    cells = [cell for name in names for cell in CATALOG[name].lay_out(fabric).cells]
    assert len(cells) == len(names)
    assert all(cell.does.fills_time for cell in cells)
    assert PROFILES["vm"].rate_time == 30


def test_profile_vm_measures_the_same_figures_whatever_the_number_of_cpus():
    def places(name, *nodes):
        benchmark = CATALOG[name].lay_out(DeviceSet("host", nodes, profile="vm"))
        return [(c.row, c.column) for c in benchmark.cells], benchmark.reason

    one, two = Node(0, (0, 1, 2)), (Node(0, (0, 1)), Node(1, (2, 3)))
    assert places("memory_stream_triad", one)[0] == [("0 stream", "3")]
    assert places("memory_stream_triad", *two)[0] == [("all stream", "4")]
    assert places("memory_stream_triad", Node(0, ())) == ([], "no CPU may be used")
    assert places("memory_stream_nodes", one) == (
        [], "needs two nodes: with one, all memory is local",
    )  # fmt: skip
    nodes = places("memory_stream_nodes", *two)[0]
    assert nodes == [(f"{row} stream", f"host:{n}") for row in ("0", "1", "all") for n in (0, 1)]
