"""What is asked for is replaced wherever it is, and nothing else."""

import pytest

from fakes import device, machine
from linkgauge.engine.request import Written
from repetition_kit import plan_of

HERE = machine([device(0), device(1)], nodes=2)


def rewritten(text, **asked):
    """The transfers in the place of these."""
    (table,) = plan_of(HERE, what=Written(text), **asked)
    return str(table.cells[0])


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("host:0 -> fake:0 by ce", "host:0/thp -> fake:0 by ce"),
        ("fake:0 <-> host:1 by sm x2", "fake:0 <-> host:1/thp by sm x2"),
        ("host:0 -> null by cpu*3 at 25%", "host:0/thp -> null by cpu*3 at 25%"),
        (
            "host:0/huge -> fake:0 by ce & host:0 -> fake:1 by ce",
            "host:0/huge -> fake:0 by ce & host:0/thp -> fake:1 by ce",
        ),
    ],
)
def test_pinned_memory_becomes_another(text, becomes):
    assert rewritten(text, memory="thp") == becomes
    assert rewritten(text) == text


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("host:0 -> fake:0 by ce", "host:0 -> fake:0 by sm"),
        ("fake:1 -> fake:0 by fake:0.ce x2", "fake:1 -> fake:0 by fake:0.sm x2"),
        (
            "fake:0 -> host:1/wc by ce & host:1 -> host:0 by cpu*2",
            "fake:0 -> host:1/wc by sm & host:1 -> host:0 by cpu*2",
        ),
        (
            "fake:0 -> host:1 by ce & fake:1 -> null by sm",
            "fake:0 -> host:1 by sm & fake:1 -> null by sm",
        ),
    ],
)
def test_engines_of_devices_that_copy_are_replaced_and_no_other(text, becomes):
    assert rewritten(text, engine="sm") == becomes
    assert rewritten(becomes, engine="ce") == text


@pytest.mark.parametrize("kind", ["ce", "sm"])
def test_what_both_engines_have_a_benchmark_for_is_measured_once_and_named_after_neither(kind):
    def names(*asked):
        return [table.benchmark for table in plan_of(HERE, *asked, engine=kind)]

    both = names("host_to_device_memcpy_ce", "host_to_device_memcpy_sm", "device_local_copy")
    assert both == ["host_to_device_memcpy", "device_local_copy"]
    other = names("all_to_one_read_ce", "all_to_one_read_sm")  # a read, and a write
    assert other == ["all_to_one_read", "all_to_one_read_sm"]
