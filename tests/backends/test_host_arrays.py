"""Host threads on arrays: exact results, counted as STREAM does, by the kernel of the mode."""

import re

import pytest

from linkgauge.backends.host import HostBackend
from linkgauge.backends.protocol import Copy
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.pool import BufferPool
from linkgauge.machine.host import read_host
from linkgauge.model.arrays import ARRAYS
from linkgauge.model.errors import Unsupported
from linkgauge.model.machine import Node
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report

CPU = read_host().nodes[0].cpus[0]
SIZE = 65_544
SETTINGS = Settings((SIZE,), samples=2, loops=2)


def measure(operation, text=None, backend=None, size=SIZE):
    work = ARRAYS[operation]
    ends = "host:0" if work.read else "null", "host:0" if work.written else "null"
    transfers = parse_transfers(text or f"{ends[0]} -> {ends[1]} by host:0.cpu*1")
    report = Report.TOTAL if len(transfers) > 1 else Report.FIRST
    planned = PlannedCell("0", "1", transfers, report, operation=operation)
    backend = backend or HostBackend([Node(0, (CPU, CPU))])
    cell = Measurement(planned, size, SETTINGS, [backend] * len(transfers))
    (result,) = measure_together([cell], SETTINGS, BufferPool()).cells
    return result


@pytest.mark.parametrize(
    ("text", "operation", "why"),
    [
        ("host:0 -> null by cpu", "peak-copy", "peak-copy is another operation (a = b)"),
        ("null -> host:0 by cpu", "stream-read", "stream-read is another operation (b is read)"),
        ("host:0 -> host:0 by cpu", "peak-add", "the source of peak-add holds two arrays"),
    ],
)
def test_what_has_other_arrays_is_refused(text, operation, why):
    backend = HostBackend([Node(0, (CPU,))])
    (transfer,) = parse_transfers(text)
    ends = [
        None if end.is_null else backend.allocate(end, 4096, transfer.engine)
        for end in (transfer.source, transfer.destination)
    ]
    with pytest.raises(Unsupported, match=re.escape(f"{text}: {why}")):
        backend.prepare([Copy(transfer, *ends, 4096, 1)], operation)
