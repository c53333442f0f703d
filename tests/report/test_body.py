"""The body of a run on terminals of several widths (UPDATE_GOLDEN=1 writes the files anew)."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.report.body import body_lines
from report.bodies import (
    BODIES,
    EIGHT,
    FAILURES,
    ONE_DEVICE,
    WIDE,
    cell,
    judged,
    result,
    run,
    simulated,
)
from report.test_output import compare, text_console

WIDTHS = (60, 80, 120, 200)
NUMBER = re.compile(r"[0-9]+\.[0-9]+")


def body(shown, width, *, whole=False, **options):
    console = text_console(width=width, **options)
    for line in body_lines(shown, whole=whole):
        console.print(line)
    return console.file.getvalue()


@pytest.mark.parametrize("name", BODIES)
def test_bodies_at_all_widths(name):
    texts = (f"{f' {width} columns ':-^{width}}\n{body(BODIES[name], width)}" for width in WIDTHS)
    compare(f"body-{name}.txt", "".join(texts))


@pytest.mark.parametrize("name", ["one-device", "eight", "failures"])
def test_bodies_in_colour(name):
    coloured = body(BODIES[name], 80, force_terminal=True, color_system="standard")
    compare(f"body-{name}.ansi", coloured)
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == body(BODIES[name], 80)


@given(st.sampled_from(sorted(BODIES)), st.integers(60, 220), st.booleans())
def test_no_line_is_wider_than_the_terminal_and_no_number_is_broken(name, width, whole):
    lines = body(BODIES[name], width, whole=whole).splitlines()
    assert all(len(line) <= width or len(line.split()) == 1 for line in lines)
    numbers = set(NUMBER.findall(body(BODIES[name], 100_000, whole=whole)))
    assert set(NUMBER.findall("\n".join(lines))) <= numbers


@pytest.mark.parametrize("name", ["eight", "wide", "failures"])
@pytest.mark.parametrize("width", [60, 120])
def test_folding_loses_no_figure(name, width):
    narrow, wide = (NUMBER.findall(body(BODIES[name], each)) for each in (width, 1000))
    assert sorted(narrow) == sorted(wide)


def test_each_benchmark_of_one_device_is_one_line_with_its_name():
    lines = body(ONE_DEVICE, 120).splitlines()
    for one in ONE_DEVICE.results:
        own = [line for line in lines if line.split()[:1] == [one.benchmark]]
        assert len(own) == len(one.cells)


def test_what_was_not_measured_at_all_is_left_out():
    assert "needs two devices" not in body(ONE_DEVICE, 120)
    assert not body(run(*(r for r in ONE_DEVICE.results if r.status == "skip")), 120)


def test_a_large_matrix_is_summed_up_unless_all_of_it_is_asked_for():
    summary = body(WIDE, 80)
    assert len(summary.splitlines()) < 20
    assert "5112" in summary
    assert "stands out device_to_device_memcpy_read_ce (3, " in summary
    assert len(NUMBER.findall(body(WIDE, 80, whole=True))) < len(body(WIDE, 80, whole=True).split())
    assert body(WIDE, 1000, whole=True).count("\n") > 72


def test_a_cell_that_failed_looks_otherwise_than_one_that_is_not_there():
    lines = body(FAILURES, 80).splitlines()
    rows = [line.split() for line in lines[3:6]]
    assert rows == [
        ["0", "·", "ERROR", "TIMEOUT"],
        ["1", "12.30!", "·", "SKIP"],
        ["2", "390.5", "391.5", "·"],
    ]
    assert "! failed" in lines


def test_low_cells_are_marked_without_colour_and_the_marks_explained():
    text = body(EIGHT, 80)
    assert "98.20▼▼" in text
    assert "350.0▼ " in text
    assert "▼ below what is expected, ▼▼ below half of what is expected" in text
    assert "expected 400.00 GB/s: 18 nvlink × 25 GB/s = 450 GB/s" in text


def test_what_is_far_from_its_peers_is_marked_though_nothing_is_expected_of_it():
    slow = replace(cell("0", "3", 13.82), peers=55.2e9)
    cells = [*(judged(cell("0", str(n), 55.2), 62.0, "ok") for n in range(3)), slow]
    text = body(run(result("all_to_host", cells), devices=4), 80)
    assert "13.82▽" in text
    assert "▽ far below its peers" in text
    assert "1 of 4 not judged" in text
    assert "55.20▽" not in text


def test_what_links_run_below_their_best_is_marked_and_explained():
    cells = [
        judged(cell(row, column, 393.0), 400.0, "ok")
        for row in "012" for column in "012" if row != column
    ]  # fmt: skip
    slow = judged(cell("0", "1", 197.1), 200.0, "ok")
    cells[0] = replace(slow, expected=replace(slow.expected, nominal=400e9))
    text = body(run(result("d2d", cells), devices=3), 80)
    assert "197.1↓" in text
    assert "393.0↓" not in text
    assert "d2d  cuda  64 MiB  ok↓" in text
    assert "↓ slowed: links on the way run below their best" in text


@pytest.mark.parametrize("name", BODIES)
def test_every_table_of_a_simulated_run_says_so(name):
    tables = body(simulated(BODIES[name]), 80).strip().split("\n\n")
    tables = [table for table in tables if not table.startswith("--matrix shows")]
    assert tables
    assert all("SIMULATED" in table.split("\n")[0] for table in tables)
