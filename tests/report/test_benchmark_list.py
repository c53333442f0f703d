"""`list`: each benchmark once, among those that measure the like."""

import pytest

from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.cli.list import list_benchmarks
from linkgauge.report.benchmark_list import overview_lines
from linkgauge.report.formats import formats
from report.test_machine_report import printed


@pytest.mark.parametrize("width", [60, 80, 120, 200, 1000])
def test_every_name_is_in_one_group_and_lines_fit(width):
    text = printed(overview_lines(tuple(CATALOG.values())), width)
    *lines, _, hint = text.splitlines()
    names = [name for line in lines if line.startswith("  ") for name in line.split()]
    assert sorted(names) == sorted(CATALOG)
    assert max(map(len, lines)) <= min(width, 100)
    assert hint == "-v describes each benchmark; --prefix describes some."


def test_a_group_without_what_was_asked_for_is_left_out():
    text = printed(overview_lines((CATALOG["all_reduce"],)), 80)
    assert text.splitlines()[:2] == ["Collectives", "  all_reduce"]


@pytest.mark.parametrize("asked", [{"verbose": True}, {"prefix": ["all_gather"]}])
def test_a_benchmark_is_described_where_that_is_asked_for(asked, capsys):
    list_benchmarks(form=formats()["terminal"], **asked)
    row = CATALOG["all_gather"]
    assert f"all_gather  {' '.join(row.profiles)}\n    {row.title}\n" in capsys.readouterr().out
