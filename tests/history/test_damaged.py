"""Whatever a damaged file of SQLite holds, and whatever its name, reading it ends in one line that
names it."""

import sqlite3
from contextlib import closing

import pytest

from command_kit import called
from history_kit import BENCHMARK, run_at
from linkgauge.history.address import address
from linkgauge.history.reading import Filter, earlier_runs, histories_of, runs_of
from linkgauge.history.store import StoreError, opened
from linkgauge.history.writing import add


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "history.db"
    with opened(address(str(path))) as store:
        for number in range(3):
            add(store, run_at(number), None)
    return path


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA writable_schema = ON")
        for statement in statements:
            database.execute(statement)


def read(path):
    with opened(address(str(path))) as store:
        runs_of(store, Filter())
        histories_of(store, BENCHMARK, (), Filter())
        earlier_runs(store, run_at(5))


def test_a_message_that_is_no_text_is_one_line(path):
    change(
        path,
        "UPDATE sqlite_master SET sql = 'none', name = CAST(x'ff' AS TEXT) WHERE name = 'runs'",
    )
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
