"""The quick profile on a host that has nothing else to measure: few figures, buffers beyond the
CPUs' part of the caches, and time for several repetitions."""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.engine import first_look
from linkgauge.engine.profiles import PROFILES
from linkgauge.engine.request import RunRequest, Selection, is_first_look
from linkgauge.engine.session import Session
from linkgauge.model.hardware.host_details import CpuCache, HostDetails
from linkgauge.model.hardware.inventory import Inventory

MI, GI = 1 << 20, 1 << 30
QUICK = PROFILES["quick"]
EMERALD, UNLISTED = "GenuineIntel 6 207", "GenuineIntel 6 1"


def host(cpus=2, cache=300 * MI, shared_by=2, code=None, hypervisor="kvm", free=64 * GI):
    """A host without accelerators: its CPUs see a last-level cache that so many CPUs share."""
    here = machine([], available=free)
    (node,) = here.host.nodes
    node = replace(node, cpus=tuple(range(cpus)), cores=tuple(range(cpus)), last_level_cache=cache)
    caches = (CpuCache(2, "unified", 2 * MI, 1), CpuCache(3, "unified", cache, shared_by))
    details = HostDetails(cpu_code=code, caches=caches, hypervisor=hypervisor)
    return replace(here, host=replace(here.host, nodes=(node,)), inventory=Inventory(host=details))


def request(profile="quick", **what):
    return RunRequest(
        what=Selection(**what), settings=PROFILES[profile], profile=profile, budget="plan"
    )


@pytest.mark.parametrize(
    ("here", "part"),
    [
        (host(code=EMERALD), 10 * MI),  # 5 MiB of each core, of 300 that they see
        (host(code=UNLISTED), 32 * MI),
        (host(code=EMERALD, cache=4 * MI), 4 * MI),  # never more than there is
        (host(cpus=64, shared_by=64, hypervisor=None, code=EMERALD), 300 * MI),
        (host(cpus=2, shared_by=60, hypervisor=None), 10 * MI),  # a cpuset of 2 of 60 CPUs
    ],
)
def test_a_part_of_the_cache_belongs_to_the_cpus(here, part):
    assert first_look.part_of_cache(here, here.host.nodes[0]) == part


@pytest.mark.parametrize(
    ("here", "least", "most"),
    [
        (host(code=EMERALD), 64 * MI, 1200 * MI),
        (host(cpus=16, code=EMERALD), 320 * MI, 1200 * MI),
        (host(cache=8 * MI), 64 * MI, 64 * MI),  # caches are small: nothing to search
        (host(code=EMERALD, free=GI), 64 * MI, 128 * MI),  # an eighth of the memory
        (host(code=EMERALD, free=200 * MI), 25 * MI, 25 * MI),
    ],
)
def test_buffers_are_between_the_part_and_the_whole_of_the_cache(here, least, most):
    ends = first_look.ends_of(here)
    assert (ends.least, ends.most) == (least, most)


def test_a_first_look_is_the_quick_profile_of_a_host_alone():
    alone, with_device = host(), machine([device(0, "x")])
    assert is_first_look(request(), alone)
    assert not is_first_look(request("standard"), alone)
    assert not is_first_look(request(names=("memory_stream_copy",)), alone)
    assert not is_first_look(request(prefixes=("memory_",)), alone)
    assert not is_first_look(request(), with_device)
    assert is_first_look(replace(request(), backends=("host",)), with_device)
    assert not is_first_look(replace(request(), backends=("x",)), with_device)


def looked(asked, here=None, **how):
    """The request of a session after it has prepared a first look, and the searches it asked
    for."""
    tunes = []

    def find(*sizes):
        tunes.append(sizes)
        return 128 * MI

    worker = SimpleNamespace(survey=lambda _: here or host(code=EMERALD), find_buffer=find)
    session = Session(asked, worker)
    session.look_first(**how)
    return session, tunes


def test_a_session_finds_its_buffers_and_gives_each_figure_time():
    session, tunes = looked(request())
    assert tunes == [(0, 64 * MI, 1200 * MI)]
    settings = session.request.settings
    assert settings.max_time > QUICK.max_time
    assert session.request.budget == first_look.BUDGET
    plan = session.plan(SimpleNamespace(say=None))
    sizes = {table.benchmark: table.size for table in plan}
    assert sizes["memory_stream_copy"] == sizes["memory_latency_nodes"] == 128 * MI
    assert sum(len(table.cells) for table in plan) == 8


def test_a_plan_alone_measures_nothing():
    session, tunes = looked(request(), measures=False)
    assert tunes == [(0, 64 * MI, 64 * MI)]  # which leaves nothing to search
    assert session.request.budget == first_look.BUDGET


def test_what_the_user_chose_stays():
    own = replace(request(), settings=replace(QUICK, max_time=9.0), budget=60.0)
    session, _ = looked(own)
    assert (session.request.settings.max_time, session.request.budget) == (9.0, 60.0)
    sized = replace(request(), profile=None, settings=replace(QUICK, sizes=(32 * MI,)))
    session, tunes = looked(sized)
    assert tunes == []
    plan = session.plan(SimpleNamespace(say=None))
    assert {table.size for table in plan if "stream" in table.benchmark} == {32 * MI}


def test_a_session_with_more_to_measure_searches_nothing():
    for asked in (request("standard"), request(names=("memory_stream_copy",))):
        session, tunes = looked(asked)
        assert (session.request, tunes) == (asked, [])
