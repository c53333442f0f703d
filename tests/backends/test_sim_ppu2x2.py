"""The machine `ppu-2x2` against what sailbandwidth printed of four processes on two hosts."""

from pathlib import Path
from statistics import median

import pytest
from msgspec.structs import replace

from kinds_kit import outcome
from linkgauge.backends.sim.backend import SimBackend
from linkgauge.backends.sim.description import load, parse_description
from linkgauge.backends.sim.machine import parts_of
from linkgauge.benchmarks.processes import MULTINODE
from linkgauge.benchmarks.table import DeviceSet
from nvbandwidth_reader import read_examples, read_tests

PAGE = Path(__file__).parents[1] / "data" / "sailbandwidth-multinode.txt"
PRINTED = {
    test.name: test for _, text in read_examples(PAGE.read_text()) for test in read_tests(text)
}
ROWS = {row.name: row for row in MULTINODE}
SIZE = 512 << 20
READS_BY_CE = {
    "multinode_device_to_device_memcpy_read_ce",
    "multinode_device_to_device_bidirectional_memcpy_read_ce",
}


@pytest.fixture(scope="module")
def machine():
    """Without noise."""
    return SimBackend(parts_of(replace(parse_description(load("ppu-2x2")[1]), noise=0.0)))


def simulated(machine, name):
    """The figures of a test in GB/s, with rank r as sim:r of one process."""
    row = replace(ROWS[name], across_ranks=False)
    for cell in row.lay_out(DeviceSet("sim", machine.host().nodes, machine.devices())).cells:
        text = " & ".join(map(str, cell.transfers))
        measured = outcome(machine, text, SIZE, report=cell.report)
        yield (cell.row, cell.column), median(measured.samples) / 1e9


@pytest.mark.parametrize("name", PRINTED)
def test_every_figure_is_that_of_the_page(machine, name):
    """Reads by copy engines have one bound, while those of the page scatter by 6 %."""
    tolerance = 0.03 if name in READS_BY_CE else 0.005
    expected = PRINTED[name].tables[-1].figures()
    assert dict(simulated(machine, name)) == pytest.approx(expected, rel=tolerance)
