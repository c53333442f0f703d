"""Figures of the host's memory and CPUs have names that say what they are."""

import pytest

from linkgauge.benchmarks.catalog import select
from linkgauge.benchmarks.table import FIRST_LOOK, DeviceSet
from linkgauge.model.documents.result import CellResult, Result
from linkgauge.model.hardware.machine import Node
from linkgauge.model.stats.summary import summarize
from linkgauge.report.sections.cells import table_of
from linkgauge.report.words.comparison import in_words

ONE = (Node(0, (0, 1), cores=(0, 1)),)
TWO = (Node(0, (0, 1), cores=(0, 1)), Node(1, (2, 3), cores=(2, 3)))


def results(nodes, profile, *names, samples=(1.0, 2.0, 3.0)):
    fabric = DeviceSet("host", nodes, profile=profile)
    for row in select(names, (), profile=profile):
        laid = row.lay_out(fabric)
        cells = tuple(
            CellResult(
                cell.row, cell.column, cell.transfers, cell.report, "pass", samples=samples,
                summary=summarize(samples), operation=cell.operation,
            )
            for cell in laid.cells
        )  # fmt: skip
        yield Result(
            benchmark=laid.name, title=laid.title, backend="host", size=laid.size or 64 << 20,
            unit=laid.unit.symbol, better=laid.unit.better, status="pass", cells=cells,
            sweep=laid.sweep,
        )  # fmt: skip


def names(nodes, profile, *benchmarks):
    return [
        in_words(one, cell) for one in results(nodes, profile, *benchmarks) for cell in one.cells
    ]


def test_a_first_look_has_eight_figures_in_words():
    assert names(ONE, FIRST_LOOK) == [
        "read, one thread",
        "read, all 2 CPUs",
        "copy, one thread",
        "copy, all 2 CPUs",
        "triad, all 2 CPUs",
        "latency of memory",
        "latency between two cores",
        "primes up to 10,000, all 2 CPUs",
    ]
    assert names((Node(0, (0,), cores=(0,)),), FIRST_LOOK)[:3] == [
        "read, the only CPU", "copy, the only CPU", "triad, the only CPU",
    ]  # fmt: skip


def test_a_first_look_at_several_nodes_has_as_many():
    assert names(TWO, FIRST_LOOK) == [
        "read, one thread of node 0",
        "read, all 4 CPUs",
        "copy, one thread of node 0",
        "copy, all 4 CPUs",
        "triad, all 4 CPUs",
        "latency of memory",
        "latency between two cores",
        "primes up to 10,000, all 4 CPUs",
    ]


def test_nodes_modes_and_threads_are_named():
    found = names(TWO, "standard", "memory_stream_copy", "memory_latency_nodes")
    assert {
        "copy, one thread of node 0",
        "copy by the fastest copy loop, 2 threads of node 1",
        "copy, all 4 CPUs",
        "copy, all CPUs of node 0 on memory of node 1",
        "latency of memory of node 1, CPU of node 0",
    } <= set(found)
    assert len(set(found)) == len(found)


@pytest.mark.parametrize("name", ["memory_latency", "host_to_host_memcpy_copy_cpu"])
def test_other_figures_keep_their_names(name):
    assert set(names(ONE, "standard", name)) == {""}


def heads(samples):
    table = table_of(list(results(ONE, FIRST_LOOK, samples=samples)), (), "")
    return [column.name for column in table.columns]


def test_one_sample_is_shown_once():
    assert {"slowest 5%", "worst", "samples"} <= set(heads((1.0, 2.0, 3.0)))
    assert heads((1.0,)) == ["benchmark", "median", "unit"]
