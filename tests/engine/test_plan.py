"""The plan knows before it starts what fits where, and says no in one line."""

import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.model.errors import InputError

GI = 1 << 30


def plan_for(names, here, sizes=(GI,), devices=()):
    return make_plan(
        lay_out(select(names, ()), fabrics(here, devices), here.host.nodes), here, sizes
    )


def test_a_size_larger_than_every_memory_is_refused_before_anything_starts():
    here = machine([device(0, "x", 2 * GI)], available=4 * GI)
    with pytest.raises(InputError, match="8 GiB does not fit"):
        plan_for((), here, [8 * GI])


def test_cells_that_do_not_fit_are_skipped_and_the_others_planned():
    here = machine([device(0, "x", 2 * GI, one=8 * GI), device(1, "x", 8 * GI)], available=64 * GI)
    (table,) = plan_for(["host_to_device_memcpy_ce"], here, [4 * GI])
    reasons = [cell.reason for cell in table.cells]
    assert "x:0 has 2.0 GiB" in reasons[0]
    assert reasons[1] is None


def test_interference_of_twice_the_size_counts():
    here = machine([device(0, "x", 8 * GI)], available=5 * GI)
    plain, both = plan_for(
        ["host_to_device_memcpy_ce", "host_to_device_bidirectional_memcpy_ce"], here, [2 * GI]
    )
    assert plain.cells[0].reason is None
    assert "host:0 has 5.0 GiB" in both.cells[0].reason


def test_a_device_that_shares_the_hosts_memory_counts_there():
    here = machine([device(0, "x", 8 * GI, shares_host_memory=True)], available=3 * GI)
    (local,) = plan_for(["device_local_copy"], here)
    assert local.cells[0].reason is None
    with pytest.raises(InputError, match="host memory"):
        plan_for(["device_local_copy"], here, [2 * GI])


def test_too_few_bytes_to_go_both_ways_are_skipped():
    here = machine([device(0, "x")])
    with pytest.raises(InputError, match="both ways"):
        plan_for(["host_to_device_bidirectional_memcpy_sm"], here, [512])


def test_a_device_is_named_by_uuid_or_address_too():
    one = device(0, "x", pci="0000:1b:00.0", uuid="GPU-1234abcd-0000")
    here = machine([one, device(1, "x", pci="0000:3c:00.0", uuid="GPU-9999abcd-0000")])
    addresses = ("0000:1b:00.0", "1b:00.0", "1B:00.0", "00000000:1B:00.0")
    for name in ("GPU-1234abcd-0000", "gpu-1234", *addresses):
        assert [d.memory for d in fabrics(here, [name])[0].devices] == ["x:0"], name
    for name in ("GPU", "0000", "GPU-5", ""):
        with pytest.raises(InputError):
            fabrics(here, [name])


def test_host_memory_may_be_put_on_another_node():
    here = machine([device(0, "x", near=0)], nodes=2)
    assert fabrics(here, (), 1)[0].devices[0].near == 1
    with pytest.raises(InputError, match="no NUMA node 7"):
        fabrics(here, (), 7)
