"""Pinned host memory is replaced wherever it is, and nothing else."""

import pytest

from linkgauge.engine.in_memory import in_memory
from linkgauge.model.errors import InputError
from linkgauge.model.notation import parse_transfers
from linkgauge.model.transfer import Benchmark, Cell, Report


def benchmark(text):
    return Benchmark("x", "x", "x", (Cell("0", "0", parse_transfers(text), Report.FIRST),))


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        ("host:0 -> cuda:0 by ce", "host:0/thp -> cuda:0 by ce"),
        ("cuda:0 <-> host:1 by sm x2", "cuda:0 <-> host:1/thp by sm x2"),
        ("host:0 -> null by cpu*3 at 25%", "host:0/thp -> null by cpu*3 at 25%"),
        (
            "host:0/huge -> cuda:0 by ce & host:0 -> cuda:1 by ce",
            "host:0/huge -> cuda:0 by ce & host:0/thp -> cuda:1 by ce",
        ),
    ],
)
def test_pinned_memory_becomes_another(text, becomes):
    (found,) = in_memory([benchmark(text)], "thp")
    assert str(found.cells[0]) == becomes
    assert in_memory([benchmark(text)], "") == (benchmark(text),)


@pytest.mark.parametrize("text", ["cuda:0 -> cuda:1 by ce", "host:0/base -> host:0/staging by cpu"])
def test_where_there_is_none_it_is_refused(text):
    with pytest.raises(InputError, match="thp memory changes nothing"):
        in_memory([benchmark(text)], "thp")
