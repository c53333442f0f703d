"""What backends refuse alike, they refuse with the same words."""

import pytest

from linkgauge.backends.host import HostBackend
from linkgauge.backends.protocol import Copy
from linkgauge.backends.rules import check_overlap, of_copy_engine, of_threads
from linkgauge.model.errors import Unsupported
from linkgauge.model.machine import Node
from linkgauge.model.notation import parse_transfer
from sim_machine import backend as simulated

CPUS = {0: (0, 1), 2: ()}
KINDS = ("", "pageable")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("host:0 -> host:0/pageable by cpu*2", None),
        ("null -> host:0 by cpu", None),
        (
            "host:0 -> cuda:1 by host:0.cpu",
            "host threads do not reach cuda:1: use an engine of cuda:1",
        ),
        ("host:0 -> host:1 by cpu", "no node host:1: this machine has host:0, host:2"),
        (
            "host:0 -> host:0 by host:7.cpu",
            "no node host:7: this machine has host:0, host:2",
        ),
        (
            "host:0/mapped -> host:0 by cpu",
            "mapped memory belongs to an accelerator: use one of its engines",
        ),
        (
            "host:0 -> host:0 by host:2.cpu",
            "this process may use no CPU of host:2 (cpuset)",
        ),
        (
            "host:0 <-> host:0/pageable by cpu",
            "'<->' is one kernel of a device: join two transfers with '&' instead",
        ),
        ("host:0 -> host:0 by cpu*3", "host:0 has 2 usable CPUs"),
    ],
)
def test_what_host_threads_do_not_do(text, reason):
    assert next(of_threads(parse_transfer(text), CPUS, KINDS), None) == reason


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("host:0 -> cuda:0 by ce", None),
        ("host:0 <-> cuda:0 by sm", None),
        ("null -> cuda:0 by sm", None),
        (
            "null -> cuda:0 by ce",
            "ce copies between two memories: a pure read or write needs a kernel (sm)",
        ),
        (
            "host:0 <-> cuda:0 by ce",
            "ce copies one way at a time: a copy both ways at once needs a kernel (sm)",
        ),
    ],
)
def test_what_copy_engines_do_not_do(text, reason):
    assert next(of_copy_engine(parse_transfer(text)), None) == reason


@pytest.mark.parametrize(
    "text",
    ["host:0/mapped -> host:0 by cpu", "host:0 <-> host:1 by cpu", "host:0 -> null by cpu*9"],
)
def test_a_simulated_hosts_threads_do_no_more_than_a_real_ones(text):
    nodes = [Node(0, tuple(range(8))), Node(1, tuple(range(8, 16)))]
    refused = HostBackend(nodes).refusal(parse_transfer(text))
    assert refused is not None
    assert simulated().refusal(parse_transfer(text)) == refused


@pytest.mark.parametrize(
    ("transfers", "reason"),
    [
        (["null -> null by cuda:0.sm", "host:0 -> cuda:0 by ce", "cuda:0 -> host:0 by sm"], None),
        (["null -> null by host:0.cpu", "host:0 -> host:0 by cpu"], "is a kernel"),
        (["null -> null by cuda:0.sm"], "no copy runs beside it"),
        (
            ["null -> null by cuda:0.sm", "host:0 -> cuda:1 by ce"],
            "only a copy of its own can run beside a kernel of cuda:0",
        ),
        (
            ["null -> null by cuda:0.sm", "null -> cuda:0 by sm"],
            "only a copy of its own can run beside a kernel of cuda:0",
        ),
    ],
)
def test_beside_a_kernel_run_copies_of_its_device(transfers, reason):
    copies = [Copy(parse_transfer(text), None, None, 64, 1) for text in transfers]
    if reason is None:
        assert check_overlap(copies) == (copies[0], copies[1:])
        return
    with pytest.raises(Unsupported, match=reason):
        check_overlap(copies)
