"""Which benchmarks there are, and which of them a profile measures."""

import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.benchmarks import catalog
from linkgauge.benchmarks.catalog import CATALOG, select
from linkgauge.engine.plan import fabrics, lay_out, make_plan, most_seconds
from linkgauge.engine.profiles import PROFILES
from linkgauge.model.machine import Node

SECONDS = 30
"""What `make run` may take on a machine of two cores, whatever is added."""


def test_a_row_is_measured_in_its_profiles_alone_unless_it_is_named(monkeypatch):
    name = "device_local_copy"
    monkeypatch.setitem(catalog.CATALOG, name, replace(CATALOG[name], profiles=("full",)))
    assert name not in {row.name for row in select((), (), profile="quick")}
    assert name in {row.name for row in select((), (), profile="full")}
    assert [row.name for row in select((name,), (), profile="quick")] == [name]
    assert [row.name for row in select((), ("device_local",), profile="quick")] == [name]


@pytest.mark.parametrize("profile", PROFILES)
def test_every_profile_measures_something(profile):
    assert select((), (), profile=profile)
    assert {profile} <= {known for row in CATALOG.values() for known in row.profiles}


def test_the_quick_profile_stays_quick_on_two_cores():
    """`make run`: a host of two CPUs and the one device that PoCL makes of it."""
    here = machine([device(0)])
    node = replace(here.host.nodes[0], cpus=(0, 1))
    here = replace(here, host=replace(here.host, cpus=2, nodes=(node,)))
    assert isinstance(node, Node)
    settings = PROFILES["quick"]
    rows = select((), (), profile="quick")
    plan = make_plan(lay_out(rows, fabrics(here, ()), here.host.nodes), here, settings.sizes)
    assert most_seconds(plan, settings) < SECONDS
