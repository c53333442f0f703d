"""Products and shipped machines are healthy: a simulated one reaches what is expected of it, and
nothing of it is low."""

import json

import pytest

from command_kit import called
from judge_kit import run_of
from linkgauge.backends.protocol import Copy
from linkgauge.backends.sim.backend import simulate
from linkgauge.backends.sim.machine import described
from linkgauge.judge.expected.dram import Ceilings
from linkgauge.judge.expected.exchange_rates import ExchangeRates
from linkgauge.judge.expected.routes import Paths
from linkgauge.judge.outcome import outcome_of
from linkgauge.judge.verdict import judge
from linkgauge.model.hardware.machine import Machine
from linkgauge.model.memory import Memory
from linkgauge.model.operations.collective import (
    COLLECTIVE_NAMES,
    Collective,
    has_root,
    no_hypercube,
    reduces,
)
from linkgauge.model.settings import EngineSettings
from linkgauge.model.transfer import Engine, Transfer
from linkgauge.rooms.judge_files.products import Product, product_of, shipped
from machine_kit import OF_HOSTS
from product_names import NAMES, USUAL

SIZE = 1 << 30
SOLD = {
    "8 x H200": 476, "8 x H100 SXM": 476, "8 x H20": 476, "8 x B200": 829, "8 x MI300X": 336,
    "4 x H200 NVL": 360, "8 x A100": 240, "dgx-h200-8": 476, "full-8": 280, "ring-8": 160,
}  # fmt: skip
"""What an all_reduce of all devices is expected to reach, in GB/s."""


def test_every_product_is_tried():
    every = shipped("products.yml", tuple[Product, ...])
    assert {one.name for one in map(product_of, NAMES)} == {one.name for one in every}


def collectives(name):
    """The busbw of each collective by 2, 4 and all devices, what is expected of it, and the share
    of it that is enough."""
    backend = simulate(described(name), EngineSettings())
    devices = [Memory("sim", number) for number in range(len(backend.devices()))]
    machine = Machine(
        host=backend.host(), devices={"sim": backend.devices()}, inventory=backend.look(),
        simulated=name,
    )  # fmt: skip
    paths = Paths(machine, Ceilings())
    for collective in COLLECTIVE_NAMES:
        work = Collective(
            collective, reduction="sum" if reduces(collective) else None,
            root=0 if has_root(collective) else None,
        )  # fmt: skip
        rates = ExchangeRates(paths, work)
        for ranks in sorted({2, 4, len(devices)}):
            if not 2 <= ranks <= len(devices) or no_hypercube(collective, ranks):
                continue
            some = devices[:ranks]
            copies = [Copy(Transfer(d, d, Engine(d, "ccl")), None, None, SIZE, 1) for d in some]
            exchanging = backend._exchanging(copies, work)
            seconds = max(exchanging.seconds(backend._resources.capacity))
            busbw = work.bytes_on_bus(SIZE, ranks) / seconds
            names = tuple(map(str, some))
            least = 0.8 if rates.bounds(names).figures else 0.6
            yield collective, ranks, busbw / 1e9, rates.bound(names), least


@pytest.mark.parametrize("name", [*USUAL, "2 x GH200", *OF_HOSTS])
def test_collectives_reach_what_is_expected(name):
    for collective, ranks, busbw, bound, least in collectives(name):
        case = collective, ranks, busbw, bound.because
        if bound.achievable:
            assert busbw > least * bound.achievable / 1e9, case
        if bound.theoretical:
            assert busbw < bound.theoretical / 1e9, case


@pytest.mark.parametrize(("name", "expected"), SOLD.items())
def test_a_product_reduces_where_its_maker_says_so(name, expected):
    """Switches with NVLS reduce; meshes carry as many rings as have links of their own."""
    *_, (_, _, busbw, bound, _) = (each for each in collectives(name) if each[0] == "all_reduce")
    assert bound.achievable / 1e9 == pytest.approx(expected, rel=0.01)
    assert busbw == pytest.approx(expected, rel=0.1)


@pytest.mark.parametrize("name", ["1 x GH200", "2 x GH200", "4 x GB200", "2 x RTX 5090"])
def test_what_makers_sell_is_healthy(name):
    simulation = described(name)
    run = judge(run_of(name, simulation.description, samples=3))
    assert outcome_of(run).code == 0, outcome_of(run)


def test_cards_without_peer_access_are_refused_peers(tmp_path):
    done = called(
        "run", "device_to_device_memcpy_read_sm", "--machine", "2 x RTX 5090", "--samples", 3,
        "--json", cwd=tmp_path,
    )  # fmt: skip
    cells = json.loads(done.stdout)["results"][0]["cells"]
    assert {cell["reason"] for cell in cells} == {
        f"no peer access from sim:{one} to sim:{1 - one}" for one in (0, 1)
    }
