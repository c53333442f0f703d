"""Benchmarks without figures, by their reasons."""

from msgspec.structs import replace

from linkgauge.report.skips import unmeasured_lines
from report.samples import RUN, result, unmeasured
from report.test_output import text_console


def told(*results):
    console = text_console(width=1000)
    for line in unmeasured_lines(replace(RUN, results=results)):
        console.print(line)
    return console.file.getvalue().splitlines()


def skipped(name, reason="needs two devices"):
    return result(name, name, "skip", [], reason=reason)


def broken(name, *reasons, status="error"):
    cells = [unmeasured("0", str(n), ["host:0 -> x:0 by ce"], status, reason, "call")
             for n, reason in enumerate(reasons)]  # fmt: skip
    return result(name, name, status, cells)


def test_a_reason_is_one_line_with_the_first_benchmark_and_how_many_more():
    four = map(skipped, ("read", "write", "both", "all"))
    assert told(*four) == ["skip  needs two devices: read and 3 more"]
    assert told(skipped("read"), skipped("write")) == ["skip  needs two devices: read, write"]


def test_each_reason_has_its_line():
    assert told(skipped("a"), skipped("b", "no arrays"), skipped("c")) == [
        "skip  needs two devices: a, c",
        "skip  no arrays: b",
    ]


def test_what_went_wrong_is_shown_after_what_was_skipped():
    late = broken("c", "late", status="timeout")
    assert told(broken("a", "lost", "lost"), skipped("b"), late) == [
        "skip  needs two devices: b",
        "timeout  late: c",
        "error  lost: a",
    ]  # fmt: skip


def test_of_many_reasons_the_first_are_shown():
    lines = told(broken("a", *(f"call {n}" for n in range(9))))
    assert len(lines) == 7
    assert lines[-1] == "error  for 3 more reasons, which run.json has"


def test_results_with_figures_are_left_to_their_matrices():
    assert told(*RUN.results) == ["skip  needs two devices, x has 1 selected: all_to_one_read_ce"]
