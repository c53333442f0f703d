"""The staged traffic test: who uses the buffer, in which combinations, and what came of it."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import device, machine
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.benchmarks.traffic import (
    DEVICE_ALONE,
    HOST_ALONE,
    TOGETHER,
    lay_out,
    make_pieces,
    sides_of,
    volume_of,
)
from linkgauge.cli.main import app
from linkgauge.model.errors import InputError
from linkgauge.model.machine import Node
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Part
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report

NODES = machine(nodes=2).host.nodes


def fabric(*nodes, backend="fake"):
    return DeviceSet(backend, nodes or NODES, (device(0, near=1), device(1, near=0)))


def cells(combinations):
    sides = sides_of(fabric(), "sm", 32)
    (benchmark,) = lay_out(combinations, sides, "fake")
    return {(cell.row, cell.column): str(cell) for cell in benchmark.cells}


def test_both_sides_use_one_buffer_near_the_device():
    together = cells(TOGETHER)
    directions = {
        "host <- buffer <- device": ("fake:0 -> {b} by sm", "{b} -> null by cpu*1"),
        "host -> buffer -> device": ("{b} -> fake:0 by sm", "null -> {b} by cpu*1"),
        "host -> buffer <- device": ("fake:0 -> {b} by sm", "null -> {b} by cpu*1"),
        "host <- buffer -> device": ("{b} -> fake:0 by sm", "{b} -> null by cpu*1"),
    }
    for row, halves in directions.items():
        text = " & ".join(halves).format(b="host:1/staging")
        assert together[row, "fake:0"] == text
        other = text.replace("fake:0", "fake:1").replace("host:1", "host:0")
        assert together[row, "fake:1"] == other
    alone = {*cells(DEVICE_ALONE).values(), *cells(HOST_ALONE).values()}
    assert alone == {half for text in together.values() for half in text.split(" & ")}


@pytest.mark.parametrize(
    ("cpus", "threads_on", "count"), [((8, 8), 1, 7), ((8, 4), 1, 3), ((64, 4), 0, 63)]
)
def test_threads_run_near_the_device_unless_that_is_a_gateway(cpus, threads_on, count):
    nodes = [Node(index, tuple(range(many))) for index, many in enumerate(cpus)]
    side = sides_of(fabric(*nodes), "ce", 32)[0]
    assert (side.node, side.threads) == (1, f"host:{threads_on}.cpu*{count}")


def test_backend_host_has_threads_in_a_devices_stead():
    (side,) = sides_of(DeviceSet("host", (Node(0, tuple(range(8))),)), "sm", 32)
    assert (side.memory, side.engine, side.threads) == ("host:0", "host:0.cpu*4", "host:0.cpu*4")
    (few,) = sides_of(DeviceSet("host", (Node(0, (0,)),)), "sm", 2, threads=3)
    assert (few.engine, few.threads) == ("host:0.cpu*1", "host:0.cpu*3")


def test_what_cannot_be_measured_is_refused():
    with pytest.raises(InputError, match="unknown engine 'xy'"):
        sides_of(fabric(), "xy", 1)
    with pytest.raises(InputError, match="no accelerator: backend host"):
        sides_of(DeviceSet("none", NODES, (), "no accelerator"), "sm", 1)


@pytest.mark.parametrize(
    "wrong", [(4096, 100, 32), (4000, 256, 32), (1 << 21, 256, 32), (4096, 256, 0)]
)
def test_small_transfers_that_no_device_makes_are_refused(wrong):
    with pytest.raises(InputError):
        make_pieces(*wrong)


def measured(device_rates, host_rates=None):
    """A cell of 100 bytes and 2 loops a sample."""
    transfers = parse_transfers("fake:0 -> host:0/staging by sm & host:0/staging -> null by cpu")
    rates = (device_rates, host_rates) if host_rates is not None else (device_rates,)
    parts = tuple(Part(n, 100, tuple(r), summarize(r)) for n, r in enumerate(rates))
    return CellResult(
        "r", "c", transfers[: len(rates)], Report.SUM, "pass", bytes=100, loops=2,
        samples=tuple(map(sum, zip(*rates, strict=True))),
        parts=parts if len(parts) > 1 else (),
    )  # fmt: skip


rate = st.floats(1e3, 1e12)


@given(st.lists(st.tuples(rate, rate), min_size=1, max_size=9))
def test_both_rates_are_of_the_same_span(rates):
    of_device, of_host = zip(*rates, strict=True)
    volume = volume_of(measured(of_device, of_host))
    assert volume.seconds == pytest.approx(sum(200 / r for r in of_device))
    assert volume.device_bytes == 200 * len(rates)
    assert volume.device_rate == pytest.approx(200 * len(rates) / volume.seconds)
    assert min(of_host) * 0.999 <= volume.host_rate <= max(of_host) * 1.001


def test_a_side_alone_has_no_other():
    volume = volume_of(measured((50.0, 100.0)))
    assert (volume.seconds, volume.device_bytes, volume.host_bytes) == (6.0, 400.0, None)


def test_what_has_no_figures_moved_nothing():
    transfers = parse_transfers("host:0 -> null by cpu")
    assert volume_of(CellResult("r", "c", transfers, Report.FIRST, "skip", "why")) is None


def traffic(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "linkgauge", "traffic", *map(str, arguments)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "wrong",
    [
        ("--streams", 0), ("--piece", "4000"), ("--payload", "64"), ("--by", "cpu"),
        ("--repeat", 0), ("--threads", 0), ("--buffer", "0"), ("--device", "9"),
        ("--duration", "-1"), ("--duration", 1, "--samples", 3), ("--min-host-bandwidth", -1),
        ("--min-device-bandwidth", "nan"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(wrong, capsys):
    with pytest.raises(InputError) as refused:
        app(["traffic", "--machine", "ipu-m2000", *map(str, wrong)], standalone_mode=False)
    assert refused.value.exit_code == 2
    assert capsys.readouterr().out == ""
