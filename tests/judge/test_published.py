"""How a host's memory compares: with its DIMMs, with published figures, or how to tell."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from fakes import machine
from linkgauge.judge.expected.published import TABLE, published_of
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.hardware.cpu_families import FAMILIES, family_of
from linkgauge.model.hardware.gaps import NEEDS_ROOT, Gap
from linkgauge.model.hardware.host_details import HostDetails
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.notation import parse_transfer
from linkgauge.model.notes import NearCache
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from linkgauge.report.words.comparison import compared, may_be_cached

FIGURES = (
    ("memory_stream_read", "stream-read", "host:0 -> null by host:0.cpu", 40e9, "GB/s"),
    ("memory_latency_nodes", "chase", "host:0 -> null by host:0.cpu*1", 110e-9, "s"),
    ("core_to_core_latency", "ping-pong", "cpu:0 -> cpu:1 by cpu:0.cpu", 60e-9, "s"),
)
FAMILY = "GenuineIntel 6 106"


def result(benchmark, operation, transfer, figure, unit, backend="host"):
    report = Report.FIRST if unit == "GB/s" else Report.LATENCY
    samples = (figure,) * 3
    cell = CellResult(
        "0", "0", (parse_transfer(transfer),), report, "pass", samples=samples,
        summary=summarize(samples), operation=operation,
    )  # fmt: skip
    return Result(
        benchmark=benchmark, title="", backend=backend, size=64 << 20, unit=unit,
        better="higher" if unit == "GB/s" else "lower", status="pass", cells=(cell,),
    )  # fmt: skip


def run(results=FIGURES, **facts):
    here = machine([])
    here = replace(here, inventory=Inventory(host=HostDetails(**facts)))
    return Run(
        id="x", label="x", command=(), started="", finished=None, machine=here,
        settings=Settings(sizes=(1,)),
        results=tuple(result(*one) for one in results),
    )  # fmt: skip


def test_a_host_with_known_dimms_is_compared_with_them():
    said = compared(run(memory_rate=80e9, cpu_code=FAMILY))
    assert said == (
        "compare: all CPUs read 40.00 GB/s, 50% of the 80.00 that all DIMMs together allow"
    )


def test_a_listed_family_is_compared_with_what_is_published():
    said = compared(run(cpu_code=FAMILY))
    assert "published of Intel Ice Lake-SP: " in said
    assert "latency of memory 89.00 to 89.20 ns, here 110.0" in said
    assert "latency between two cores 51.00 ns, here 60.00" in said
    assert "sudo" not in said


def test_a_family_of_which_its_predecessor_was_measured_says_so():
    assert "Sapphire Rapids, the predecessor of Intel Emerald Rapids" in compared(
        run(cpu_code="GenuineIntel 6 207")
    )


@pytest.mark.parametrize("code", [FAMILY, None])
def test_where_root_could_read_the_dimms_sudo_is_advised(code):
    gap = Gap(f"/sys/firmware/dmi/tables/DMI is readable by root only: {NEEDS_ROOT}", "memory_rate")
    assert "sudo reads the rate of its DIMMs" in compared(run(cpu_code=code, unknown=(gap,)))


def test_an_unlisted_host_is_told_how_to_state_its_dimms():
    said = compared(run(cpu_code="GenuineIntel 6 1"))
    assert "not known" in said
    assert "--hardware" in said
    assert "sudo" not in said


def test_runs_of_accelerators_and_simulated_machines_are_not_compared():
    with_device = replace(
        run(memory_rate=80e9),
        results=(*run().results, result("x", "copy", "x:0 -> x:0 by ce", 1e9, "B/s", "x")),
    )
    assert compared(with_device) == ""
    assert compared(replace(run(memory_rate=80e9), simulated=True)) == ""
    assert compared(run(FIGURES[1:], memory_rate=80e9)) == ""


@pytest.mark.parametrize(("size", "says"), [(64, "may be the cache's"), (400, "may be partly")])
def test_figures_of_buffers_within_the_cache_say_so(size, says):
    one = run(memory_rate=80e9)
    note = NearCache(size << 20, 300 << 20, 4)
    (first, *others) = one.results
    first = replace(first, cells=(replace(first.cells[0], notes=(note,)),))
    assert may_be_cached(one) == ""
    assert says in may_be_cached(replace(one, results=(first, *others)))


def test_every_published_figure_has_a_source_and_a_family():
    names = {family.name for family in FAMILIES}
    for one in TABLE:
        assert one.family in names
        assert 0 < one.low <= one.high
        assert one.source.title
        assert one.source.address.startswith("https://")
    for family in FAMILIES:
        assert (family.cache_per_core is None) == (family.source is None)
        assert family_of(family.codes[0]) == family
        assert published_of(family.codes[0])


def test_a_code_belongs_to_one_family():
    codes = [code for family in FAMILIES for code in family.codes]
    assert len(codes) == len(set(codes))
    assert published_of(None) == {}


def test_the_page_has_every_figure_with_its_source():
    page = (Path(__file__).parents[2] / "docs/expect-host.md").read_text(encoding="utf-8")
    listed = [one.source for one in TABLE] + [one.source for one in FAMILIES if one.source]
    assert [one.address for one in listed if f"]({one.address}) |" not in page] == []
    assert page.count("| [") == len(listed)
