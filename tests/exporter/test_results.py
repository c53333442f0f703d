"""The last results as metrics: out of the history, or out of a folder of runs."""

import os
import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from configurations_kit import cell, result
from exporter_kit import CELL, PATIENT, RUN, Fixed, families, nvml, page, samples, value
from history_kit import BENCHMARK, run_at
from linkgauge.history.address import address
from linkgauge.history.reading import Filter, runs_of
from linkgauge.history.store import opened
from linkgauge.history.writing import add, remove
from linkgauge.model.documents.result import Expected
from linkgauge.model.printable import printable
from linkgauge.model.units import UNITS
from linkgauge.report.files import write_run
from linkgauge.rooms.exporter.machine import DEADLINE_SECONDS
from linkgauge.rooms.exporter.results import FromFolder, FromHistory, Results, Which

BANDWIDTH = "linkgauge_cell_bandwidth_bytes_per_second"
NOW = datetime.now(UTC)


def run(hours=1.0, figure=50e9, **more):
    """A run so long ago."""
    started = (NOW - timedelta(hours=hours)).isoformat(timespec="milliseconds")
    more = {"started": started, "finished": started, "id": f"r{hours}", **more}
    return run_at(0, figure, **more)


def of_cells(**figures):
    """A result with a cell of the row 0 for each column."""
    return (result(BENCHMARK, *(cell("0", name[1:], one) for name, one in figures.items())),)


@pytest.fixture
def kept(tmp_path):
    """A history: `kept(run, …)` adds runs, and gives back what is read of them."""
    url = address(str(tmp_path / "history.db"))
    sources = {}

    def keep(*runs, folder=None, **which):
        with opened(url) as store:
            for one in runs:
                add(store, one, folder)
        keep.source = sources.setdefault(tuple(which.items()), FromHistory(url, Which(**which)))
        return keep.source.read()

    keep.url = url
    return keep


def figures(results):
    """In GB/s, by label and column: samples scatter by less than one."""
    return {(of.label, one.column): round(one.figure / 1e9) for of, one in results.figures}


class TestFromTheHistory:
    def test_a_short_run_replaces_only_the_cells_that_it_measured(self, kept):
        kept(run(2.0, results=of_cells(c1=50e9, c2=50e9)))
        found = kept(run(1.0, results=of_cells(c2=25e9)))
        assert figures(found) == {("nightly", "1"): 50, ("nightly", "2"): 25}
        assert [one.id for one in found.runs] == ["r1.0"]

    def test_a_cell_that_was_skipped_keeps_its_figure(self, kept):
        kept(run(2.0, 50e9, cells=1))
        skipped = result(
            BENCHMARK, cell("0", "0", 1, status="skip"), cell("0", "1", 1, status="skip")
        )
        found = {one[1].column: one for one in kept(run(1.0, results=(skipped,))).figures}
        assert (found["0"][1].status, found["0"][0].id) == ("pass", "r2.0")
        assert (found["1"][1].status, found["1"][1].figure) == ("skip", None)

    def test_a_run_that_is_pruned_uncovers_what_was_before_it(self, kept):
        kept(run(2.0, 50e9, cells=1))
        assert figures(kept(run(1.0, 25e9, cells=1))) == {("nightly", "0"): 25}
        with opened(kept.url) as store:
            remove(store, [runs_of(store, Filter())[0].number])
        assert figures(kept()) == {("nightly", "0"): 50}

    @pytest.mark.parametrize(
        ("which", "labels"),
        [
            ({}, {"nightly", "a", "b"}),
            ({"host": "box"}, {"nightly", "a", "b"}),
            ({"host": "box", "simulated": False}, {"nightly", "a"}),
            ({"simulated": True}, {"b"}),
            ({"label": "a"}, {"a"}),
            ({"benchmarks": (BENCHMARK,)}, {"nightly", "a", "b"}),
            ({"benchmarks": ("other",)}, set()),
            ({"host": "elsewhere"}, set()),
        ],
    )
    def test_filters(self, kept, which, labels):
        found = kept(run(3.0), run(2.0, label="a"), run(1.0, label="b", simulated=True), **which)
        assert {one.label for one in found.runs} == labels
        assert {of.label for of, _ in found.figures} == labels

    def test_a_history_that_is_not_there_yet_is_empty_and_not_made(self, tmp_path):
        source = FromHistory(address(str(tmp_path / "later.db")), Which())
        assert source.read() == Results()
        assert list(tmp_path.iterdir()) == []
        with opened(address(str(tmp_path / "later.db"))) as store:
            add(store, run(), None)
        assert len(source.read().runs) == 1

    def test_a_history_that_cannot_be_read_is_stale_and_said(self, tmp_path):
        (tmp_path / "history.db").write_bytes(b"this is no database" * 100)
        said = []
        source = FromHistory(address(str(tmp_path / "history.db")), Which())
        with nvml():
            text = page(source=source, said=said).text(PATIENT)
        assert value(text, "linkgauge_source_stale", source="results") == 1
        assert "history.db is not usable" in said[0]

    def test_expectations_are_those_of_the_run_wherever_its_files_are(self, kept):
        (one,) = of_cells(c1=50e9, c2=50e9)
        expected = Expected(60e9, 55e9, "PCIe", nominal=58e9)
        cells = [replace(cell, expected=expected, verdict="ok") for cell in one.cells]
        found = kept(run(1.0, results=(replace(one, cells=tuple(cells)),))).figures
        known = {(one.expected, one.nominal, one.verdict) for _, one in found}
        assert known == {(55e9, 58e9, "ok")}


class Failing:
    """A source that fails after its first answer, and then has another one."""

    period = 0.0

    def __init__(self):
        self.answers = iter([Results(), OSError("gone\nand away"), OSError("gone\nand away"), None])

    def read(self):
        found = next(self.answers)
        if isinstance(found, Exception):
            raise found
        return found or Results()


def test_a_failure_leaves_the_last_results_and_is_said_once():
    said = []
    with nvml():
        shown = page(source=Failing(), said=said)
        texts = [shown.text(PATIENT) for _ in range(4)]
    stale = [value(text, "linkgauge_source_stale", source="results") for text in texts]
    assert stale == [0, 1, 1, 0]
    assert said == ["results: gone and away"]


def test_a_page_that_may_wait_has_even_what_is_slow_to_read():
    """As on a loaded machine, where the devices alone take longer than a scrape waits."""
    source = Fixed(Results((RUN,)))
    source.read = lambda: time.sleep(2 * DEADLINE_SECONDS) or source.results
    with nvml(nvmlDeviceGetPowerUsage=lambda _: time.sleep(1.2 * DEADLINE_SECONDS)):
        assert samples(page(source=source).text(PATIENT), "linkgauge_last_run_cells")


def test_a_folder_shows_the_last_run_of_each_label(tmp_path):
    runs = (run(3.0, 10e9), run(2.0, 20e9), run(1.0, 30e9, label="b", simulated=True))
    for number, one in enumerate(runs):
        made = tmp_path / "nvidia-h200" / one.label / f"20261121T20150{number}Z"
        made.mkdir(parents=True)
        write_run(made, replace(one, id=made.name))
    source = FromFolder(tmp_path, Which())
    found = source.read()
    assert figures(found) == {
        ("nightly", "0"): 20, ("nightly", "1"): 20, ("b", "0"): 30, ("b", "1"): 30
    }  # fmt: skip
    assert source.read() is found
    (broken,) = tmp_path.glob("*/b/*/run.json")
    broken.write_bytes(b'{"schema"')  # as one that is being written
    os.utime(broken, (1, 1))
    assert {one.label for one in FromFolder(tmp_path, Which()).read().runs} == {"nightly"}


def shown(*cells, run=RUN):
    with nvml():
        return page(Results((run,), tuple((run, cell) for cell in cells))).text(PATIENT)


class TestMetrics:
    def test_every_unit_has_a_name(self):
        for unit in UNITS:
            found = families(shown(replace(CELL, unit=unit)))
            of = [one for name, one in found.items() if name.startswith("linkgauge_cell_")]
            assert [sample.value for one in of for sample in one.samples].count(50e9) == 1, unit

    def test_what_is_not_known_is_absent(self):
        found = shown(replace(CELL, status="timeout", verdict="not judged", figure=None))
        assert samples(found, BANDWIDTH) == samples(found, "linkgauge_cell_verdict") == []
        assert value(found, "linkgauge_cell_status") == 4

    def test_a_run_and_its_age(self):
        with nvml():
            ended = replace(RUN, finished=(datetime.now(UTC) - timedelta(seconds=60)).isoformat())
            found = page(Results((ended,))).text(PATIENT)
        assert value(found, "linkgauge_last_run_age_seconds") == pytest.approx(60, abs=30)
        states = {own["status"]: on for own, on in samples(found, "linkgauge_last_run_status")}
        assert states == {"pass": 1, "fail": 0, "skip": 0, "error": 0, "timeout": 0}
        assert value(found, "linkgauge_last_run_finished") == 1
        assert value(found, "linkgauge_last_run_info", run="r1", accelerators="NVIDIA H200") == 1


@settings(max_examples=20)
@given(st.text(st.characters(codec=None)))
def test_any_text_stays_in_its_label(text):
    """In every label of results and of devices."""
    of = {"benchmark": text, "backend": text, "row": text, "column": text}
    run = replace(RUN, label=text, host=text, id=text, accelerators=text, profile=text)
    with nvml(nvmlDeviceGetName=text, nvmlDeviceGetUUID=text, nvmlSystemGetDriverVersion=text):
        shown = page(Results((run,), ((run, replace(CELL, **of)),)))
        shown._machine.host = text
        check(shown.text(PATIENT), text)


def check(text, hostile):
    """Every label reads back as it is shown elsewhere, and no line is of another metric."""
    wanted = printable(hostile)
    found = families(text)
    assert all(name.startswith("linkgauge_") for name in found)
    assert "linkgauge_up" not in found
    labels = [sample.labels for family in found.values() for sample in family.samples]
    assert {own["host"] for own in labels if "host" in own} == {wanted}
