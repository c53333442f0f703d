"""A PostgreSQL whose disk is full: one line, and nothing lost of what was there."""

import pytest

from history_kit import counted, database, run_at
from linkgauge.history.address import address
from linkgauge.history.reading import Filter, runs_of
from linkgauge.history.store import StoreError, opened
from linkgauge.history.writing import add


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
