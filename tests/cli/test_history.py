"""`linkgauge history`, and that every run which is kept goes there."""

import json

import pytest
from msgspec.structs import replace

from command_kit import called
from history_kit import BENCHMARK, NOISE, run_at
from linkgauge.report.files import write_run

LOSS = [50e9 if n < 10 else 47.5e9 for n in range(20)]
SIMULATED = ("run", BENCHMARK, "--machine", "riscv-2gpu", "--profile", "quick", "--samples", "2")


def keep(folder, run):
    place = folder / "nvidia-h200" / run.label / run.started[:10].replace("-", "")
    place.mkdir(parents=True)
    write_run(place, run)
    return place


@pytest.fixture
def empty(tmp_path, monkeypatch):
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(tmp_path / "history.db"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def results(empty):
    """Twenty runs; with the eleventh the driver changes and 5 % is lost."""
    folder = empty / "results"
    for number, figure in enumerate(LOSS):
        keep(folder, run_at(number, figure, driver="575" if number >= 10 else "570"))
    return folder


def shows(*words):
    done = called("history", *words, COLUMNS=200)
    return done.returncode, done.stdout, done.stderr


def test_import_brings_in_what_was_kept_and_only_once(results):
    code, out, err = shows("import", "results")
    assert (code, out, err) == (0, "imported: 20 of 20 runs, 0 were there already\n", "")
    assert shows("import", "results")[1] == "imported: 0 of 20 runs, 20 were there already\n"


def test_import_goes_on_where_a_run_cannot_be_read_or_began_at_no_time(results):
    first, second, *_ = sorted(results.rglob("run.json"))
    first.write_text(first.read_text()[:1000])
    second.write_text(second.read_text().replace(run_at(1).started, "yesterday"))
    code, out, err = shows("import", "results")
    assert (code, out) == (3, "imported: 18 of 20 runs, 0 were there already, 2 left out\n")
    assert f"left out: results/{first.relative_to(results)} is damaged" in err
    assert "left out: run r001 began at no known time: 'yesterday'\n" in err


def changes(folder, figures, *words, cells=2, **of):
    """Changes that the trend tells of runs with these figures, and of what `of` makes of each
    run."""
    for number, figure in enumerate(figures):
        run = run_at(number, figure, cells=cells)
        keep(folder / "results", of.get("change", lambda run, _: run)(run, number))
    shows("import", "results")
    (trend,) = json.loads(shows("trend", BENCHMARK, "--json", *words)[1])["trends"]
    return trend["changes"]


def relabelled(run, number):
    return replace(run, label="before" if number < 10 else "after")


def updated(run, number):
    return run_at(number, LOSS[number], driver="575" if number >= 10 else "570")


def booted(run, number):
    inventory = run.machine.inventory
    line = "root=/dev/sda ro iommu=pt" if number < 10 else "root=/dev/sda ro iommu=on quiet"
    host = replace(inventory.host, command_line=line)
    return replace(run, machine=replace(run.machine, inventory=replace(inventory, host=host)))


@pytest.mark.parametrize(
    ("change", "facts"),
    [
        (lambda run, _: run, []),
        (relabelled, [{"name": "label", "values": ["before", "after"]}]),
        (updated, [{"name": "driver", "values": ["570", "575"]}]),
        # Of the kernel's options those are named that changed.
        (booted, [{"name": "kernel options", "values": ["iommu=pt", "iommu=on quiet"]}]),
    ],
)
def test_a_change_names_what_changed_in_the_machine(change, facts, empty):
    (found,) = changes(empty, LOSS, change=change)
    assert (found["direction"], found["ratio"]) == ("worse", pytest.approx(0.95, abs=0.005))
    assert found["facts"] == facts
    assert len(found["cells"]) == 2, "cells that change together are one change"


def test_small_changes_are_left_out_unless_they_are_asked_for(empty):
    small = [50e9 / (1 + NOISE[n % 10]) * (1 + NOISE[n % 10] / 20) * (1 if n < 10 else 0.996)
             for n in range(20)]  # fmt: skip
    assert changes(empty, small) == []
    document = json.loads(shows("trend", BENCHMARK, "--json", "--least", "0.1%")[1])
    assert len(document["trends"][0]["changes"]) == 1


def test_simulated_runs_are_marked_and_apart(results):
    keep(results, run_at(30, simulated=True))
    shows("import", "results")
    assert "box SIMULATED" in shows("list", "--last", "1")[1]
    *real, simulated, found = shows("trend", BENCHMARK)[1].split("\n\n")
    assert ("SIMULATED" in "".join(real), "SIMULATED" in simulated) == (False, True)
    assert found == "no change can be found in fewer than 6 runs\n"


@pytest.mark.parametrize("action", [("list",), ("prune", "--keep", "15")])
def test_a_benchmark_that_no_run_measured_is_refused(action, results):
    shows("import", "results")
    assert shows(*action, "--benchmark", BENCHMARK)[0] == 0
    code, out, err = shows(*action, "--benchmark", BENCHMARK[:-1])
    assert (code, out) == (2, "")
    assert err.endswith(f"did you mean {BENCHMARK!r}?\n")


def test_prune_names_what_it_would_delete_and_deletes_it_only_when_told(results):
    shows("import", "results")
    code, out, err = shows("prune", "--keep", "15")
    assert (code, len(out.splitlines())) == (0, 1 + 5)
    assert err == "would prune these 5 of 20 runs; to do it: add --yes\n"
    assert len(shows()[1].splitlines()) == 21
    done = shows("prune", "--keep", "15", "--yes")[1]
    assert done == "pruned: 5 of 20 runs; their folders are as they were\n"
    assert len(shows()[1].splitlines()) == 16
    assert "nothing to prune: all 15 runs" in shows("prune", "--keep", "15", "--yes")[1]
    assert len(list(results.rglob("run.json"))) == 20
    assert "pruned: 15 of 15" in shows("prune", "--keep", "1h", "--yes")[1]


def test_every_run_that_is_kept_goes_to_the_users_own_history(tmp_path):
    environment = {"LINKGAUGE_HISTORY": "", "XDG_DATA_HOME": tmp_path / "data"}
    copy = ("copy", "host:0 -> sim:0 by ce", "--machine", "riscv-2gpu", "--samples", "2")
    out = ("--out", tmp_path / "results")
    for command in ((*SIMULATED, *out), (*copy, *out), copy):  # the last is kept nowhere
        done = called(*command, **environment)
        assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "data/linkgauge/history.db").exists()
    kept = json.loads(called("history", "--json", **environment).stdout)["runs"]
    assert [(run["label"], run["simulated"]) for run in kept] == [("default", True), ("copy", True)]
    assert kept[0]["path"] == str(next((tmp_path / "results").glob("*/default/*")))


def test_a_history_that_cannot_be_written_costs_a_line_and_not_the_run(tmp_path):
    (tmp_path / "file").touch()
    history = tmp_path / "file/history.db"
    done = called(*SIMULATED, "--out", tmp_path / "out", LINKGAUGE_HISTORY=history)
    assert done.returncode == 0
    (line,) = done.stderr.splitlines()
    assert line.startswith("warning: this run is not in the history: the history")
    assert next((tmp_path / "out").rglob("run.json"))


@pytest.mark.parametrize("named", ["postgres://me:hidden@/h?host=/none&password=hidden"])
def test_a_password_of_the_history_is_never_shown(named, tmp_path):
    done = called("history", LINKGAUGE_HISTORY=named)
    assert done.returncode != 0
    assert "hidden" not in done.stdout + done.stderr
