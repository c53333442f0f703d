"""What the history holds, in SQLite and in PostgreSQL: versions, writers, accidents."""

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from msgspec.structs import astuple, replace
from sqlalchemy import text as sql

from history_kit import BENCHMARK, counted, run_at
from linkgauge.history.address import address
from linkgauge.history.reading import Filter, benchmarks_of, histories_of, runs_of
from linkgauge.history.store import StoreError, is_remote, opened
from linkgauge.history.writing import add, remove
from linkgauge.model.errors import InputError
from linkgauge.model.notes import Profiled
from linkgauge.model.settings import EngineSettings, Settings

FULL_CAMPAIGN = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
TESTS = Path(__file__).parents[1]


def python(code, *arguments):
    """A process of its own, which knows the tests' kits."""
    paths = os.pathsep.join([str(TESTS), str(TESTS.parent / "src")])
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *arguments],
        env={**os.environ, "PYTHONPATH": paths}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True,
    )  # fmt: skip


WRITER = """
    import sys
    from pathlib import Path
    from history_kit import run_at
    from linkgauge.history.address import address
    from linkgauge.history.store import opened
    from linkgauge.history.writing import add
    url, label, cells = address(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    number = 0
    while number < int(sys.argv[4]):
        with opened(url) as store:
            add(store, run_at(number, label=label, cells=cells), Path("/kept"))
        print(number, flush=True)
        number += 1
"""


def test_a_run_is_found_as_it_was_added(url):
    run = run_at(3)
    with opened(url) as store:
        assert add(store, run, Path("/kept/r003")) == "added"
        (found,) = runs_of(store, Filter())
        assert (found.id, found.label, found.host, found.path) == (
            run.id, "nightly", "box", "/kept/r003"
        )  # fmt: skip
        assert (found.started, found.finished) == (run.started, run.finished)
        assert (found.cells, found.passed, found.low, found.status) == (2, 2, 0, "pass")
        assert (found.accelerators, found.benchmarks) == ("NVIDIA H200", (BENCHMARK,))
        (history,) = histories_of(store, BENCHMARK, (), Filter())
        first, second = history.series
        assert (first.cell.column, second.cell.column) == ("0", "1")
        summary = run.results[0].cells[0].summary
        assert astuple(first.points[0])[1:] == (summary.median, *summary.ci95)
        state = history.states[found.state]
        assert (state["driver"], state["BIOS"], state["kernel"]) == ("570", "1.2", "6.1")


def test_a_run_is_added_once_and_renewed_once_it_went_on(url):
    whole = run_at(1, cells=3)
    cut_off = replace(whole, finished=None, results=run_at(1, cells=1).results)
    with opened(url) as store:
        assert add(store, cut_off, None) == "added"
        assert add(store, cut_off, None) == "known"
        assert counted(store, "figures") == 1
        assert add(store, whole, None) == "renewed"
        assert add(store, whole, None) == "known"
        assert (counted(store, "runs"), counted(store, "figures")) == (1, 3)


def test_runs_are_filtered(url):
    with opened(url) as store:
        add(store, run_at(0), None)
        add(store, run_at(1, label="other"), None)
        add(store, run_at(2, results=()), None)

        def ids(**which):
            return [run.id for run in runs_of(store, Filter(**which))]

        assert ids() == ["r002", "r001", "r000"]
        assert ids(last=1) == ["r002"]
        assert ids(label="other") == ["r001"]
        assert ids(benchmarks=(BENCHMARK,)) == ["r001", "r000"]
        assert ids(accelerator="h200") == ids(accelerator="nvidia-h200") == ids()
        assert ids(accelerator="mi300") == ids(host="other") == []
        moment = 1767355200_000000  # 2026-01-02T12:00Z
        assert (ids(since=moment), ids(until=moment)) == (["r002", "r001"], ["r000"])
        assert benchmarks_of(store) == (BENCHMARK,)


def test_a_trend_mixes_no_machines_and_no_settings(url):
    other = Settings(sizes=(64,), engines=EngineSettings(streams=4))
    with opened(url) as store:
        add(store, run_at(0), None)
        add(store, run_at(1, simulated=True), None)
        add(store, run_at(2, settings=other), None)
        add(store, run_at(3, settings=Settings(sizes=(64,), precision=0.05, profile="q")), None)
        found = histories_of(store, BENCHMARK, (), Filter())
        assert [[run.id for run in one.runs] for one in found] == [
            ["r000", "r003"],
            ["r001"],
            ["r002"],
        ]
        assert [one.simulated for one in found] == [False, True, False]
        assert [one.settings for one in found] == [{}, {}, {"streams": "4"}]


def test_interrupted_and_profiled_runs_are_in_no_trend(url):
    profiled = run_at(2)
    (result,) = profiled.results
    noted = tuple(replace(cell, notes=(Profiled("nsys"),)) for cell in result.cells)
    with opened(url) as store:
        add(store, run_at(1, finished=None), None)
        add(store, replace(profiled, results=(replace(result, cells=noted),)), None)
        assert [run.profiled for run in runs_of(store, Filter())] == [True, False]
        assert histories_of(store, BENCHMARK, (), Filter()) == ()


def test_what_no_run_refers_to_goes_with_the_last_one(url):
    with opened(url) as store:
        add(store, run_at(0), None)
        add(store, run_at(1, driver="575", cells=3), None)
        latest, first = runs_of(store, Filter())
        assert [counted(store, table) for table in ("runs", "cells", "states")] == [2, 3, 2]
        remove(store, [latest.number])
        assert [counted(store, table) for table in ("runs", "cells", "states")] == [1, 2, 1]
        assert counted(store, "figures") == 2
        assert runs_of(store, Filter()) == (first,)


def test_two_writers_at_once_lose_nothing(text, url):
    writers = [python(WRITER, text, label, "10", "6") for label in ("a", "b")]
    for writer in writers:
        _, err = writer.communicate(timeout=300)
        assert (writer.returncode, err) == (0, "")
    with opened(url) as store:
        assert len(runs_of(store, Filter(label="a"))) == len(runs_of(store, Filter(label="b"))) == 6
        assert (counted(store, "figures"), counted(store, "cells")) == (12 * 10, 10)


def test_a_kill_in_the_middle_of_a_write_loses_nothing(text, url):
    """Each run that was added is there with all of its cells, and the next one can be added."""
    with opened(url) as store:
        add(store, run_at(0, label="before", cells=500), None)
    for _ in range(2 if FULL_CAMPAIGN else 1):
        writer = python(WRITER, text, "killed", "500", "1000")
        told = [writer.stdout.readline() for _ in range(3)]
        writer.send_signal(signal.SIGKILL)
        told += writer.stdout.readlines()
        writer.communicate(timeout=60)
        assert writer.returncode == -signal.SIGKILL
        with opened(url) as store:
            found = runs_of(store, Filter(label="killed"))
            assert len(found) >= len(told)
            assert counted(store, "figures") == (len(found) + 1) * 500
            assert add(store, run_at(0, label="after", cells=500), None) in ("added", "known")
            remove(store, [run.number for run in runs_of(store, Filter()) if run.label != "before"])


FULL = """
    import resource, sys
    from pathlib import Path
    from history_kit import run_at
    from linkgauge.history.keeping import remember
    size = Path(sys.argv[1]).stat().st_size + 20_000
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    remember(run_at(2, cells=1000), Path("results/x y"))
    remember(run_at(3, cells=1000), Path("results/later"))
"""


def test_a_full_disk_costs_one_line_and_nothing_that_was_there(tmp_path, monkeypatch):
    """The limit of a file's size stands for the end of the disk."""
    path = tmp_path / "history.db"
    monkeypatch.setenv("LINKGAUGE_HISTORY", str(path))
    with opened(address()) as store:
        add(store, run_at(1), None)
    full = python(FULL, str(path))
    out, err = full.communicate(timeout=300)
    assert (full.returncode, out) == (0, "")
    (line,) = err.splitlines()
    assert line.startswith(f"warning: this run is not in the history: the history {path} is not")
    assert line.endswith("; linkgauge history import 'results/x y' adds it later")
    with opened(address()) as store:
        assert [run.id for run in runs_of(store, Filter())] == ["r001"]
        assert add(store, run_at(2, cells=1000), None) == "added"


def test_a_store_of_a_later_version_is_refused_in_one_line_and_left_as_it_is(url):
    with opened(url) as store:
        add(store, run_at(1), None)
        with store.writing() as connection:
            connection.execute(sql("UPDATE linkgauge_version SET version_num = '99'"))
    later = "is of a later linkgauge (version 99, not 1): use that one"
    with pytest.raises(InputError) as refused, opened(url):
        pass
    assert str(refused.value).endswith(later)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_a_server_that_is_not_there_is_one_line_without_the_password(server):
    for asked in (
        f"postgresql://linkgauge:hidden@/nothing?host={server}",
        f"postgresql://linkgauge@/nothing?host={server}&password=hidden",
        "postgresql://linkgauge:hidden@127.0.0.1:1/x",
    ):
        with pytest.raises(StoreError) as problem, opened(address(asked)):
            pass
        message = str(problem.value)
        assert "is not usable: connection failed" in message
        assert "hidden" not in message
        assert "\n" not in message


def test_a_disk_that_other_machines_share_has_no_write_ahead_log(tmp_path):
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nserver:/home {tmp_path}/home nfs4 rw 0 0\n")
    assert is_remote(tmp_path / "home/me/history.db", mounts)
    assert not is_remote(tmp_path / "other/history.db", mounts)
    assert not is_remote(tmp_path, tmp_path / "missing")
