"""What is asked of a session, and what it makes of it."""

from types import SimpleNamespace

import msgspec
import pytest

from compat_kit import ONE_DEVICE
from fakes import device, machine
from linkgauge.engine.controller import Observer
from linkgauge.engine.request import RunRequest, Selection, Written
from linkgauge.engine.session import check_shape, opened, unasked
from linkgauge.model.documents.result import PlannedCell, PlannedTable
from linkgauge.model.errors import InputError
from linkgauge.model.hardware.inventory import Inventory, PciFunction
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import EngineSettings, Settings, Simulation
from linkgauge.model.transfer import Report

SHAPE = EngineSettings(kernel="bulk", streams=2)


def plan(*transfers, reason=None):
    cells = (PlannedCell("0", "0", tuple(map(parse_transfer, transfers)), Report.FIRST, reason),)
    return (
        PlannedTable(benchmark="x", title="x", backend="x", size=1, unit="B/s",
                     better="higher", cells=cells),
    )  # fmt: skip


HOST, OPENCL = "host:0 -> host:0 by cpu", "opencl:0 -> opencl:1 by ce"


@pytest.mark.parametrize(
    ("engines", "asked", "note"),
    [
        (SHAPE, plan("cuda:0 -> cuda:0 by ce", HOST), "note: host ignores --kernel, --streams"),
        (SHAPE, plan("cuda:0 -> cuda:0 by ce"), None),
        (SHAPE, plan(OPENCL, reason="there is none"), None),
        (EngineSettings(), plan(OPENCL), None),
    ],
)
def test_options_for_the_shape_of_copies_are_noted_where_some_ignore_them(engines, asked, note):
    assert check_shape(engines, asked) == note


def test_options_for_the_shape_of_copies_are_refused_where_all_ignore_them():
    with pytest.raises(InputError, match="--kernel, --streams: only backend cuda"):
        check_shape(SHAPE, plan(OPENCL, HOST))


SETTINGS = Settings((4096,), samples=3, loops=1, simulation=Simulation("one", ONE_DEVICE))
COPY = "sim:0 -> sim:0 by ce"


def test_what_has_nothing_to_search_is_not_tuned():
    request = RunRequest(what=Written(COPY), settings=SETTINGS, tune=True)
    with opened(request) as session:
        plan = session.plan(Observer())
        with pytest.raises(InputError, match="nothing to tune"):
            session.measure(plan, Observer())


class TestTorchIsAsked:
    """It takes seconds to load, and what it reaches others often reach better."""

    @pytest.fixture(autouse=True)
    def _installed(self, monkeypatch):
        monkeypatch.setattr("linkgauge.engine.session.find_spec", lambda name: name)

    def here(self, *devices, class_code=0x120000):
        found = Inventory(pci=(PciFunction(address="0000:1b:00.0", class_code=class_code),))
        return msgspec.structs.replace(machine(devices), inventory=found)

    def test_where_nothing_else_reaches_an_accelerator(self):
        assert unasked(self.here()) == ["torch"]
        assert unasked(self.here(device(0, "opencl", is_cpu=True))) == ["torch"]

    def test_but_not_where_something_does_or_there_is_none(self):
        assert unasked(self.here(device(0, "opencl"))) == []
        assert unasked(self.here(class_code=0x020000)) == []
        assert unasked(machine()) == []

    @pytest.mark.parametrize(("is_cpu", "listed"), [(True, ()), (False, ("torch:xpu:0",))])
    def test_and_its_cpu_is_left_out(self, monkeypatch, is_cpu, listed):
        from linkgauge.engine.session import Session

        monkeypatch.setattr("linkgauge.engine.session.find_spec", lambda name: name)
        asked = []

        def look(names):
            asked.append(names)
            more = [device(0, "torch:xpu", is_cpu=is_cpu)] if names == ("torch",) else []
            return msgspec.structs.replace(self.here(), devices=dict(machine(more).devices))

        workers = SimpleNamespace(survey=look)
        found = Session(RunRequest(settings=Settings(sizes=(1,))), workers).machine
        assert asked == [("cuda", "opencl"), ("torch",)]
        assert tuple(one.memory for one in found.all_devices) == listed
        Session(RunRequest(settings=Settings(sizes=(1,)), backends=("opencl",)), workers)
        assert asked[2:] == [("opencl",)]


@pytest.mark.parametrize(
    ("what", "backends"),
    [
        (Written("host:0@0 -> host:0@1 by ucx"), ("net",)),
        (Written("cuda:0@0 -> cuda:1@1 by ucx"), ("cuda", "net")),
        (Written("host:0@0 -> cuda:1@1 by nic:0.rdma"), ("cuda", "net")),
        (Written("cuda:0@0 -> cuda:1@1 by ce"), ("cuda",)),
        (Written("host:0@0 -> host:0@1 by rma"), ("mpi",)), (Selection(("nic_ucx",)), ("net",)),
        (Selection(("nic_tcp", "nic_rdma_gpus")), ("net", "cuda")),
    ],
    ids=str,
)  # fmt: skip
def test_ranks_open_what_their_transfers_need(what, backends):
    assert what.accelerators(RunRequest(what=what)) == backends
