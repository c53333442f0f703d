"""A PostgreSQL whose disk is full: one line, and nothing lost of what was there."""

import os
import shutil
import subprocess
from itertools import count
from pathlib import Path

import pytest

from history_kit import counted, database, run_at
from linkgauge.history.address import address
from linkgauge.history.reading import Filter, runs_of
from linkgauge.history.store import StoreError, opened
from linkgauge.history.writing import add

SIZE = "12M"
"""Of the disk: an empty database takes 8 MB of it."""


def there(store):
    """The runs that are in the history, and how many figures."""
    return sorted(run.id for run in runs_of(store, Filter())), counted(store, "figures")


@pytest.fixture
def small_disk(server):
    """A folder of the server's user that is a disk of its own. Only root can make one."""
    folder = Path(server) / "small"
    folder.mkdir()
    mount = ("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "none", str(folder))
    if os.geteuid() or subprocess.run(mount, check=False, capture_output=True).returncode:
        folder.rmdir()
        pytest.skip("a disk can be mounted by root alone, and not in every container")
    try:
        shutil.chown(folder, "postgres")
        yield folder
    finally:
        subprocess.run(("umount", "--lazy", str(folder)), check=True)


def on(server, folder):
    """The address of a new database whose tables lie in this folder."""
    import psycopg

    with psycopg.connect(f"host={server} user=linkgauge dbname=postgres", autocommit=True) as one:
        one.execute(f"CREATE TABLESPACE small LOCATION '{folder}'")
        one.execute("CREATE DATABASE full_disk TABLESPACE small")
    return f"postgresql://linkgauge:secret@/full_disk?host={server}"


def gone(server):
    import psycopg

    with psycopg.connect(f"host={server} user=linkgauge dbname=postgres", autocommit=True) as one:
        one.execute("DROP DATABASE full_disk WITH (FORCE)")
        one.execute("DROP TABLESPACE small")


def test_a_disk_that_fills_up_costs_one_line_and_only_the_run_that_did_not_fit(server, small_disk):
    text = on(server, small_disk)
    try:
        with opened(address(text)) as store:
            for number in count():
                try:
                    add(store, run_at(number, cells=4000), None)
                except StoreError as error:
                    why = str(error)
                    break
            fitted = [f"r{n:03}" for n in range(number)]
            assert number > 0
            assert there(store) == (fitted, 4000 * number)
        assert why.endswith("No space left on device")
        assert "secret" not in why
        assert "\n" not in why
    finally:
        gone(server)


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
