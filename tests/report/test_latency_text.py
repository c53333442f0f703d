"""What is shown of latencies: levels, what runs beside, and long curves upright."""

from msgspec.structs import replace

from linkgauge.judge.plateaus import with_levels
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Part, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.report.console import make_console
from linkgauge.report.run_text import render_result

KI = 1 << 10


def cell(row, column, text, seconds, rate=None):
    transfers = parse_transfers(text)
    made = CellResult(row, column, transfers, Report.LATENCY, "pass", operation="chase")
    parts = (Part(0, 0, (seconds,), summarize([seconds], "lower")),)
    parts += () if rate is None else (Part(1, 0, (rate,), summarize([rate], "higher")),)
    return replace(made, summary=summarize([seconds], "lower"), parts=parts)


def text_of(cells, title):
    result = Result(
        benchmark="memory_latency", title=title, backend="host", size=2 * KI, unit="s",
        better="lower", sweep=True, status="pass", cells=tuple(cells),
    )  # fmt: skip
    console = make_console()
    with console.capture() as taken:
        console.print(render_result(with_levels(result)))
    return taken.get().splitlines()


def test_a_long_curve_stands_upright_with_its_levels_below():
    sizes = [2 << k for k in range(1, 19)]  # KiB
    cells = [
        cell("0 huge", f"{size} KiB", f"host:0/huge -> null by cpu*1 x{size // 2}",
             1.5e-9 if size <= 32 else 90e-9)
        for size in sizes
    ]  # fmt: skip
    lines = text_of(cells, "latency of pages(row) by size(column)")
    assert lines[0].startswith("memory_latency  host  4 KiB to 512 MiB")
    assert lines[1].startswith("latency of pages(column) by size(row)")
    assert lines[2].split() == ["0", "huge"]
    assert lines[3].split() == ["4", "KiB", "1.50"]
    assert lines[3 + len(sizes)] == (
        "0 huge level 1: 1.50 ns up to 32 KiB, level 2: 90.00 ns from 64 KiB"
    )


def test_what_loads_the_memory_has_a_matrix_of_its_own_unit():
    load = "host:0 -> null by cpu*1 & host:0 -> null by cpu*3"
    cells = [
        cell("0 read", "0%", "host:0 -> null by cpu*1", 1e-7),
        cell("0 read", "100%", load, 3e-7, 12.5e9),
    ]
    lines = text_of(cells, "latency")
    assert lines[3].split() == ["0", "read", "100.00", "300.00"]
    assert "(GB/s)" in lines[4]
    assert lines[6].split() == ["0", "read", "12.50"]


def loaded(*seconds):
    """A row by load; each latency is known to within 1 %."""
    rows = []
    for place, one in zip(("0%", "25%", "50%"), seconds, strict=False):
        rate = None if place == "0%" else 1e9
        made = cell("flag", place, "host:0 -> null by cpu*1 & host:0 -> null by cpu*3", one, rate)
        known = replace(made.summary, ci95=(one * 0.99, one * 1.01))
        rows.append(replace(made, summary=known))
    return rows


def test_that_no_latency_falls_is_said_where_intervals_tell():
    said = "no latency falls by more than its interval as the load grows"
    rows = loaded(1e-7, 1.2e-7, 1.19e-7)
    assert said in text_of(rows, "t")
    unknown = [replace(row, summary=replace(row.summary, ci95=None)) for row in rows]
    assert said not in text_of(unknown, "t")


def test_the_point_that_falls_is_named():
    said = "\n".join(text_of(loaded(1e-7, 1.5e-7, 1.2e-7), "t"))
    assert "falls as the load grows: flag at 50%: 120.00 ns after 150.00 ns at 25%" in said
    assert "no latency falls" not in said


def test_nothing_is_said_of_rows_without_loads():
    alone = [cell("0", "1 KiB", "host:0 -> null by cpu*1", 1e-9)]
    assert not any("the load grows" in line for line in text_of(alone, "t"))
