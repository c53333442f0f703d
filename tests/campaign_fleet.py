"""Fleets of twenty simulated nodes with the noise of recordings, three of them faulty.

    LINKGAUGE_CAMPAIGN=full .venv/bin/python -m pytest tests/judge/test_fleet.py -k campaign

A node is a run in this process: no files, workers or pages."""

from __future__ import annotations

import yaml
from msgspec.structs import replace

from campaign_peers import NOISES
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.engine.profiles import PROFILES
from linkgauge.judge.compare.fleet import FleetReader
from linkgauge.judge.outcome import doubtful
from linkgauge.judge.verdict import judge
from linkgauge.report.reading import node_of

BENCHMARKS = (
    "host_to_device_memcpy_ce", "device_to_host_memcpy_ce", "device_to_device_memcpy_write_ce",
    "device_local_copy", "device_to_device_latency_sm",
)  # fmt: skip
FAULTS = {
    "slow": "slow sim:5 rate=90%",
    "links": "slow sim:2-nvswitch rate=50%",
    "stall": "stall sim:3",
}
SETTINGS = replace(PROFILES["quick"], samples=8)
"""As `run` advises where a stall would not be seen."""
NODES = 20


def node(seed, faults=()):
    """The judged run of one node."""
    tree = {**yaml.safe_load(load("dgx-h200-8")[1]), "noises": NOISES, "seed": seed}
    return judge(run_of(
        "dgx-h200-8", yaml.safe_dump(tree), *BENCHMARKS, settings=SETTINGS, doubts=doubtful,
        faults=faults, size=SETTINGS.sizes[0],
    ))  # fmt: skip


def fleet(draw, nodes=NODES):
    """A fleet of which the first nodes have the faults."""
    reader = FleetReader(nodes)
    names = [*FAULTS, *(f"node{number}" for number in range(len(FAULTS), nodes))]
    for number, name in enumerate(names):
        faults = [FAULTS[name]] if name in FAULTS else []
        run = replace(node(1 + draw * nodes + number, faults), label=name)
        reader.add(node_of(name, run), run)
    return reader.fleet("H200")
