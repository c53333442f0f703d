"""What a transfer touches, of machines whose parts readers found."""

from linkgauge.backends.sim.description import load
from linkgauge.engine.worker import LocalWorker
from linkgauge.judge.findings import Evidence
from linkgauge.judge.wiring import Wiring
from linkgauge.model.notation import parse_cell
from linkgauge.model.result import Settings, Simulation


def touched(machine, transfer):
    name, text = load(machine)
    surveyed = LocalWorker(Settings((1 << 20,), simulation=Simulation(name, text))).survey(("sim",))
    return Wiring(Evidence(surveyed)).touched(parse_cell((transfer,))[0]).parts


def test_copies_below_one_switch_touch_it_and_not_its_uplink():
    parts = touched("rbln-32", "sim:0 -> sim:1 by ce")
    assert len(parts) == 5
    assert {"sim:0", "sim:1", "PCIe link of sim:0", "PCIe link of sim:1"} < parts
    assert any(part.startswith("PCIe switch ") for part in parts)


def test_threads_touch_no_host_bridge():
    parts = touched("dgx-h200-8", "host:1 -> null by host:0.cpu")
    assert parts == {"host:0", "host:1", "host:0-host:1"}
