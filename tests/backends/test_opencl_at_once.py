"""All OpenCL devices at once: PoCL's two devices carry out what a node's GPUs would, every byte
verified."""

from contextlib import closing

import pytest

import opencl_kit
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.benchmarks.within_node import WITHIN_NODE
from linkgauge.engine.plan import make_plan
from linkgauge.engine.worker import LocalWorker
from linkgauge.model.settings import Settings

SIZE = 256 << 10


@pytest.mark.parametrize("row", WITHIN_NODE, ids=lambda row: row.name)
def test_every_copy_arrives_and_has_a_rate_of_its_own(row):
    with (
        opencl_kit.opened() as backend,
        closing(LocalWorker(Settings((SIZE,), samples=2))) as worker,
    ):
        if len(backend.devices()) < 2:
            pytest.skip("one OpenCL device")
        machine = worker.survey(())
        benchmark = row.lay_out(DeviceSet("opencl", machine.host.nodes, backend.devices()))
        (sheet,) = make_plan([benchmark], machine, (SIZE,))
        worker.measure_with(backend)
        (cell,) = worker.measure(sheet.cells, SIZE)
    assert (cell.status, cell.reason, cell.verified) == ("pass", None, True)
    assert cell.bytes == SIZE * len(cell.transfers)
    assert [part.transfer for part in cell.parts] == list(range(len(cell.transfers)))
    assert all(sample > 0 for part in cell.parts for sample in part.samples)
