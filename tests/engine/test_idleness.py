"""Devices that others keep busy are found, and what takes part in them waits."""

import uuid
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from fakes import device, machine
from linkgauge.engine.locks import hold
from linkgauge.model.documents.result import PlannedCell, PlannedTable
from linkgauge.model.hardware.inventory import Accelerator, Inventory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Report
from linkgauge.rooms.watch.probe_schedule import HOST, busy_devices, busy_host, is_free


def cell(transfers):
    return PlannedCell("0", "0", parse_transfers(transfers), Report.FIRST)


COPY, OTHER = cell("host:0 -> fake:0 by ce"), cell("host:0 -> fake:1 by ce")
THREADS = cell("host:0 -> host:1 by cpu")
PLAN = (
    PlannedTable(
        benchmark="b", title="B", backend="fake", size=64, unit="B/s", better="higher",
        cells=(COPY, OTHER),
    ),
)  # fmt: skip


def here(*accelerators, **more):
    known = machine([device(0, **more), device(1), device(2)])
    return replace(known, inventory=Inventory(accelerators=accelerators))


def found(name="fake:0", **more):
    return Accelerator(memory=name, model="Fake Card X1", **more)


@pytest.mark.parametrize(
    ("accelerator", "why"),
    [
        (found(utilization=0.0), None),
        (found(utilization=0.05, processes=(77,)), None),
        (found(utilization=0.87), "busy 87% of the time"),
        (
            found(utilization=0.87, processes=(77, 78)),
            "busy 87% of the time (process 77, 78)",
        ),
        (found(processes=(77,)), "in use (process 77)"),
        (found(processes=()), None),
        (found(), None),
        (found("fake:2", utilization=1.0), None),
    ],
)
def test_a_device_at_work_is_busy(accelerator, why):
    busy = busy_devices(here(accelerator), PLAN)
    assert busy == ({} if why is None else {"fake:0": why})


def test_a_device_that_another_run_measures_is_busy():
    key = str(uuid.uuid4())
    there = here(uuid=key)
    assert busy_devices(there, PLAN) == {}
    with hold({key: "fake:0"}):
        (why,) = busy_devices(there, PLAN).values()
        assert why.startswith("measured by process ")
    assert busy_devices(there, PLAN) == {}


def test_what_touches_a_busy_device_waits():
    assert [is_free(one, {"fake:0": "x"}) for one in (COPY, OTHER, THREADS)] == [False, True, True]
    assert [is_free(one, {HOST: "x"}) for one in (COPY, OTHER, THREADS)] == [True, True, False]


def test_the_hosts_cpus_are_looked_at_for_a_while():
    times = iter([SimpleNamespace(busy=100.0, stolen=0.0)] * 2)
    assert busy_host(lambda: next(times), lambda seconds: None) == 0.0
    assert busy_host(lambda: None, lambda seconds: None) == 0.0
