"""The staged traffic test: who uses the buffer, in which combinations."""

import json

import pytest

from command_kit import called

MACHINE = """
source: a test's
noise: 0%
host:
  cpu_model: Test CPU
  nodes: [{{cpus: {}, memory: 4G, rate: 90 GB/s}}, {{cpus: {}, memory: 4G, rate: 90 GB/s}}]
link_kinds:
  pcie: {{kind: pcie, rate: 20 GB/s}}
  upi: {{kind: socket, rate: 30 GB/s}}
devices:
  - {{count: 2, model: Test Card, memory: 1G, memory_rate: 1 TB/s}}
links:
  - {{kind: pcie, pairs: [[sim:0, host:1], [sim:1, host:0]]}}
  - {{kind: upi, pairs: [[host:0, host:1]]}}
"""


def cells(folder, cpus=(8, 8), *words):
    """Each benchmark's transfers by place."""
    (folder / "two.yml").write_text(MACHINE.format(*cpus))
    done = called(
        "traffic", "--machine", folder / "two.yml", "--buffer", "1M", "--samples", 1, "--json",
        *words,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {
        result["benchmark"]: {
            (cell["row"], cell["column"]): " & ".join(cell["transfers"]) for cell in result["cells"]
        }
        for result in json.loads(done.stdout)["results"]
    }


def test_both_sides_use_one_buffer_near_the_device(tmp_path):
    found = cells(tmp_path)
    together = found.pop("host_traffic")
    directions = {
        "host <- buffer <- device": ("sim:0 -> {b} by sm", "{b} -> null by cpu*7"),
        "host -> buffer -> device": ("{b} -> sim:0 by sm", "null -> {b} by cpu*7"),
        "host -> buffer <- device": ("sim:0 -> {b} by sm", "null -> {b} by cpu*7"),
        "host <- buffer -> device": ("{b} -> sim:0 by sm", "{b} -> null by cpu*7"),
    }
    for row, halves in directions.items():
        text = " & ".join(halves).format(b="host:1/staging")
        assert together[row, "sim:0"] == text
        other = text.replace("sim:0", "sim:1").replace("host:1", "host:0")
        assert together[row, "sim:1"] == other
    alone = {text for cells in found.values() for text in cells.values()}
    assert alone == {half for text in together.values() for half in text.split(" & ")}


@pytest.mark.parametrize(
    ("cpus", "engine"), [((8, 8), "cpu*7"), ((8, 4), "cpu*3"), ((64, 4), "host:0.cpu*63")]
)
def test_threads_run_near_the_device_unless_that_is_a_gateway(cpus, engine, tmp_path):
    found = cells(tmp_path, cpus, "--by", "ce", "--device", "sim:0")["host_traffic_host_alone"]
    assert found["host -> buffer", "sim:0"] == f"null -> host:1/staging by {engine}"


@pytest.mark.parametrize(
    "wrong",
    [
        ("--streams", 0), ("--piece", "4000"), ("--piece", "2M"), ("--payload", "64"),
        ("--by", "cpu"), ("--threads", 0), ("--device", "9"), ("--duration", "-1"),
        ("--duration", 1, "--samples", 3), ("--min-host-bandwidth", -1),
        ("--min-device-bandwidth", "nan"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(wrong):
    done = called("traffic", "--machine", "ipu-m2000", *wrong)
    assert (done.returncode, done.stdout) == (2, "")
