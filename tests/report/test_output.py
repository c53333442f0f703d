"""What people and programs are shown, against golden files (UPDATE_GOLDEN=1 writes them anew)."""

import csv
import io
import json
import os
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console
from rich.text import Text

from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.runs import read_run
from linkgauge.judge.outcome import Outcome
from linkgauge.model.errors import InputError, ResultsError
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Run
from linkgauge.model.transfer import Drawn, Report
from linkgauge.report import files
from linkgauge.report.console import make_console
from linkgauge.report.matrix import shown
from linkgauge.report.outcome_text import outcome_lines
from linkgauge.report.run_notes import note_lines
from linkgauge.report.run_text import (
    render,
    render_result,
    render_transfers,
)
from report.samples import COPY, RUN

GOLDEN = Path(__file__).parent / "golden"


def compare(name: str, text: str) -> None:
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    assert text == path.read_text()


def text_console(width=120, **options) -> Console:
    console = make_console(file=io.StringIO(), **options)
    console.width = width
    return console


def print_run(console: Console, run: Run) -> None:
    """The whole run, as after measuring it."""
    lines = outcome_lines(run, Outcome(0))
    for part in (*map(render, run.results), *note_lines(run), *lines):
        console.print(part)


def test_a_run_on_the_terminal():
    console = text_console()
    print_run(console, RUN)
    compare("run.txt", console.file.getvalue())


def test_colour_only_on_a_terminal():
    for options, coloured in (({}, False), ({"force_terminal": True}, True)):
        console = text_console(**options)
        print_run(console, RUN)
        assert ("\x1b[" in console.file.getvalue()) == coloured


def test_control_characters_of_a_file_are_shown_not_obeyed(capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    console = make_console()
    console.print(Text("a\x1b]0;title\x07 b\x9b2J", style="red"))
    shown_text = capsys.readouterr().out
    assert "a\ufffd]0;title b\ufffd2J" in shown_text
    assert shown_text.startswith("\x1b[31m")


def test_text_is_not_turned_around(capsys):
    make_console().print(Text("H200\u202e fast \u2067x"))
    assert capsys.readouterr().out == "H200\ufffd fast \ufffdx\n"


def test_a_simulated_or_interrupted_run_says_so():
    console = text_console()
    print_run(console, msgspec.structs.replace(RUN, simulated=True, finished=None))
    assert "SIMULATED" in console.file.getvalue()
    assert "interrupted" in console.file.getvalue()


@pytest.mark.parametrize(("status", "reason"), [("error", "lost"), ("timeout", "late")])
def test_a_sum_says_how_many_cells_are_missing(status, reason):
    result = RUN.results[0]
    lost = msgspec.structs.replace(
        result.cells[0], status=status, reason=reason, summary=None, samples=(), parts=()
    )
    broken = msgspec.structs.replace(result, cells=(lost, *result.cells[1:]))
    there, all_of = len(result.cells) - 1, len(result.cells)
    (before,), (after,) = ([line for line in shown_of(one) if "SUM" in line]
                           for one in (result, broken))  # fmt: skip
    assert "cells" not in before
    assert after.endswith(f" of {there} of {all_of} cells")


def test_a_sample_of_pairs_says_so_in_its_heading_and_in_its_sum():
    result = RUN.results[1]
    pairs = ((12, 3), (3, 9), (9, 3))
    cells = [
        msgspec.structs.replace(cell, row=str(row), column=str(column))
        for cell, (row, column) in zip(result.cells[:1] * 3, pairs, strict=True)
    ]
    drawn = msgspec.structs.replace(result, cells=tuple(cells), drawn=Drawn(3, 12, 7))
    lines = shown_of(drawn)
    assert lines[0].endswith("3 of 12 pairs, drawn with seed 7")
    matrix = [line.split() for line in lines[lines.index("total") + 1 :][:4]]
    assert [matrix[0], *(row[0] for row in matrix[1:])] == [["3", "9"], "3", "9", "12"]
    assert [row[1:].count("·") for row in matrix[1:]] == [1, 1, 1]
    assert [line.split(" of ", 1)[1] for line in lines if "SUM" in line] == ["3 of 12 cells"] * 3


def shown_of(result):
    console = text_console()
    console.print(render_result(result))
    return console.file.getvalue().splitlines()


def test_transfers_written_down_by_the_user():
    console = text_console()
    console.print(render_transfers(COPY))
    compare("copy.txt", console.file.getvalue())


def test_samples_as_csv():
    compare("samples.csv", files.samples_csv(RUN))
    rows = list(csv.DictReader(io.StringIO(files.samples_csv(RUN))))
    headline = sum(len(cell.samples) for result in RUN.results for cell in result.cells)
    assert sum(row["transfer"] == "" for row in rows) == headline
    assert {row["unit"] for row in rows} == {"B/s"}


def test_samples_of_any_name_are_read_back_from_csv():
    name = 'with "quotes", a comma\nand a second line'
    named = msgspec.structs.replace(RUN, id=name)
    rows = list(csv.DictReader(io.StringIO(files.samples_csv(named))))
    assert {row["run"] for row in rows} == {name.replace("\n", "�")}
    assert [float(row["value"]) for row in rows[:2]] == list(RUN.results[0].cells[0].samples[:2])


def test_run_json():
    compare("run.json", files.json_document(RUN))


def test_a_run_is_read_back_as_it_was_written(tmp_path):
    path = files.write_run(tmp_path, RUN)
    assert read_run(path) == RUN
    assert read_run(tmp_path) == RUN
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run.json", "samples.csv"]


def test_a_file_with_fields_that_are_not_known_yet_loads(tmp_path):
    document = json.loads(files.json_document(RUN))
    document["later"] = document["results"][0]["later"] = {"x": 1}
    (tmp_path / "run.json").write_text(json.dumps(document))
    assert read_run(tmp_path) == RUN


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[1]", b"\xff\xfe", b'{"schema": "linkgauge.run/9"}', b"[" * 100_000]
)
def test_what_is_no_run_is_refused_in_one_line(tmp_path, content):
    (tmp_path / "run.json").write_bytes(content)
    with pytest.raises(InputError) as caught:
        read_run(tmp_path / "run.json")
    assert "\n" not in str(caught.value)


def test_a_missing_run_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        read_run(tmp_path / "nowhere.json")


def test_results_that_cannot_be_written_are_an_error_with_the_path(tmp_path):
    with pytest.raises(ResultsError, match=r"samples\.csv"):
        files.write_run(tmp_path / "gone", RUN)


@pytest.mark.parametrize(
    ("value", "text"),
    [(55.25e9, "55.25"), (0.0123e9, "0.0123"), (1234.5e9, "1234.50"), (0, "0.00")],
)
def test_figures_keep_two_decimals_or_three_digits(value, text):
    assert shown(value, "B/s") == text


def test_a_dry_run_shows_cells_memory_and_time(capsys):
    from linkgauge.benchmarks.catalog import select
    from linkgauge.report.dry_run import dry_run
    from linkgauge.report.formats import formats

    here = RUN.machine
    plan = make_plan(
        lay_out(select(["device_local_copy"], ()), fabrics(here, ()), here.host.nodes), here, [4096]
    )
    dry = dry_run(plan, RUN.settings)
    formats()["terminal"].write("plan", dry)
    assert capsys.readouterr().out.splitlines() == [
        "device_local_copy  x  4 KiB",
        "  (0, 0)  x:0 -> x:0 by ce",
        "  (0, 1)  x:1 -> x:1 by ce",
        "2 cells; at once at most x:0 8.0 KiB, x:1 8.0 KiB; at most about 4 s",
    ]
    formats()["json"].write("plan", dry)
    assert json.loads(capsys.readouterr().out)["peak_memory"] == {"x:0": 8192, "x:1": 8192}


def test_of_many_reasons_for_no_figure_the_first_is_told():
    cell = CellResult(
        "0", "1", parse_transfers("cpu:0 -> cpu:1 by cpu"), Report.FIRST, "skip", "no link to 1"
    )
    cells = tuple(
        replace(cell, column=str(column), reason=f"no link to {column}") for column in range(1, 57)
    )
    skipped = replace(RUN.results[0], status="skip", reason=None, cells=cells)
    console = text_console()
    console.print(render_result(skipped))
    text = console.file.getvalue()
    assert text.endswith(": no link to 1 (and 55 more reasons)\n")
    assert text.count("\n") == 1
