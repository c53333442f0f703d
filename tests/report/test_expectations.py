"""What was expected is said in a few lines; utilisation is a matrix of percents."""

from msgspec.structs import replace
from rich.console import Console

from linkgauge.model.result import Expected
from linkgauge.report.expectations import MOST, expectation_lines
from linkgauge.report.run_text import render
from linkgauge.report.utilisation_matrix import render_cpus, render_utilisation
from report.samples import cell, result


def judged(*cells):
    return result("host_to_device_memcpy_ce", "memcpy", "pass", cells)


def expecting(column, gigabytes, verdict="ok", achievable=57.6, theoretical=63.0, because="PCIe"):
    expected = Expected(theoretical and theoretical * 1e9, achievable and achievable * 1e9, because)
    made = cell("0", str(column), [f"host:0 -> x:{column} by ce"], gigabytes)
    return replace(made, expected=expected, verdict=verdict)


def lines(of):
    return [str(line) for line in expectation_lines(of)]


def test_nothing_is_said_where_nothing_is_expected():
    assert lines(judged(cell("0", "0", ["host:0 -> x:0 by ce"], 1))) == []
    unknown = expecting(0, 1, "unknown", None, None, "unknown: no link")
    assert lines(judged(unknown)) == []


def test_equal_expectations_are_said_once():
    of = judged(expecting(0, 55), expecting(1, 54))
    assert lines(of) == ["expected 57.60 GB/s: PCIe"]


def test_a_bound_is_said_to_be_one():
    of = judged(expecting(0, 55, achievable=None))
    assert lines(of) == ["expected at most 63.00 GB/s: PCIe"]


def test_those_of_the_most_cells_come_first_and_few_are_shown():
    cells = [expecting(n, 55, because=f"way {n}") for n in range(MOST + 2)]
    cells.append(expecting(9, 55, because="way 1"))
    found = lines(judged(*cells))
    assert found[0] == "expected 57.60 GB/s: way 1"
    assert found[MOST:] == ["and 2 more expectations"]


def test_low_and_high_cells_are_named_with_their_share():
    of = judged(expecting(0, 28.8, "low"), expecting(1, 115.2, "high"), expecting(2, 55))
    assert lines(of)[:2] == [
        "low (0, 0) 50% of what is expected",
        "high (0, 1) 200% of what is expected",
    ]


def test_they_follow_the_matrix_and_low_figures_are_coloured():
    of = judged(expecting(0, 28.8, "low"), expecting(1, 55))
    console = Console(force_terminal=True, width=200, record=True, color_system="standard")
    with console.capture() as capture:
        console.print(render(of))
    text = capture.get()
    assert "\x1b[1;33m    28.80▼\x1b[0m" in text
    assert "\x1b[1;33m     55.00" not in text
    assert text.index("SUM") < text.index("expected 57.60 GB/s")


def test_utilisation_is_percent_of_the_theoretical_figure():
    of = judged(expecting(0, 31.5), expecting(1, 55, theoretical=None))
    console = Console(width=200, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(render_utilisation(of))
    assert [line.split() for line in capture.get().splitlines()[1:3]] == [
        ["0", "1"],
        ["0", "50.0", "N/A"],
    ]


def test_there_is_no_utilisation_of_the_unknown():
    assert render_utilisation(judged(expecting(0, 55, theoretical=None))) is None


def using(*cpus, **more):
    """A result whose cells kept so many CPUs busy for two seconds."""
    of = judged(*(expecting(n, 55) for n in range(len(cpus))))
    cells = (
        replace(cell, seconds=2.0, cpu_seconds=None if many is None else 2 * many)
        for cell, many in zip(of.cells, cpus, strict=True)
    )
    return replace(of, cells=tuple(cells), **more)


def lines_of(renderable):
    console = Console(width=200, record=True, force_terminal=False)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get().splitlines()


def test_the_cpu_time_is_a_matrix_of_its_own():
    title, columns, row, _ = lines_of(render_cpus(using(1.0, 3.456, None)))
    assert title.endswith("CPU time of the measuring process (CPUs)")
    assert (columns.split(), row.split()) == (["0", "1", "2"], ["0", "1.00", "3.46", "N/A"])


def test_of_a_copy_the_cpu_time_is_one_line():
    (line,) = lines_of(render_cpus(using(0.904, benchmark="copy")))
    assert line == "CPU time of the measuring process: 0.90 CPUs"


def test_there_is_no_cpu_time_of_what_was_simulated_or_kept_by_an_earlier_version():
    assert render_cpus(using(None, None)) is None
