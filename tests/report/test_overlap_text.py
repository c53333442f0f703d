"""Below the shares that are hidden stand the times that they are formed of."""

import pytest

from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Part, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import HIDDEN
from linkgauge.report.overlap_text import time_matrices
from linkgauge.report.run_text import render_result
from report.test_output import text_console

WAYS = {"H2D": "host:0 -> x:0 by ce", "both": "host:0 -> x:0 by ce & x:0 -> host:0 by ce"}


def cell(row, shares, computing, *copying):
    """Of one sample a share, and microseconds of a loop."""
    parts = (computing, *copying)
    return CellResult(
        row, "0", parse_transfers(f"null -> null by x:0.sm & {WAYS[row]}"), Report.HIDDEN, "pass",
        samples=shares, summary=summarize(shares), operation="overlap",
        parts=tuple(Part(n, 0, tuple(each * 1e-6 for each in own), None)
                    for n, own in enumerate(parts)),
    )  # fmt: skip


def result(*cells):
    return Result(
        benchmark="copy_compute_overlap", title="copies", backend="x", size=1 << 20,
        unit=HIDDEN.symbol, better="higher", status="pass", cells=cells, sweep=True,
    )  # fmt: skip


def shown(*cells):
    console = text_console(width=100)
    console.print(render_result(result(*cells)))
    return console.file.getvalue()


def test_times_are_those_of_copies_of_the_kernel_and_of_both():
    h2d = cell("H2D", (0.9, 0.8, 0.7), (10, 10, 10), (20, 20, 20))
    both = cell("both", (-0.1, 0.0, 0.1), (30, 30, 30), (20, 30, 25), (30, 10, 30))
    assert (
        shown(h2d, both)
        == """\
copy_compute_overlap  x  1 MiB
copies time hidden (%)
              0
 H2D      80.00
both       0.00
copies alone (µs)
              0
 H2D      20.00
both      30.00
the kernel alone (µs)
              0
 H2D      10.00
both      30.00
both at once (µs)
              0
 H2D      22.00
both      60.00

"""
    )


def test_no_more_than_all_is_hidden_whatever_the_scatter_of_the_times():
    one = cell("H2D", (1.02, 1.03, 1.01), (10, 10, 10), (10, 10, 10))
    assert one.summary.median == 1.02
    assert one.headline == 1
    assert "H2D     100.00" in shown(one)
    (matrix,) = [found for title, found in time_matrices(result(one)) if "both" in title]
    assert list(matrix.figures.values()) == pytest.approx([9.8])  # as measured


def test_what_was_not_measured_has_no_times():
    lost = CellResult(
        "H2D", "0", parse_transfers("null -> null by x:0.sm & host:0 -> x:0 by ce"),
        Report.HIDDEN, "skip", "too large", operation="overlap",
    )  # fmt: skip
    assert list(time_matrices(result(lost))) == []
