"""What the history holds, in SQLite and in PostgreSQL: versions, writers, accidents, damage."""

import gzip
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import astuple, replace
from sqlalchemy import text as sql

from command_kit import called
from history_kit import BENCHMARK, counted, database, run_at
from linkgauge.history.address import address
from linkgauge.history.reading import (
    Filter,
    benchmarks_of,
    earlier_medians,
    earlier_runs,
    figures_of,
    histories_of,
    latest_runs,
    runs_of,
)
from linkgauge.history.store import StoreError, is_remote, opened
from linkgauge.history.writing import add, remove
from linkgauge.model.documents.result import Expected
from linkgauge.model.errors import InputError
from linkgauge.model.notes import Profiled
from linkgauge.model.settings import EngineSettings, Settings, Simulation

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
    for number in range(int(sys.argv[4])):
        with opened(url) as store:
            add(store, run_at(number, label=label, cells=cells), Path("/kept"))
        print(number, flush=True)
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


@pytest.mark.parametrize("path", sorted((TESTS / "data/histories").iterdir()), ids=lambda p: p.name)
def test_a_store_of_earlier_code_is_read_as_one_that_is_made_now(tmp_path, path):
    """The files are of the commits in their names, the first and the last whose tables alembic
    made: four runs of this kit, and one of a simulated machine by `linkgauge run`."""
    (tmp_path / "old.db").write_bytes(gzip.decompress(path.read_bytes()))
    faulty = Simulation("box", "name: box", ("slow sim:0 rate=50%",), 2)
    plain = Settings(sizes=(64,))
    other = replace(plain, engines=EngineSettings(streams=4), simulation=faulty)
    kept = [run_at(n, driver=f"57{n}", settings=other if n == 3 else plain) for n in range(4)]

    def read(store):
        which = Filter(label="nightly")
        earlier = [earlier_runs(store, run_at(9, settings=one)) for one in (plain, other)]
        assert [len(runs) for runs in earlier] == [3, 1]
        trend = histories_of(store, BENCHMARK, (), which)
        return runs_of(store, which), trend, list(figures_of(store, [1, 2, 3, 4])), earlier

    old, new = (opened(address(str(tmp_path / name))) for name in ("old.db", "new.db"))
    with old as store, new as now:
        assert [add(store, run, Path("/elsewhere")) for run in kept] == ["known"] * 4
        assert [add(now, run, Path("/kept", run.id)) for run in kept] == ["added"] * 4
        assert read(store) == read(now)
        (trend,) = histories_of(store, "device_to_device_memcpy_read_ce", (), Filter())
        found = [one.points[0].figure for one in trend.series]
        assert found == [87909735551.01492, 88634645258.77994]
        (one,) = run_at(4, cells=1).results
        cells = [replace(cell, expected=Expected(60e9, 55e9)) for cell in one.cells]
        later = run_at(4, label="later", results=(replace(one, cells=tuple(cells)),))
        assert add(store, later, None) == "added"
        (found,) = runs_of(store, Filter(label="later"))
        assert [one.expected for _, one in figures_of(store, [found.number])] == [55e9]


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


def there(store):
    """The runs that are in the history, and how many figures."""
    return sorted(run.id for run in runs_of(store, Filter())), counted(store, "figures")


FILLS_UP = """
CREATE FUNCTION fills_up() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT count(*) FROM figures WHERE run_id = NEW.run_id) >= 20 THEN
        RAISE 'could not extend file: No space left on device' USING ERRCODE = 'disk_full';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER fills_up BEFORE INSERT ON figures FOR EACH ROW EXECUTE FUNCTION fills_up();
"""


def test_an_error_of_a_full_disk_in_the_middle_of_a_run_takes_back_all_of_it(server):
    """The same error as the server's own, on any machine: it comes with the 21st of 30 figures."""
    with opened(address(database(server))) as store:
        add(store, run_at(1), None)
        with store.writing() as connection:
            connection.exec_driver_sql(FILLS_UP)
        with pytest.raises(StoreError, match=r"No space left on device$"):
            add(store, run_at(2, cells=30), None)
        assert there(store) == (["r001"], 2)
        with store.writing() as connection:
            connection.exec_driver_sql("DROP TRIGGER fills_up ON figures")
        assert add(store, run_at(2, cells=30), None) == "added"
        assert there(store) == (["r001", "r002"], 32)


def test_latest_runs_are_the_last_of_each_label(url):
    with opened(url) as store:
        for number in range(4):
            for label in ("nightly", "watch")[: 1 + number % 2]:
                add(store, run_at(number, label=label), None)
        found = [(run.id, run.label) for run in latest_runs(store, Filter(), 1)]
        assert sorted(found) == [("r003", "nightly"), ("r003", "watch")]
        two = [run.id for run in latest_runs(store, Filter(label="nightly"), 2)]
        assert two == ["r003", "r002"]
        assert latest_runs(store, Filter(host="elsewhere"), 2) == ()


def test_figures_have_their_cell_and_unit(url):
    with opened(url) as store:
        add(store, run_at(0, 50e9, cells=3), None)
        (run,) = runs_of(store, Filter())
        found = list(figures_of(store, [run.number]))
        assert {number for number, *_ in found} == {run.number}
        assert sorted((one.benchmark, one.column, one.unit) for _, one in found) == [
            (BENCHMARK, column, "B/s") for column in "012"
        ]
        assert {(one.status, round(one.figure / 1e9)) for _, one in found} == {("pass", 50)}
        assert list(figures_of(store, [])) == []


@pytest.fixture
def path(tmp_path):
    """A file of SQLite: reading it ends in one line, whatever it holds."""
    path = tmp_path / "history.db"
    with opened(address(str(path))) as store:
        for number in range(3):
            add(store, run_at(number), None)
    return path


def change(path, statement):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(statement)


def read(path):
    with opened(address(str(path))) as store:
        runs_of(store, Filter())
        histories_of(store, BENCHMARK, (), Filter())
        earlier_runs(store, run_at(5))
        earlier_medians(store, run_at(5), 9, lambda state, other: True)


def test_a_message_that_is_no_text_is_one_line(path):
    change(path, "UPDATE sqlite_master SET sql = '', name = CAST(x'ff' AS TEXT) WHERE name='runs'")
    done = called("history", "--history", path)
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert f"the history {path} is not usable: it is damaged: 'utf-8' codec" in line


@pytest.mark.parametrize(
    "change_one",
    [
        "runs SET status = 99", "runs SET status = 'x'", "runs SET started = 1 << 62",
        "runs SET label = x'00'", "runs SET settings = '{'", "figures SET verdict = -1",
        "figures SET figure = 'fast'", "figures SET low = x'ff'", "cells SET transfers = x'ff'",
        "sheets SET better = 'sideways'", "sheets SET size = 'large'", "facts SET value = x'00'",
        "setups SET document = '[1'",
    ],
)  # fmt: skip
def test_a_value_of_another_kind_is_one_line(path, change_one):
    change(path, f"UPDATE {change_one}")
    with pytest.raises(StoreError, match=f"the history {path} is not usable: it is damaged: "):
        read(path)


def test_the_verdict_of_a_run_is_kept_and_a_history_of_an_earlier_version_gets_its_column(url):
    with opened(url) as store:
        add(store, run_at(1), None, "warn")
        with store.writing() as connection:
            connection.exec_driver_sql("ALTER TABLE runs DROP COLUMN verdict")
        assert [run.verdict for run in runs_of(store, Filter())] == [None]
        add(store, run_at(2), None, "not judged")
        add(store, run_at(3), None)
        assert [run.verdict for run in runs_of(store, Filter())] == [None, "not judged", None]
