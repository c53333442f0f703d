"""What is asked for is replaced wherever it is, and nothing else."""

import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.engine.plan import fabrics, lay_out
from linkgauge.engine.rewriting import by_engine, in_memory
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


class TestEngines:
    @pytest.mark.parametrize(
        ("text", "becomes"),
        [
            ("host:0 -> cuda:0 by ce", "host:0 -> cuda:0 by sm"),
            ("cuda:1 -> cuda:0 by cuda:0.ce x2", "cuda:1 -> cuda:0 by cuda:0.sm x2"),
            (
                "cuda:0 -> host:1/wc by ce & host:1 -> host:0 by cpu*2",
                "cuda:0 -> host:1/wc by sm & host:1 -> host:0 by cpu*2",
            ),
            (
                "cuda:0 -> host:1 by ce & cuda:1 -> null by sm",
                "cuda:0 -> host:1 by sm & cuda:1 -> null by sm",
            ),
        ],
    )
    def test_of_devices_that_copy_are_replaced_and_no_other(self, text, becomes):
        (found,) = by_engine([benchmark(text)], "sm")
        assert str(found.cells[0]) == becomes
        (back,) = by_engine([found], "ce")
        assert str(back.cells[0]) == text

    def test_are_in_no_name_so_that_settings_are_compared_with_each_other(self):
        here = laid_out("host_to_device_memcpy_ce", "device_local_copy", "device_memory_copy")
        ce, sm = (by_engine(here, kind) for kind in ("ce", "sm"))
        assert [(b.name, b.title) for b in ce] == [(b.name, b.title) for b in sm]
        assert [b.name for b in sm] == [
            "host_to_device_memcpy", "device_local_copy", "device_memory_copy",
        ]  # fmt: skip
        assert [b.title for b in sm][:2] == [
            "memcpy host(row) -> device(column)", "memcpy within device(column)",
        ]  # fmt: skip

    @pytest.mark.parametrize("kind", ["ce", "sm"])
    def test_measure_once_what_both_engines_have_a_benchmark_for(self, kind):
        both = laid_out("host_to_device_memcpy_ce", "host_to_device_memcpy_sm")
        assert [b.name for b in by_engine(both, kind)] == ["host_to_device_memcpy"]
        other = laid_out("all_to_one_read_ce", "all_to_one_read_sm")  # a read, and a write
        assert [b.name for b in by_engine(other, kind)] == ["all_to_one_read", "all_to_one_read_sm"]


def laid_out(*names):
    here = machine([device(n, "x") for n in range(2)])
    return list(lay_out([CATALOG[name] for name in names], fabrics(here, ()), here.host.nodes))
