"""Beside the aggregate of copies at once stands what each of them gets."""

import pytest
from msgspec.structs import replace

from linkgauge.model.transfer import Report
from linkgauge.report.concurrency_text import each_matrix
from linkgauge.report.run_text import render_result
from report.samples import cell, result
from report.test_output import text_console


def swept(rows, sweep=True, report=Report.TOTAL, device="x"):
    """Cells of one and of two copies: of the second row, one of the two gets more."""
    cells = [
        each
        for row in range(rows)
        for each in (
            cell(str(row), "1", [f"host:0 -> {device}:{row} by {device}:{row}.ce"], 50, report),
            cell(str(row), "2", [f"host:0 -> {device}:{row} by {device}:{row}.ce"] * 2, 60, report,
                 (30 - row, 30 + row)),
        )
    ]  # fmt: skip
    made = result("concurrency_x", "memcpy CE host -> device(row)", "pass", cells)
    return replace(made, sweep=sweep)


def test_the_slowest_and_the_fastest_copy_of_all_rows_are_shown():
    console = text_console(width=100)
    console.print(render_result(swept(2)))
    assert """\
             1         2
  0      50.00     60.00
  1      50.00     60.00
each one's own bandwidth (GB/s)
                 1         2
slowest      50.00     29.00
fastest      50.00     31.00
""" in console.file.getvalue()


def test_copies_that_were_not_measured_are_not_shown():
    made = swept(1)
    lost = replace(made.cells[1], summary=None, parts=(), status="skip")
    ((_, matrix),) = each_matrix(replace(made, cells=(made.cells[0], lost)))
    assert matrix.columns == ("1", "2")
    assert {place.column for place in matrix.figures} == {"1"}


@pytest.mark.parametrize(
    "other", [swept(1, sweep=False), swept(1, report=Report.SUM)], ids=["matrix", "sum"]
)
def test_of_anything_else_there_is_nothing_to_say(other):
    assert list(each_matrix(other)) == []


def test_a_single_copy_is_its_own_aggregate():
    made = swept(1)
    assert list(each_matrix(replace(made, cells=made.cells[:1]))) == []
