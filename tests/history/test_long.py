"""What a long history costs: the number of queries and of rows that are read, and no table is read
from its beginning to its end, however many runs there are."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy import text as sql

from history_kit import BENCHMARK, run_at
from linkgauge.history.reading import (
    Filter,
    earlier_runs,
    histories_of,
    number_of_runs,
    runs_of,
)
from linkgauge.history.store import opened
from linkgauge.history.writing import add
from linkgauge.model.transfer import Place

CELLS = 4
WHOLE = re.compile(r"(Seq Scan on|SCAN) (figures|results)\b(?!.*INDEX)")
"""What SQLite and PostgreSQL call it to read one of these tables from its beginning to its end."""
SHOWN = 5
READING = {
    "list": lambda store: (runs_of(store, Filter(last=SHOWN)), number_of_runs(store, Filter())),
    "trend of a cell": lambda store: histories_of(store, BENCHMARK, [Place("0", "1")], Filter()),
    "baseline": lambda store: earlier_runs(store, run_at(300, cells=CELLS), last=SHOWN),
}


class Cost:
    """The statements that are executed with a store, and the rows that they give."""

    def __init__(self, store):
        self.statements, self.rows = [], 0
        self._engine = store._engine

    def __enter__(self):
        event.listen(self._engine, "after_cursor_execute", self._executed)
        return self

    def __exit__(self, *error):
        event.remove(self._engine, "after_cursor_execute", self._executed)

    def _executed(self, connection, cursor, statement, parameters, context, many):
        if statement.lstrip().startswith("SELECT"):
            self.statements.append((statement, parameters))

    def plan(self, store):
        """What the database does for these statements, a line for each step."""
        with store.reading() as connection:
            if store.is_postgresql:  # a sequential scan of a table of few pages is always cheapest
                connection.execute(sql("SET LOCAL enable_seqscan = off"))
            how = "EXPLAIN" if store.is_postgresql else "EXPLAIN QUERY PLAN"
            return [
                str(row[-1])
                for statement, parameters in self.statements
                for row in connection.exec_driver_sql(f"{how} {statement}", parameters)
            ]


@contextmanager
def filled(url, count) -> Iterator:
    with opened(url) as store:
        for number in range(count):
            add(store, run_at(number, cells=CELLS), Path("/kept"))
        yield store


@pytest.mark.parametrize("name", READING)
def test_more_runs_take_no_more_queries_and_no_scan_of_figures(url, name):
    costs = []
    for count in (8, 24):
        with filled(url, count) as store, Cost(store) as cost:
            assert READING[name](store)
            costs.append(len(cost.statements))
    assert costs[0] == costs[1] <= 6
    with opened(url) as store:
        steps = cost.plan(store)
    assert steps
    assert not [step for step in steps if WHOLE.search(step)]


def test_a_list_and_a_baseline_read_only_the_runs_that_they_show(url):
    with filled(url, 24) as store:
        listed, count = READING["list"](store)
        assert (len(listed), count) == (SHOWN, 24)
        assert number_of_runs(store, Filter(label="another", last=3)) == 0
        assert len(READING["baseline"](store)) == SHOWN
