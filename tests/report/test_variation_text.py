"""What settings change, as it is shown: against a golden file, and in 80 columns."""

import json
from pathlib import Path

import jsonschema
import pytest
from msgspec.structs import replace

from judge.test_differences import InRound, run, single, threads
from linkgauge.engine.runs import read_run, read_variation
from linkgauge.judge.differences import compare
from linkgauge.model.errors import InputError
from linkgauge.model.variation import KeptRun, Setting, Variation
from linkgauge.report.files import write_document
from linkgauge.report.formats import formats
from linkgauge.report.variation_text import variation_lines
from report.samples import cell, result, unmeasured
from report.test_output import GOLDEN, text_console
from report.test_output import compare as as_golden

SCHEMA = Path(__file__).parents[2] / "docs" / "vary.schema.json"
NONE = result("x", "x", "skip", [
    unmeasured("0", "0", ["x:0 -> x:0 by ce"], "skip", "the pool has no huge pages", "unsupported")
])  # fmt: skip


def latency(nanoseconds):
    made = replace(single(nanoseconds * 1e-18), benchmark="latency", unit="s", better="lower")
    return replace(made, size=0)


def variation(rounds=10, **more):
    """Three settings: half the threads, and a little better; the last one without a cell."""
    runs = []
    for number in range(rounds):
        drift = 1 + (number % 4) / 50
        noise = 1 + (number * 7 % 10 - 4.5) / 300
        runs += [
            run(threads([1, 2], 10 * drift), single(10.0 * drift), latency(100 * noise)),
            run(threads([1], 10 * drift * noise), single(10.004 * drift), latency(109), cpus=1),
            run(threads([1, 2], 10.3 * drift * noise), NONE, latency(97 / noise)),
        ]
    taken = [InRound(n // 3, n % 3, one) for n, one in enumerate(runs)]
    given = {
        "label": "vary", "command": ("linkgauge", "vary"), "started": "s", "finished": "f",
        "significance": 0.01, "rounds": rounds,
        "settings": (
            Setting("A", {"--cpus": "0-1", "--memory": "pinned"}, "vary"),
            Setting("B", {"--cpus": "0", "--memory": "pinned"}, "vary"),
            Setting("C", {"--cpus": "0-1", "NAME": "1"}, "vary"),
        ),
        "runs": tuple(KeptRun(one.round, one.setting, None, "pass", True) for one in taken),
        "cells": compare(taken, 3, 0.01),
    }  # fmt: skip
    return Variation(**given | more)


def text(some):
    console = text_console(width=1000)
    for line in variation_lines(some):
        console.print(line)
    return console.file.getvalue()


def test_a_comparison_on_the_terminal():
    as_golden("vary.txt", text(variation()))


def test_its_table_fits_in_80_columns_and_has_no_blanks_at_the_end():
    lines = text(variation()).splitlines()
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line != line.rstrip()] == []


def test_what_the_command_before_the_runs_printed_is_shown():
    some = variation()
    runs = tuple(replace(one, prepared=f"was x\ngovernor {one.setting}") for one in some.runs)
    shown = text(replace(some, prepare="set-governor", runs=runs))
    assert "before each run: set-governor\n" in shown
    assert "B  --cpus 0 --memory pinned  prepared: governor 1\n" in shown


def test_an_end_before_all_rounds_is_said():
    some = variation(4, finished=None)
    runs = (*some.runs[:-1], replace(some.runs[-1], finished=False))
    shown = text(replace(some, runs=runs, rounds=10))
    assert "3 settings, 3 rounds of a run each" in shown
    assert "(ended before all 10)" in shown
    assert "too few rounds (4)" in shown
    assert shown.endswith("\nfinding a difference at 1% takes 8 rounds\n")


def test_rounds_without_a_figure_are_told_with_the_reason():
    taken = [
        InRound(n, s, run(NONE if (n, s) == (3, 1) else single(10 + s)))
        for n in range(10) for s in (0, 1)
    ]  # fmt: skip
    some = variation()
    shown = text(replace(some, settings=some.settings[:2], cells=compare(taken, 2, 0.01)))
    assert "+10.00%  [+10.00%, +10.00%] better (9 rounds)" in shown
    assert "note: B (0, 0): 1 round has no figure: skip: the pool has no huge pages" in shown


def test_no_difference_is_told_from_not_knowing():
    taken = [
        InRound(n, s, run(single(10 + (s * 2 - 1) * (-1) ** n * n / 4)))
        for n in range(10) for s in (0, 1)
    ]  # fmt: skip
    some = variation()
    shown = text(replace(some, settings=some.settings[:2], cells=compare(taken, 2, 0.01)))
    assert "B against A: 0 of 1 differ\n  ~ may be up to 35%: raise --rounds" in shown
    assert "may be" not in text(variation())


class TestSeveralSizes:
    @staticmethod
    def of(*by_path):
        """A cell for each path and size; of a path, the figures of A and B at each size."""
        runs = [
            InRound(n, s, run(*(_sized(size, [path[at][s] for path in by_path])
                                for at, size in enumerate((4096, 65536, 1 << 20)))))
            for n in range(10) for s in (0, 1)
        ]  # fmt: skip
        some = variation()
        kept = tuple(KeptRun(one.round, one.setting, None, "pass", True) for one in runs)
        cells = compare(runs, 2, 0.01)
        return text(replace(some, settings=some.settings[:2], runs=kept, cells=cells))

    def test_are_one_table_that_says_from_which_size_on_one_is_better(self):
        shown = self.of([(2, 1), (8, 8), (20, 30)], [(2, 1), (8, 9), (20, 30)])
        as_golden("vary-sizes.txt", shown)
        assert max(map(len, shown.splitlines())) <= 80

    @pytest.mark.parametrize(
        ("figures", "says"),
        [
            ([(1, 2), (1, 2), (1, 2)], "better at every size"),
            ([(1, 1), (1, 1), (1, 1)], "~ at every size"),
            ([(1, 2), (2, 1), (2, 1)], "better up to 4 KiB, worse from 64 KiB on"),
            ([(1, 2), (1, 2), (2, 1)], "better up to 64 KiB, worse from 1 MiB on"),
        ],
    )
    def test_are_summed_up_for_a_path(self, figures, says):
        assert f"\n  B (0, 0): {says}\n" in self.of(figures)

    def test_are_summed_up_once_for_paths_that_go_alike(self):
        up, down = [(1, 2)] * 3, [(2, 1)] * 3
        assert "\n  B all 2 paths: better at every size\n" in self.of(up, up)
        shown = self.of(up, down, up)
        assert "\n  B (0, 0) (0, 2): better at every size\n" in shown
        assert "\n  B (0, 1): worse at every size\n" in shown

    def test_are_named_where_most_differs_and_where_a_figure_is_missing(self):
        shown = self.of([(2, 1), (8, 8), (20, 31)])
        assert "\n  most: -50.00% x (0, 0) at 4 KiB\n" in shown


def _sized(size, figures):
    cells = [cell("0", str(n), ["x:0 -> x:0 by ce"], figure) for n, figure in enumerate(figures)]
    return replace(result("x", "x", "pass", cells), size=size)


class TestKept:
    def test_it_validates_and_is_read_as_it_was_written(self, tmp_path):
        path = write_document(tmp_path / "vary.json", variation())
        jsonschema.validate(json.loads(path.read_text()), json.loads(SCHEMA.read_text()))
        assert read_variation(path) == read_variation(tmp_path) == variation()

    def test_it_is_the_document_of_json(self, tmp_path, capsys):
        path = write_document(tmp_path / "other.json", variation())
        formats()["json"].write("variation", variation())
        assert capsys.readouterr().out == path.read_text()
        assert read_variation(path) == variation()

    @pytest.mark.parametrize(
        "other", [GOLDEN / "run.json", GOLDEN, GOLDEN / "none", GOLDEN / "run.txt"]
    )
    def test_anything_else_is_none(self, other):
        assert read_variation(other) is None

    def test_a_damaged_one_is_refused(self, tmp_path):
        path = write_document(tmp_path / "vary.json", variation())
        path.write_text(path.read_text()[:-20])
        with pytest.raises(InputError, match="is not a comparison by linkgauge"):
            read_variation(path)
        with pytest.raises(InputError):
            read_run(path)
