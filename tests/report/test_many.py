"""A result of so many pairs that nobody reads each: what the page shows instead."""

from msgspec.structs import replace

from linkgauge.report.page.blocks import Heat, Table
from linkgauge.report.page.contents import page_of_run
from linkgauge.report.rounds_text import round_lines
from page_kit import cell, result, whole

COUNT = 500


def ring(slow=(), count=COUNT):
    """Each node to the next one on two rails, of which those that touch a slow end are slow."""
    return result(
        "nodes_rails", "node -> the next one(row) on each rail(column)",
        [
            cell(
                f"{one}->{other}", rail, 10e9 if {one, other} & own else 40e9,
                f"x:{one} -> x:{other} by ce", round=0,
            )
            for one, other in ((one, (one + 1) % count) for one in range(count))
            for rail, own in (("rail0", set(slow)), ("rail1", set()))
        ],
    )  # fmt: skip


def tables(*results):
    one = whole()
    page = page_of_run(replace(one, run=replace(one.run, results=results)))
    (part,) = (part for part in page.parts if part.title == "All figures")
    return part.blocks


def texts(table):
    return [[entry.text for entry in row] for row in table.rows]


def test_its_figures_are_counted_by_classes_and_no_cell_has_a_row():
    blocks = tables(ring(slow=[7]))
    assert not any(isinstance(block, Heat) for block in blocks)
    distribution, ends, pairs = (block for block in blocks if isinstance(block, Table))
    assert texts(distribution) == [
        ["rail0", "500", "2", "498", "10.00", "40.00", "40.00"],
        ["rail1", "500", "", "500", "40.00", "40.00", "40.00"],
        ["all", "1,000", "2", "998", "10.00", "40.00", "40.00"],
    ]
    assert texts(ends)[0] == ["7, rail0", "2", "2", "25%", "25%"]
    assert [row[0] for row in texts(pairs)] == ["6->7, rail0", "7->8, rail0"]


def test_the_lowest_are_few_and_the_caption_counts_the_others():
    *_, pairs = (block for block in tables(ring(slow=range(100, 200))) if isinstance(block, Table))
    assert len(pairs.rows) == 12
    assert "12 of 101" in pairs.caption


def test_a_healthy_one_is_one_table():
    assert sum(isinstance(block, Table) for block in tables(ring())) == 1


def test_a_matrix_that_fits_a_page_stays_one():
    assert any(isinstance(block, Heat) for block in tables(ring(count=32)))


def test_what_cells_at_once_carry_together_is_said():
    (line,) = round_lines(ring())
    assert line.plain == "1000 at once carry 40000 GB/s"
    first, second = round_lines(replace(ring(), benchmark="nodes_bisection", cells=tuple(
        replace(one, round=number % 2) for number, one in enumerate(ring().cells))))  # fmt: skip
    assert first.plain == "bisection 1 of 2: 500 at once carry 20000 GB/s"
    assert second.plain.startswith("bisection 2 of 2: ")


def test_of_few_a_matrix_shows_the_sum():
    assert not list(round_lines(ring(count=8)))
