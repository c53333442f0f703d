"""The last lines of a run: what is wrong, what to do, how many cells did how well."""

import shlex

import pytest
from msgspec.structs import replace

from linkgauge.judge.findings import Finding
from linkgauge.judge.outcome import Outcome
from linkgauge.model.ranks import LostRank, Rank
from linkgauge.model.result import Expected
from linkgauge.report.outcome_text import outcome_lines
from linkgauge.report.run_text import render_result
from report.samples import RUN
from report.test_output import text_console

PAIRS = RUN.results[0]
FAIL = Finding("link-speed", "fail", "x:0", "it is slow")
WARN = Finding("stall", "warn", "x:1", "it stalls")


def run_of(*verdicts, **more):
    """A run of cells with these verdicts."""
    cells = (
        replace(PAIRS.cells[0], verdict=each, expected=Expected(221e9, 221e9), **more)
        for each in verdicts
    )
    return replace(RUN, results=(replace(PAIRS, cells=tuple(cells)),))


def lines(run, *findings, verdict=True, kept=None, **more):
    console = text_console(width=1000)
    for line in outcome_lines(run, Outcome(1, findings, verdict), kept, **more):
        console.print(line)
    return console.file.getvalue().splitlines()


def test_cells_are_counted_by_their_verdicts():
    judged = run_of(*["ok"] * 30, *["low"] * 2, *["unknown"] * 10)
    told = "42 measured: 30 ok, 2 low, 10 not judged (no reference); findings: 1 fail"
    assert lines(judged, FAIL)[-1] == told
    assert lines(run_of("ok", "high"))[-1] == "2 measured: 1 ok, 0 low, 1 high, 0 not judged"


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ("fail", "1 measured: 0 ok, 0 low, 0 not judged, 1 fail"),
        ("error", "nothing measured; 1 error"),
        ("skip", "nothing measured; 1 skip"),
    ],
)
def test_what_did_not_pass_is_counted_apart(status, line):
    assert lines(run_of("low", status=status, reason="so"))[-1] == line


def test_a_benchmark_without_cells_is_skipped():
    bare = replace(PAIRS, cells=(), status="skip", reason="needs two devices")
    assert lines(replace(RUN, results=(bare,)))[-1] == "nothing measured; 1 skip"


def test_where_nothing_was_measured_nothing_is_called_well():
    assert lines(run_of("unknown", status="skip", reason="so")) == [
        "verdict:   nothing was measured",
        "nothing measured; 1 skip",
    ]


def test_where_nothing_has_a_reference_nothing_is_called_well():
    assert lines(run_of("unknown", "unknown")) == [
        "verdict:   not judged: no figure has a reference",
        "2 measured: 0 ok, 0 low, 2 not judged (no reference)",
    ]


def test_where_some_have_a_reference_the_verdict_says_of_how_many():
    assert lines(run_of("ok", "unknown", "unknown"))[0] == (
        "verdict:   ok: nothing wrong was found in the 1 of 3 figures that have a reference"
    )


def test_what_slow_links_allow_is_counted_apart_from_what_is_ok():
    run = run_of("ok", "ok")
    (result,) = run.results
    first, second = result.cells
    slow = replace(first, expected=replace(first.expected, nominal=800e9))
    run = replace(run, results=(replace(result, cells=(slow, second)),))
    assert lines(run)[-1] == (
        "2 measured: 1 ok, 1 slowed by links below their best, 0 low, 0 not judged"
    )


def test_the_worst_finding_is_the_verdict():
    assert lines(run_of("low"), WARN, FAIL)[0] == "verdict:   fail link-speed  x:0: it is slow"
    assert lines(run_of("ok"), WARN)[0] == "verdict:   warn stall  x:1: it stalls"


def test_what_explains_the_verdict_stands_below_it_with_what_to_do():
    cause = Finding("clocks", "warn", "x:0", "they are low", "kernels are slow", ("see to it",))
    slow = Finding("slow", "fail", "x:0", "it is slow", explained_by=(cause.name,))
    assert lines(run_of("low"), cause, slow)[:4] == [
        "verdict:   fail slow  x:0: it is slow",
        "cause:     warn clocks  x:0: they are low",
        "why:       kernels are slow",
        "do first:  # see to it",
    ]


def test_a_failure_that_the_verdict_explains_stands_below_it():
    slow = Finding("slow", "fail", "x:1", "it is slow", explained_by=(FAIL.name,))
    told = lines(run_of("low"), FAIL, slow)
    assert told[1] == "explains:  fail slow  x:1: it is slow"
    assert "explains" not in "".join(lines(run_of("low"), FAIL, replace(slow, severity="warn")))


def test_what_to_do_first_is_all_commands_that_need_each_other():
    together = ("sudo setpci -s 0:1.0 CAP_EXP+30.w=5:f", "sudo setpci -s 0:1.0 CAP_EXP+10.w=20:20")
    remedy = ("# not while it is used", *together, "# or", "sudo dmesg")
    told = lines(run_of("ok"), replace(FAIL, remedy=remedy))
    first, second = together
    assert told[1:-1] == [
        "do first:  # not while it is used", f"           {first}", f"           {second}"
    ]  # fmt: skip


def test_to_look_is_a_first_step_of_its_own():
    told = lines(run_of("ok"), replace(FAIL, remedy=("sudo lspci -vv", "sudo setpci -s 0 x=1")))
    assert told[1:-1] == ["do first:  sudo lspci -vv"]


def test_where_nothing_is_found_it_is_the_first_cell_that_is_not_as_it_should_be():
    assert lines(run_of("ok"))[0] == "verdict:   ok: nothing wrong was found"
    assert lines(run_of("ok", "low"))[0] == (
        "verdict:   low host_to_device_memcpy_ce (0, 0) 25% of what is expected; "
        "no check explains it"
    )
    failed = run_of("low", "low", status="fail", reason="below the limit")
    assert lines(failed)[0] == (
        "verdict:   fail host_to_device_memcpy_ce (0, 0): below the limit, and 1 more"
    )


def test_the_three_cells_furthest_below_what_is_expected_are_named():
    cells = [
        replace(PAIRS.cells[0], column=str(n), verdict="low", expected=Expected(None, by * 1e9))
        for n, by in enumerate((100, 400, 200, 300))
    ]
    told = lines(replace(RUN, results=(replace(PAIRS, cells=tuple(cells)),)), FAIL)
    at = next(n for n, line in enumerate(told) if line.startswith("lowest:"))
    assert [line[11:] for line in told[at : at + 3]] == [
        "14% 55.25 GB/s  host_to_device_memcpy_ce (0, 1)",
        "18% 55.25 GB/s  host_to_device_memcpy_ce (0, 3)",
        "28% 55.25 GB/s  host_to_device_memcpy_ce (0, 2)",
    ]


def test_a_missed_precision_is_one_line_that_names_the_furthest_cell():
    wide = replace(PAIRS.cells[0].summary, ci95=(50e9, 60e9))
    missed = lines(run_of("ok", "ok", stopped="max-time", summary=wide))
    assert missed[1].startswith(
        "precision: ±1.00% missed by 2 cells, furthest by host_to_device_memcpy_ce (0, 0) ±"
    )


def test_the_next_command_is_the_doctors_and_its_own_is_the_script(tmp_path):
    mended = replace(FAIL, remedy=("sudo dmesg",))
    kept = tmp_path / "it's here"
    quoted = shlex.quote(str(kept))
    assert f"next:      linkgauge doctor {quoted}" in lines(run_of("ok"), mended, kept=kept)
    script = f"next:      linkgauge doctor {quoted} --fix-script fix.sh"
    assert script in lines(run_of("ok"), mended, kept=kept, by_doctor=True)
    written = lines(run_of("ok"), mended, kept=kept, by_doctor=True, scripted=True)
    for quiet in (written, lines(run_of("ok"), kept=kept), lines(run_of("ok"), mended)):
        assert not [line for line in quiet if line.startswith("next:")]


def test_an_interrupted_run_goes_on_by_the_next_command(tmp_path):
    (tmp_path / "journal.jsonl").touch()
    run = replace(run_of("ok"), finished=None)
    assert lines(run, kept=tmp_path) == [
        "verdict:   ok: nothing wrong was found before it was interrupted",
        f"next:      linkgauge run --resume {tmp_path}",
        "1 measured: 1 ok, 0 low, 0 not judged (interrupted)",
    ]


def test_a_run_that_lost_a_rank_goes_on_by_all_ranks(tmp_path):
    (tmp_path / "journal.jsonl").touch()
    run = run_of("unknown", status="error", lost=1)
    machine = replace(run.machine, ranks=(Rank(0, "a", 1), Rank(1, "b", 2)))
    said = " ".join(line.strip() for line in lines(replace(run, machine=machine), kept=tmp_path))
    assert "# by all 2 ranks, launched as before" in said
    assert f"linkgauge run --resume {tmp_path}" in said.replace(" \\ ", " ")
    ended = replace(run_of("ok"), lost=LostRank(1, "ended", "joining"))  # before it had any rank
    assert not any("--resume" in line for line in lines(ended, kept=tmp_path))


def test_a_lost_rank_is_the_verdict():
    lost = LostRank(1, "ended by SIGKILL", "measuring")
    told = lines(replace(run_of("ok"), lost=lost), verdict=False)
    assert told == [
        "verdict:   lost: rank 1 ended by SIGKILL while measuring; the run ended there",
        "1 measured",
    ]


def test_who_wants_figures_only_sees_no_verdict():
    assert lines(run_of("ok", "low"), verdict=False) == ["2 measured"]


@pytest.mark.parametrize(
    ("verdicts", "word"),
    [(["ok", "unknown"], "1 of 2 not judged"), (["low", "unknown"], "low"),
     (["ok", "low", "high"], "low"), (["ok", "high"], "high"),
     (["unknown"], None)],
)  # fmt: skip
def test_a_heading_has_the_worst_verdict_and_never_pass(verdicts, word):
    console = text_console()
    console.print(render_result(run_of(*verdicts).results[0]))
    heading = console.file.getvalue().splitlines()[0]
    expected = "host_to_device_memcpy_ce  x  64 MiB"
    assert heading == (f"{expected}  {word}" if word else expected)
