"""Cells as a table: what each line says, and what is left out where there is no room."""

import pytest
from msgspec.structs import replace
from rich.text import Text

from linkgauge.report.cell_table import CellTable, Row
from report.bodies import cell, failed, judged
from report.test_output import text_console


def lines(*rows, width=120):
    console = text_console(width=width)
    console.print(CellTable(Text("cuda"), rows))
    return console.file.getvalue().splitlines()


def row(name="h2d", value=55.3, unit="B/s", **more):
    return Row(name, cell("0", "0", value, unit, **more), unit)


def test_a_rate_is_slow_at_its_low_end_and_a_time_at_its_high_end():
    _, rate, time = (line.split() for line in lines(row(value=100), row(value=100, unit="s")))
    assert rate[1:6] == ["100.0", "GB/s", "±0.9%", "97.68", "96.00"]
    assert time[1:6] == ["100.0", "ns", "±0.9%", "101.1", "101.4"]


def test_verdicts_stand_beside_the_share_and_the_others_are_not_judged():
    low = Row("low", judged(cell("0", "0", 24.1), 57.61, "low"), "B/s")
    head, first, second = lines(low, row())
    assert "of expected" in head
    assert "42% of 57.61  low" in first
    assert "not judged" in second


def test_what_is_far_from_its_peers_has_a_sign_that_is_explained():
    slow = row(value=13.8, peers=55.2e9)
    _, line, meaning = lines(slow)
    assert "▽" in line
    assert meaning == "▽ far below its peers"


def held(verdict="ok", expected=3.46, nominal=54.5):
    known = judged(cell("0", "0", 3.5), expected, verdict)
    return Row("x", replace(known, expected=replace(known.expected, nominal=nominal * 1e9)), "B/s")


def test_a_share_is_of_what_links_carry_at_their_best():
    _, line, *rest = lines(held())
    assert "6% of 54.50  ↓" in line
    assert "ok" not in line
    assert rest == ["↓ a link runs below its best: as it is, 3.46 GB/s is what it should carry"]
    assert "low↓" in lines(held("low"))[1]
    assert "3.46 to 4.00 GB/s" in lines(held(), held(expected=4.0))[-1]


def test_what_is_hardly_below_its_best_is_not_marked():
    assert "101% of 3.46  ok" in lines(held(nominal=3.6))[1]


def test_nothing_is_said_of_verdicts_where_no_cell_has_one():
    assert "judged" not in "".join(lines(row(), row()))


@pytest.mark.parametrize(
    ("status", "word"), [("error", "ERROR"), ("timeout", "TIMEOUT"), ("skip", "SKIP")]
)
def test_a_cell_without_a_figure_has_its_status(status, word):
    broken = Row("d2d", failed("0", "1", status, "lost"), "B/s")
    assert lines(row(), broken)[2].split() == ["d2d", word]


@pytest.mark.parametrize(("half", "shown"), [(0.004, "±0.4%"), (0.3, "±30%"), (40.0, "±>999%")])
def test_the_interval_is_as_exact_as_it_matters(half, shown):
    wide = cell("0", "0", 100)
    median = wide.summary.median
    ends = (median * (1 - half), median * (1 + half))
    wide = replace(wide, summary=replace(wide.summary, ci95=ends))
    assert lines(Row("h2d", wide, "B/s"))[1].split()[3] == shown


def test_the_heads_of_columns_shorten_before_the_last_are_left_out():
    wide, narrow = lines(row(), width=51)[0], lines(row(), width=48)[0]
    assert wide.split()[1:] == ["median", "±", "slow", "p95", "worst", "samples"]
    assert narrow.split()[1:] == ["median", "±", "p95", "worst", "samples"]


def test_a_name_that_leaves_no_room_stands_on_a_line_of_its_own():
    name = "device_to_device_bidirectional_memcpy_write_ce"
    head, own, figures = lines(row(name), width=50)
    assert own == name
    assert "55.30 GB/s" in figures
    assert max(map(len, (head, own, figures))) <= 50
