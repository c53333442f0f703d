"""`linkgauge show` of a folder of runs: its labels are compared."""

import csv
import io
import json
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from cli.test_cli import linkgauge
from configurations_kit import THREE, here, measured, run_of
from linkgauge.cli.show import show
from linkgauge.engine.folder import create_run_folder
from linkgauge.engine.runs import find_run, latest_run, read_run
from linkgauge.model.errors import InputError
from linkgauge.model.notes import Profiled, Remark
from linkgauge.report.files import write_run
from linkgauge.report.formats import TERMINAL, formats
from report.samples import RUN

RESULTS = tuple(
    replace(one, cells=tuple(
        replace(cell, notes=(Remark(f"host:0: kernel {n}"),)) for n, cell in enumerate(one.cells)
    ))
    for one in RUN.results[:1]
)  # fmt: skip


@pytest.fixture
def results(tmp_path):
    """Three labels on one accelerator and one without any."""
    runs = [("nvidia-h200", run) for run in THREE] + [("cpu", run_of("bare", *measured(devices=0)))]
    for accelerator, run in runs:
        write_run(create_run_folder(tmp_path, accelerator, run.label, run.started), run)
    return tmp_path


@pytest.fixture
def shown(capsys):
    """The command in this process: its code, and what it printed."""

    def run(folder, form=TERMINAL, **options):
        code = show(run=folder, form=formats()[form], **options)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def labels(text):
    return [line.split()[0] for line in text.splitlines() if "±" in line and line[0].isalpha()]


def test_a_folder_of_runs_is_a_row_for_each_label(results):
    done = linkgauge("show", results / "nvidia-h200")
    assert (done.returncode, done.stderr) == (0, "")
    first = done.stdout.splitlines()[0]
    assert first == "nvidia-h200: 3 configurations against host"
    assert labels(done.stdout) == ["host", "pinned", "unpinned"] * 2
    assert "hypervisor" in done.stdout


def test_the_folder_above_has_a_table_for_each_accelerator(results, shown):
    code, out, _ = shown(results)
    titles = [line.split(":")[0] for line in out.splitlines() if "configuration" in line]
    assert (code, titles) == (0, ["cpu", "nvidia-h200"])


def test_the_folder_of_a_label_compares_its_runs_with_nothing(results, shown):
    _, out, _ = shown(results / "nvidia-h200" / "pinned")
    assert out.splitlines()[0] == "nvidia-h200: 1 configuration"


def test_another_label_can_be_the_one_that_others_are_compared_with(results, shown):
    _, out, _ = shown(results / "nvidia-h200", against="unpinned")
    assert labels(out)[0] == "unpinned"
    with pytest.raises(InputError, match="no run is labelled 'no': there are pinned, unpinned"):
        shown(results / "nvidia-h200", against="no")


def test_of_several_accelerators_those_without_that_label_are_left_out(results, shown):
    _, out, _ = shown(results, against="unpinned")
    assert "cpu:" not in out
    with pytest.raises(InputError, match="is labelled 'no'"):
        shown(results, against="no")


def test_documents_have_stdout_for_themselves(results, shown):
    document = json.loads(shown(results, "json")[1])
    assert document["schema"] == "linkgauge.comparison/1"
    assert [one["accelerator"] for one in document["comparisons"]] == ["cpu", "nvidia-h200"]
    rows = list(csv.DictReader(io.StringIO(shown(results, "csv")[1])))
    assert {row["label"] for row in rows} == {"bare", "host", "pinned", "unpinned"}


def test_a_run_that_cannot_be_read_is_left_out_and_said(results, shown):
    (broken,) = results.glob("cpu/bare/*/run.json")
    broken.write_text("{")
    code, out, err = shown(results)
    assert code == 0
    assert f"left out: {broken}" in err
    assert "cpu:" not in out


@pytest.fixture
def profiled(results):
    """One of the runs, as if it had been measured under a profiler."""
    (path,) = results.glob("nvidia-h200/pinned/*")
    run = read_run(path)
    noted = [
        replace(one, cells=tuple(replace(cell, notes=(Profiled("nsys"),)) for cell in one.cells))
        for one in run.results
    ]
    write_run(path, replace(run, results=tuple(noted)))
    return path


def test_a_run_under_a_profiler_is_compared_with_nothing(results, profiled, shown):
    _, out, err = shown(results / "nvidia-h200")
    assert labels(out) == ["host", "unpinned"] * 2
    assert err == f"left out: {profiled} was measured under a profiler\n"


def test_a_run_under_a_profiler_is_held_against_no_limits(profiled, shown, tmp_path):
    limits = tmp_path / "limits.yml"
    limits.write_text("limits: []\n")
    with pytest.raises(InputError, match="under a profiler, so its figures are not judged"):
        shown(profiled, limits=limits)


def test_runs_that_measured_nothing_of_it_compare_to_nothing(tmp_path, shown):
    for label in ("a", "b"):
        write_run(create_run_folder(tmp_path, "cpu", label, "2026"), run_of(label))
    code, _, err = shown(tmp_path)
    assert code == 4
    assert "linkgauge run --profile vm --label NAME" in err


def test_what_a_label_says_is_text_and_neither_markup_nor_obeyed(tmp_path, shown):
    run = msgspec.structs.replace(run_of("[red]x\x1b[0m", *measured()), id="1")
    write_run(create_run_folder(tmp_path, "cpu", run.label, "2026"), run)
    assert "[red]x\ufffd[0m" in shown(tmp_path)[1]


def test_a_folder_without_runs_and_options_of_one_run_are_refused(tmp_path, results, shown):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match="no runs in"):
        shown(tmp_path / "empty")
    with pytest.raises(InputError, match="--limits and --utilization take one run"):
        shown(results, utilization=True)
    (run,) = results.glob("cpu/bare/*")
    with pytest.raises(InputError, match="--against takes a folder of runs"):
        shown(run, against="host")


@pytest.fixture
def kept(tmp_path, monkeypatch):
    """Runs of two labels, one of them twice in a second, and the folder above them."""
    monkeypatch.chdir(tmp_path)
    for accelerator, label, started in (
        ("cpu", "bare", "20261121T201500Z"),
        ("nvidia-h200", "pinned", "20261121T201501Z"),
        ("cpu", "pinned", "20261121T201502Z"),
        *[("cpu", "bare", "20261121T201503Z")] * 11,
    ):
        write_run(
            create_run_folder(Path("results"), accelerator, label, started), here(run_of(label))
        )
    return Path("results")


def test_without_an_argument_it_is_the_latest_run(kept, shown):
    assert latest_run(kept) == kept / "cpu/bare/20261121T201503Z-11"
    code, out, _ = shown(None)
    assert code == 4
    assert out.splitlines()[-1] == "results: results/cpu/bare/20261121T201503Z-11/run.json"


def test_of_a_label_it_is_its_latest_run_on_any_accelerator(kept):
    assert find_run(Path("pinned")) == kept / "cpu/pinned/20261121T201502Z"


def test_a_path_is_itself(kept):
    for path in (kept, kept / "cpu/pinned", kept / "cpu/pinned/20261121T201502Z/run.json"):
        assert find_run(path) == path


def test_what_there_is_not_is_said_with_the_remedy_and_refused(kept, shown, tmp_path, monkeypatch):
    with pytest.raises(
        InputError, match=r"'no' is not a file, and not a label .*: there are bare, p"
    ):
        shown(Path("no"))
    with pytest.raises(InputError, match="cannot read no/such"):
        shown(Path("no/such"))
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    for asked in (None, Path("no")):
        with pytest.raises(InputError, match="no runs in results: measure one with"):
            shown(asked)
    done = linkgauge("show")
    assert (done.returncode, done.stdout, len(done.stderr.splitlines())) == (2, "", 1)


def test_it_shows_every_note_to_who_asks(kept, shown):
    noted = replace(read_run(latest_run(kept)), results=RESULTS)
    write_run(latest_run(kept), noted)
    assert "like it" in shown(None)[1]
    assert "kernel 1" in shown(None, verbose=True)[1]


def test_a_run_is_shown_as_tables_or_as_matrices(shown, tmp_path):
    (run,) = (run_of("bare", *measured(devices=0)),)
    write_run(tmp_path, run)
    name = next(one.benchmark for one in run.results if any(cell.summary for cell in one.cells))
    _, tables, _ = shown(tmp_path)
    _, matrices, _ = shown(tmp_path, matrix=True, whole=True)
    assert name in tables
    assert "SUM " not in tables
    assert f"SUM {name}" in matrices
