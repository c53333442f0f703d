"""The latest runs of each label and their figures, in SQLite and in PostgreSQL, and what the
exporter makes of them."""

from history_kit import BENCHMARK, run_at
from linkgauge.history.reading import Filter, figures_of, latest_runs, runs_of
from linkgauge.history.store import opened
from linkgauge.history.writing import add


def test_are_the_last_of_each_label(url):
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
        assert sorted((one.id.benchmark, one.id.column, one.unit) for _, one in found) == [
            (BENCHMARK, column, "B/s") for column in "012"
        ]
        assert {(figure.status, round(figure.value / 1e9)) for *_, figure in found} == {
            ("pass", 50)
        }
        assert list(figures_of(store, [])) == []
