"""Beside the aggregate of copies at once stands what each of them gets."""

import pytest
from msgspec.structs import replace

from linkgauge.model.transfer import Report
from linkgauge.report.concurrency_text import each_matrix, own_matrix
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


def at_once(*transfers, rates, definition="sustained"):
    """One total, 70 of whatever its copies do."""
    made = cell("0", "0", transfers, 70, Report.TOTAL, rates)
    return result("x_ce", "memcpy CE all at once", "pass", [replace(made, definition=definition)])


def text_of(made):
    console = text_console(width=100)
    console.print(render_result(made))
    return console.file.getvalue()


ALL_TO_ALL = [f"x:{a} -> x:{b} by ce" for a in (10, 9) for b in (9, 10, 11) if a != b]


def test_each_copy_of_a_total_stands_at_its_source_and_destination():
    assert """\
             0
  0      70.00
SUM x_ce 70.00
each one's own bandwidth (GB/s)
             9        10        11
 10      11.00       N/A     12.00
  9        N/A     13.00     14.00
""" in text_of(at_once(*ALL_TO_ALL, rates=(11, 12, 13, 14)))


def test_places_of_all_devices_are_in_the_order_of_their_numbers():
    both = [*ALL_TO_ALL, "x:11 -> x:9 by x:9.ce"]
    ((_, matrix),) = own_matrix(at_once(*both, rates=(11, 12, 13, 14, 15)))
    assert matrix.rows == matrix.columns == ("9", "10", "11")


def test_where_no_device_has_several_each_has_a_row():
    assert """\
each one's own bandwidth (GB/s)
              0
0->2      11.00
1->3      12.00
""" in text_of(at_once("x:0 -> x:2 by ce", "x:1 -> x:3 by ce", rates=(11, 12)))


def test_copies_that_wait_for_each_other_are_one_rate_of_their_device():
    """A kernel's own time includes that of those before it: the last has that of all."""
    transfers = [one.replace(" ce", " sm") for one in ALL_TO_ALL]
    assert """\
each device's own bandwidth (GB/s)
             9        10
  0      26.00     24.00
""" in text_of(at_once(*transfers, rates=(24, 12, 13, 26), definition="serial"))


def test_copies_of_host_threads_or_of_another_report_have_none():
    threads = at_once("host:0 -> host:0 by cpu", "host:0 -> host:1 by cpu", rates=(1, 2))
    assert list(own_matrix(threads)) == []
    made = at_once("x:0 -> x:1 by ce", "x:1 -> x:0 by ce", rates=(1, 2))
    summed = replace(made.cells[0], report=Report.SUM)
    assert list(own_matrix(replace(made, cells=(summed,)))) == []
    assert list(own_matrix(replace(made, sweep=True))) == []
