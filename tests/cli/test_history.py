"""`linkgauge history`, and that every run which is kept goes there."""

import csv
import io
import json
import os
from statistics import median

import pytest

from cli.test_cli import linkgauge
from history_kit import BENCHMARK, run_at
from linkgauge.cli.history import history
from linkgauge.engine.folder import create_run_folder
from linkgauge.history.address import address, default_file, shown
from linkgauge.model.errors import InputError
from linkgauge.report.files import write_run
from linkgauge.report.formats import TERMINAL, formats

LOSS = [50e9 if n < 10 else 47.5e9 for n in range(20)]
SIMULATED = ("run", BENCHMARK, "--machine", "riscv-2gpu", "--profile", "quick", "--samples", "2")


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Twenty runs; with the eleventh the driver changes and 5 % is lost."""
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "history.db"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "results"
    for number, figure in enumerate(LOSS):
        run = run_at(number, figure, driver="575" if number >= 10 else "570")
        write_run(create_run_folder(folder, "nvidia-h200", run.label, run.started), run)
    return folder


@pytest.fixture
def shows(capsys):
    """The command in this process: its code, and what it printed."""

    def run(*what, form=TERMINAL, **options):
        code = history(what=list(what), form=formats()[form], **options)
        out, err = capsys.readouterr()
        return code, out, err

    return run


def test_import_brings_in_what_was_kept_and_only_once(results, shows):
    code, out, err = shows("import", "results")
    assert (code, out, err) == (0, "imported: 20 of 20 runs, 0 were there already\n", "")
    assert shows("import", "results")[1] == "imported: 0 of 20 runs, 20 were there already\n"
    one = next(results.glob("*/*/*"))
    assert shows("import", str(one))[1] == "imported: 0 of 1 runs, 1 were there already\n"


def test_import_goes_on_where_a_run_cannot_be_read(results, shows):
    broken = next(results.rglob("run.json"))
    broken.write_text(broken.read_text()[:1000])
    code, out, err = shows("import", "results")
    assert (code, out) == (3, "imported: 19 of 20 runs, 0 were there already, 1 left out\n")
    assert err.startswith(f"left out: results/{broken.relative_to(results)} is damaged")


def test_a_run_that_began_at_no_time_is_left_out(results, shows):
    first = min(results.rglob("run.json"))
    first.write_text(first.read_text().replace(run_at(0).started, "yesterday"))
    code, out, err = shows("import", "results")
    assert (code, err) == (3, "left out: run r000 began at no known time: 'yesterday'\n")
    assert "19 of 20" in out


def test_the_list_has_a_line_for_each_run_the_latest_last(results, shows):
    shows("import", "results")
    _, out, _ = shows()
    head, *lines = out.splitlines()
    assert head.split()[:3] == ["started", "(UTC)", "host"]
    assert len(lines) == 20
    assert lines[-1].startswith("2026-01-20 12:00  box   NVIDIA H200   nightly  standard  2 of 2")
    assert lines[-1].endswith("  results/nvidia-h200/nightly/20260120T120000Z")
    _, out, _ = shows("list", last=2, form="json")
    assert [run["id"] for run in json.loads(out)["runs"]] == ["r018", "r019"]
    _, out, _ = shows("list", since="2026-01-19", form="csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["id"] for row in rows] == ["r018", "r019"]
    assert {row["benchmarks"] for row in rows} == {BENCHMARK}
    assert shows("list", label="other")[1] == "no such run is in the history\n"


def test_the_list_has_the_latest_20_runs_unless_more_are_asked_for(results, shows):
    for number in range(20, 23):
        run = run_at(number)
        write_run(create_run_folder(results, "nvidia-h200", run.label, run.started), run)
    shows("import", "results")
    _, out, _ = shows()
    _, *lines, note = out.splitlines()
    assert len(lines) == 20
    assert lines[0].startswith("2026-01-04")
    assert note == "the latest 20 of 23 runs: --all shows all, --last N the latest N"
    for options in ({"whole": True}, {"last": 23}):
        assert len(shows("list", **options)[1].splitlines()) == 24
    assert len(shows("list", last=3)[1].splitlines()) == 4
    assert len(json.loads(shows("list", form="json")[1])["runs"]) == 23
    with pytest.raises(InputError, match="--all is of history list and trend"):
        shows("prune", keep="1d", whole=True)


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_no_line_of_the_list_is_wider_than_the_terminal(results, shows, monkeypatch, columns):
    shows("import", "results")
    monkeypatch.setenv("COLUMNS", str(columns))
    (results / "elsewhere").mkdir()
    monkeypatch.chdir(results / "elsewhere")  # where paths are absolute
    _, out, _ = shows()
    assert max(map(len, out.splitlines())) <= columns
    assert str(results) in "".join(line.strip() for line in out.splitlines())
    assert "2 of 2 cells passed" in out


def test_a_trend_shows_where_figures_changed_and_what_changed_in_the_machine(results, shows):
    shows("import", "results")
    code, out, _ = shows("trend", BENCHMARK)
    title, head, first, second, change, when, fact = out.splitlines()
    assert code == 0
    assert title == "box, NVIDIA H200: 20 runs from 2026-01-01 to 2026-01-20"
    assert head.split() == ["GB/s", "first", "latest", "all", "runs"]
    assert first.split()[:4] == ["(0,", "0)", "50.01", "47.56"]
    assert second.split()[:2] == ["(0,", "1)"]
    assert change.startswith("worse: -5.0%")
    assert change.endswith("in 2 of 2 cells")
    assert when == "  with run r010 (2026-01-11 12:00), after r009 (2026-01-10 12:00)"
    assert fact == "  driver  570 → 575"


def test_a_trend_as_a_document_has_every_point(results, shows):
    shows("import", "results")
    _, out, _ = shows("trend", BENCHMARK, "0,1", form="json")
    (trend,) = json.loads(out)["trends"]
    (series,) = trend["series"]
    assert (series["column"], len(series["points"])) == ("1", 20)
    assert trend["changes"][0]["facts"] == [{"name": "driver", "values": ["570", "575"]}]
    _, out, _ = shows("trend", BENCHMARK, "0,1", form="csv")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["run"] for row in rows if row["change"] == "worse"] == ["r010"]
    assert median(float(row["figure"]) for row in rows[:10]) == pytest.approx(50e9, rel=0.01)


def test_simulated_runs_are_marked_and_apart(results, shows, tmp_path):
    run = run_at(30, simulated=True)
    write_run(create_run_folder(results, "simulated-box", run.label, run.started), run)
    shows("import", "results")
    assert "box SIMULATED" in shows("list", last=1)[1]
    real, simulated = shows("trend", BENCHMARK)[1].split("\n\n")
    assert "SIMULATED" not in real
    assert simulated.splitlines()[0] == (
        "box, NVIDIA H200: 1 run from 2026-02-03 to 2026-02-03  SIMULATED"
    )
    assert simulated.splitlines()[-1] == "no change can be found in fewer than 6 runs"


def test_prune_names_what_it_would_delete_and_deletes_it_only_when_told(results, shows):
    shows("import", "results")
    code, out, err = shows("prune", keep="15")
    assert (code, len(out.splitlines())) == (0, 1 + 5)
    assert err == "would prune these 5 of 20 runs; to do it: add --yes\n"
    assert len(shows()[1].splitlines()) == 21
    done = shows("prune", keep="15", yes=True)[1]
    assert done == "pruned: 5 of 20 runs; their folders are as they were\n"
    assert len(shows()[1].splitlines()) == 16
    assert shows("prune", keep="15", yes=True)[1] == "nothing to prune: all 15 runs are kept\n"
    assert len(list(results.rglob("run.json"))) == 20
    assert "pruned: 15 of 15" in shows("prune", keep="1h", yes=True)[1]


@pytest.mark.parametrize(("what", "options", "why"), [
    (["remove"], {}, "there are list, trend, import, prune"),
    (["trend"], {}, "the trend of what"),
    (["trend", "host_to_device_memcpy"], {}, "did you mean 'host_to_device_memcpy_ce'?"),
    (["trend", BENCHMARK, "0-1"], {}, "give its row and its column"),
    (["trend", BENCHMARK, "7,7"], {}, "no whole run of host_to_device_memcpy_ce at 7,7"),
    (["list", "x"], {}, "takes no 'x'"),
    (["list"], {"since": "yesterday"}, "--since 'yesterday': give 2026-11-01"),
    (["list"], {"last": 0}, "--last 0 is too few"),
    (["list"], {"keep": "3"}, "--keep and --yes are of history prune"),
    (["prune"], {}, "prune needs --keep"),
    (["prune"], {"keep": "all"}, "give a time such as 90d"),
    (["prune"], {"keep": "3", "form": "json"}, "--json is of list and trend"),
    (["import"], {}, "import what"),
    (["import", "nowhere"], {}, "there is no nowhere"),
    (["import", "results"], {"label": "x"}, "give no filter"),
    (["list"], {"history": "mysql://x:hidden@y/z"}, "no history in mysql"),
    (["list"], {"history": "none.db"}, "there is no history yet"),
    (["list"], {"history": "none"}, "the history is turned off"),
])  # fmt: skip
def test_what_makes_no_sense_is_said_in_one_line(results, shows, what, options, why):
    shows("import", "results")
    with pytest.raises(InputError, match=why) as refused:
        shows(*what, **options)
    assert "\n" not in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_the_history_is_in_the_users_data_folder_unless_another_is_named(tmp_path, monkeypatch):
    monkeypatch.delenv("LINKGAUGE_HISTORY")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert default_file() == tmp_path / "linkgauge/history.db"
    assert shown(address()) == str(default_file())
    monkeypatch.setenv("LINKGAUGE_HISTORY", "postgres://me:hidden@db/h?password=hidden&host=/run/x")
    assert shown(address()) == "postgresql://me:***@db/h?host=/run/x"
    assert shown(address("~/h.db")) == os.path.expanduser("~/h.db")  # noqa: PTH111
    assert address("none") is None


def test_every_run_that_is_kept_goes_to_the_history(tmp_path):
    environment = {"LINKGAUGE_HISTORY": str(tmp_path / "history.db")}
    out = tmp_path / "results"
    for command in (
        (*SIMULATED, "--out", out),
        (
            "copy",
            "host:0 -> sim:0 by ce",
            "--machine",
            "riscv-2gpu",
            "--samples",
            "2",
            "--out",
            out,
        ),
        (
            "copy",
            "host:0 -> sim:0 by ce",
            "--machine",
            "riscv-2gpu",
            "--samples",
            "2",
        ),  # kept nowhere
    ):
        done = linkgauge(*command, **environment)
        assert (done.returncode, done.stderr) == (0, "")
    done = linkgauge("history", "--json", **environment)
    kept = json.loads(done.stdout)["runs"]
    assert [run["label"] for run in kept] == ["default", "copy"]
    assert [run["simulated"] for run in kept] == [True, True]
    assert kept[0]["path"] == str(next(out.glob("*/default/*")))
    assert kept[0]["benchmarks"] == [BENCHMARK]


def test_a_history_that_cannot_be_written_costs_a_line_and_not_the_run(tmp_path):
    (tmp_path / "file").touch()
    done = linkgauge(
        *SIMULATED, "--out", tmp_path / "out", LINKGAUGE_HISTORY=f"{tmp_path}/file/history.db"
    )
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: this run is not in the history: the history")
    assert next((tmp_path / "out").rglob("run.json"))
