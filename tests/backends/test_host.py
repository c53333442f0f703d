"""The host backend's threads: which CPUs they get, and that it says so where they share them."""

import pytest

from linkgauge.backends.host import HostBackend
from linkgauge.backends.protocol import Copy
from linkgauge.machine.host import read_host
from linkgauge.model.machine import Node
from linkgauge.model.notation import parse_transfers


@pytest.mark.parametrize(
    ("text", "threads"),
    [
        ("null -> host:0 by cpu*2", None),
        ("null -> host:0 by cpu*1 & host:0 -> null by cpu*1", None),
        ("null -> host:0 by cpu & host:0 -> null by cpu", None),
        ("null -> host:0 by cpu*2 & host:0 -> null by cpu*1", 3),
        ("null -> host:0 by cpu & host:0 -> null by cpu & host:0 -> null by cpu", 3),
    ],
)
def test_threads_that_share_cpus_are_told(text, threads):
    cpu = read_host().nodes[0].cpus[0]
    backend = HostBackend([Node(0, (cpu, cpu))])  # one CPU stands for two: any machine has it
    transfers = parse_transfers(text)
    ends = [[m and backend.allocate(m, 4096, t.engine) if not m.is_null else None
             for m in (t.source, t.destination)] for t in transfers]  # fmt: skip
    copies = [Copy(t, *own, 4096, 1) for t, own in zip(transfers, ends, strict=True)]
    backend.prepare(copies).close()
    says = [] if threads is None else [f"host:0: {threads} threads share 2 CPUs"]
    for transfer in transfers:
        assert [words for words in backend.remarks(transfer) if "share" in str(words)] == says
    backend.prepare(copies[:1]).close()
    assert not any("share" in str(words) for words in backend.remarks(transfers[0]))
