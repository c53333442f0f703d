"""Sizes that nobody asked for measure memory; those that somebody did stay as they are."""

from __future__ import annotations

import pytest

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.sizes import size_of, title_of
from linkgauge.model.machine import Host, Machine, Node
from linkgauge.model.transfer import Benchmark

MI, GI = 1 << 20, 1 << 30


def machine(*caches, free=64 * GI):
    nodes = tuple(Node(i, (i,), free, free, cache) for i, cache in enumerate(caches))
    return Machine(Host("h", "s", "k", "a", None, len(nodes), nodes, free, free, None, None))


HOST = Benchmark("host_to_host_memcpy_copy_cpu", "copy", "host", ())


@pytest.mark.parametrize(
    ("size", "caches", "becomes"),
    [
        (64 * MI, (32 * MI,), 128 * MI),
        (64 * MI, (300 * MI,), 1200 * MI),
        (512 * MI, (32 * MI,), 512 * MI),
        (64 * MI, (32 * MI, 300 * MI), 1200 * MI),  # one sheet for all nodes
        (64 * MI, (35 * MI + 1,), 141 * MI),  # rounded up
        (64 * MI, (None,), 64 * MI),
    ],
)
@pytest.mark.parametrize("profile", ["quick", "standard"])
def test_a_profile_of_one_size_goes_beyond_the_caches(size, caches, becomes, profile):
    assert size_of(HOST, size, machine(*caches), profile) == becomes


@pytest.mark.parametrize(
    ("free", "becomes"), [(4 * GI, 512 * MI), (1 * GI, 128 * MI), (100 * MI, 64 * MI)]
)
def test_free_memory_bounds_it(free, becomes):
    assert size_of(HOST, 64 * MI, machine(300 * MI, free=free), "quick") == becomes


@pytest.mark.parametrize(
    ("cache", "free", "becomes"),
    [(32 * MI, 64 * GI, 128 * MI), (1 * MI, 64 * GI, 64 * MI), (32 * MI, 256 * MI, 32 * MI)],
)
def test_arrays_are_as_large_as_caches_demand_and_memory_allows(cache, free, becomes):
    """The memory of a cgroup smaller than the profile's arrays, for example."""
    of = machine(cache, free=free)
    triad = CATALOG["memory_stream_triad"].lay_out(DeviceSet("host", of.host.nodes))
    assert size_of(triad, 512 * MI, of, "standard") == becomes
    assert size_of(triad, 512 * MI, of, None) == 512 * MI
    assert size_of(HOST, 512 * MI, of, "standard") == 512 * MI


def test_what_was_asked_for_a_sweep_and_devices_keep_their_size():
    of = machine(300 * MI)
    device = Benchmark("device_local_copy", "copy", "cuda", ())
    chase = Benchmark("latency", "chase", "host", (), size=2 * MI)
    assert size_of(HOST, 64 * MI, of, None) == 64 * MI
    assert size_of(HOST, 64 * MI, of, "full") == 64 * MI
    assert size_of(device, 64 * MI, of, "quick") == 64 * MI
    assert size_of(chase, 64 * MI, of, "quick") == 2 * MI


def test_a_sweeps_sizes_within_the_caches_say_so():
    of = machine(32 * MI)
    assert title_of(HOST, 16 * MI, of, "full") == "copy, of the caches"
    assert title_of(HOST, 512 * MI, of, "full") == "copy"
    assert title_of(HOST, 16 * MI, of, None) == "copy"  # asked for: the cell has a note
    assert title_of(HOST, 16 * MI, machine(None), "full") == "copy"
    line = Benchmark("line", "line", "host", (), size=64)
    assert title_of(line, 64, of, "full") == "line"  # its only size, and no matter of memory
