"""Readings that may hang are kept, and never keep a scrape."""

import threading
import time

from linkgauge.exporter import reader as module
from linkgauge.exporter.reader import Reader


def read(reader, patience=10.0):
    reader.ask()
    reader.wait(time.monotonic() + patience)
    return reader.taken()


def test_keeps_what_was_read_for_its_period():
    numbers = iter(range(10))
    reader = Reader("numbers", lambda: next(numbers), 1000)
    assert read(reader)[:1] + read(reader)[2:] == (0, False, 1)


def test_reads_again_after_its_period():
    numbers = iter(range(10))
    reader = Reader("numbers", lambda: next(numbers), 0)
    assert [read(reader).value for _ in range(3)] == [0, 1, 2]


def test_counts_a_version_only_when_the_value_is_another():
    same = ("results",)
    reader = Reader("same", lambda: same, 0)
    assert [read(reader).version for _ in range(3)] == [1, 1, 1]


def test_a_hung_call_keeps_no_scrape_and_is_called_stale(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    monkeypatch.setattr(module, "HANGS", 0.1)
    go_on, answers = threading.Event(), iter(["first"])

    def answer():
        found = next(answers, None)
        if found is None:
            go_on.wait(10)
        return found or "second"

    threads = threading.active_count()
    reader = Reader("driver", answer, 0)
    assert read(reader).value == "first"
    reader.ask()
    time.sleep(0.15)
    began = time.monotonic()
    for _ in range(100):
        found = read(reader)
    assert time.monotonic() - began < 1
    assert (found.value, found.stale) == ("first", True)
    assert found.age >= 0.1
    assert threading.active_count() <= threads + 1
    go_on.set()
    deadline = time.monotonic() + 10
    while (found := reader.taken()).value != "second" and time.monotonic() < deadline:
        time.sleep(0.01)
    assert (found.value, found.stale) == ("second", False)


def test_a_failure_leaves_the_last_value_and_is_said_once():
    said, answers = [], iter([1, OSError("gone\nand away"), OSError("gone\nand away"), 2])

    def answer():
        found = next(answers)
        if isinstance(found, Exception):
            raise found
        return found

    reader = Reader("disk", answer, 0, said.append)
    found = [read(reader) for _ in range(4)]
    assert [(one.value, one.stale) for one in found] == [
        (1, False), (1, True), (1, True), (2, False)
    ]  # fmt: skip
    assert said == ["disk: gone and away"]


def test_a_thread_without_questions_ends_and_another_takes_its_place(monkeypatch):
    monkeypatch.setattr(module, "IDLE", 0.05)
    threads = []
    reader = Reader("idle", lambda: threads.append(threading.current_thread()), 0)
    read(reader)
    read(reader)
    threads[-1].join(10)
    assert not threads[-1].is_alive()
    read(reader)
    assert len(threads) == 3


def test_forgets_what_is_too_old_to_be_shown(monkeypatch):
    monkeypatch.setattr(module, "FORGET", 0.0)
    reader = Reader("old", lambda: "value", 1000)
    read(reader)
    time.sleep(0.01)
    assert reader.taken().value is None


def test_a_reading_that_never_was_has_no_age():
    reader = Reader("none", lambda: None, 1)
    assert reader.taken() == (None, None, False, 0)
