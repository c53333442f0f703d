"""Sizes that nobody asked for measure memory; those that somebody did stay as they are."""

import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.plan import fabrics, lay_out, make_plan

MI, GI = 1 << 20, 1 << 30
COPY, TRIAD = "host_to_host_memcpy_copy_cpu", "memory_stream_triad"


def planned(name, size, caches, profile, free=64 * GI):
    """The table of a benchmark on a host of nodes with these caches."""
    here = machine([device(0, "x")], nodes=len(caches), available=free)
    nodes = tuple(
        replace(node, last_level_cache=cache)
        for node, cache in zip(here.host.nodes, caches, strict=True)
    )
    here = replace(here, host=replace(here.host, nodes=nodes))
    (table,) = make_plan(
        lay_out(select([name], ()), fabrics(here, ()), nodes), here, [size], profile=profile
    )
    return table


@pytest.mark.parametrize(
    ("size", "caches", "free", "becomes"),
    [
        (64 * MI, [32 * MI], 64 * GI, 128 * MI),
        (64 * MI, [300 * MI], 64 * GI, 1200 * MI),
        (512 * MI, [32 * MI], 64 * GI, 512 * MI),
        (64 * MI, [32 * MI, 300 * MI], 64 * GI, 1200 * MI),  # one table for all nodes
        (64 * MI, [35 * MI + 1], 64 * GI, 141 * MI),  # rounded up
        (64 * MI, [None], 64 * GI, 64 * MI),
        (64 * MI, [300 * MI], 4 * GI, 512 * MI),  # free memory bounds it
        (64 * MI, [300 * MI], 1 * GI, 128 * MI),
        (64 * MI, [300 * MI], 200 * MI, 64 * MI),
    ],
)
def test_a_profile_of_one_size_goes_beyond_the_caches(size, caches, free, becomes):
    assert planned(COPY, size, caches, "quick", free).size == becomes
    assert planned(COPY, size, caches, "standard", free).size == becomes


@pytest.mark.parametrize(
    ("cache", "free", "becomes"),
    [(32 * MI, 64 * GI, 128 * MI), (1 * MI, 64 * GI, 64 * MI), (32 * MI, 256 * MI, 32 * MI)],
)
def test_arrays_are_as_large_as_caches_demand_and_memory_allows(cache, free, becomes):
    """The memory of a cgroup smaller than the profile's arrays, for example."""
    assert planned(TRIAD, 512 * MI, [cache], "standard", free).size == becomes


@pytest.mark.parametrize(
    ("name", "size", "profile"),
    [
        (COPY, 64 * MI, None), (COPY, 64 * MI, "full"), (TRIAD, 512 * MI, None),
        ("device_local_copy", 64 * MI, "quick"), ("host_device_latency_sm", 2 * MI, "quick"),
    ],
)  # fmt: skip
def test_what_was_asked_for_a_sweep_and_devices_keep_their_size(name, size, profile):
    assert planned(name, size, [300 * MI], profile).size == size


@pytest.mark.parametrize(
    ("size", "cache", "profile", "said"),
    [
        (16 * MI, 32 * MI, "full", True),
        (512 * MI, 32 * MI, "full", False),
        (16 * MI, 32 * MI, None, False),  # asked for: the cell has a note
        (16 * MI, None, "full", False),
    ],
)
def test_a_sweeps_sizes_within_the_caches_say_so(size, cache, profile, said):
    title = planned(COPY, size, [cache], profile).title
    assert title.endswith(", of the caches") == said


@pytest.mark.parametrize(
    ("profile", "asked", "cache", "becomes"),
    [
        ("standard", 512 * MI, 2 * MI, 64 * MI), ("standard", 512 * MI, 40 * MI, 160 * MI),
        ("standard", 512 * MI, 300 * MI, 512 * MI), ("standard", 512 * MI, None, 64 * MI),
        ("quick", 64 * MI, 300 * MI, 64 * MI), (None, 512 * MI, 2 * MI, 512 * MI),
        ("full", 512 * MI, 2 * MI, 512 * MI),
    ],
)  # fmt: skip
def test_ranks_host_memories_take_no_more_than_it_takes_to_be_beyond_the_caches(
    profile, asked, cache, becomes
):
    ranks = [device(0, "mpi", memory=f"host:0@{number}") for number in range(2)]
    here = machine(ranks)
    nodes = tuple(replace(node, last_level_cache=cache) for node in here.host.nodes)
    here = replace(here, host=replace(here.host, nodes=nodes))
    rows = select(["multinode_bisect_write_ce", "multinode_latency_flag_pingpong"], ())
    copies, flags = make_plan(
        lay_out(rows, fabrics(here, ()), nodes), here, [asked], profile=profile
    )
    assert (copies.size, flags.size) == (becomes, 256)
