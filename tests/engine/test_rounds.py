"""A tournament of pairs: everyone meets everyone, both ways, nobody twice at once."""

import pytest

from fakes import FakeBackend, device, machine
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.controller import execute
from linkgauge.engine.kept.journal import Opened
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.documents.result import exit_code
from linkgauge.model.errors import AllocationError
from linkgauge.model.notes import Concurrent
from linkgauge.model.settings import Settings
from sim_kit import Silent


def run_of_four(*names, faulty=None, full=None):
    here = machine([device(number) for number in range(4)])
    backend = FakeBackend()
    if faulty is not None:
        backend.refuse = lambda t: "no path" if str(t.source) == faulty else None
    if full is not None:

        def allocate(memory, size):
            if str(memory) == full:
                raise AllocationError("cuMemAlloc", f"out of memory ({memory})")

        backend.on_allocate = allocate
    settings = Settings((4096,), samples=6, parallel_pairs=True)
    worker = LocalWorker(settings)
    worker._backends["fake"] = backend
    benchmarks = lay_out(select(names, ()), fabrics(here, ()), ())
    plan = make_plan(benchmarks, here, settings.sizes, parallel_pairs=True)
    opened = Opened(
        id="1", label="l", command=(), started="s", machine=here, settings=settings, plan=plan
    )
    return execute((opened,), worker, lambda record: None, Silent()), backend


def test_pairs_of_a_round_are_measured_at_once_and_say_so():
    run, backend = run_of_four("device_to_device_bidirectional_memcpy_read_ce")
    (result,) = run.results
    assert exit_code(run) == 0
    assert len(result.cells) == 12
    for cell in result.cells:
        assert cell.notes == (Concurrent(1),)
        assert cell.verified is True
        assert len(cell.parts) == 2
        assert cell.summary.n == 6
    # Six groups of two cells with two transfers each, not twelve of one.
    assert (backend.groups, backend.open_groups) == (6, 0)


def test_a_pair_that_fails_does_not_cost_the_others_of_its_round():
    run, _ = run_of_four("device_to_device_memcpy_write_ce", full="fake:3")
    for cell in run.results[0].cells:
        assert cell.status == ("error" if "3" in (cell.row, cell.column) else "pass")


@pytest.mark.parametrize(("available", "together"), [(3 << 30, False), (4 << 30, True)])
def test_pairs_that_do_not_fit_into_the_hosts_dram_at_once_are_measured_one_by_one(
    available, together
):
    """Each holds 2 GiB, and a round of four devices has two of them."""
    devices = [device(number, shares_host_memory=True) for number in range(4)]
    here = machine(devices, available=available)
    laid_out = lay_out(select(["device_to_device_memcpy_write_ce"], ()), fabrics(here, ()), ())
    (table,) = make_plan(laid_out, here, [1 << 30], parallel_pairs=True)
    assert all((cell.round is not None) == together for cell in table.cells)
    assert {cell.reason for cell in table.cells} == {None}
