"""What was written before a crash is read back and gone on with, whatever the crash cut off."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import machine
from linkgauge.engine.kept.journal import (
    Closed,
    Journal,
    Logged,
    MeasuredRepetition,
    Opened,
    assemble,
    read_records,
    repetitions_of,
)
from linkgauge.model.documents.result import CellResult, PlannedCell, PlannedTable
from linkgauge.model.errors import DeviceBusy, InputError, ResultsError
from linkgauge.model.kernel_log import KernelLog, LogLine
from linkgauge.model.notation import encode_hook, parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report

TRANSFER = parse_transfers("host:0 -> host:0 by cpu")


def table(name="b", cells=2, reason=None):
    planned = tuple(PlannedCell("0", str(n), TRANSFER, Report.FIRST) for n in range(cells))
    return PlannedTable(
        benchmark=name, title="t", backend="host", size=64, unit="B/s", better="higher",
        reason=reason, cells=planned,
    )  # fmt: skip


def cell(column="0", status="pass", reason=None):
    return CellResult(
        "0", column, TRANSFER, Report.FIRST, status, reason, samples=(1.5,), repetitions=((1,),)
    )


OPENED = Opened(
    id="run", label="täst", command=("linkgauge", "run"), started="now", machine=machine(),
    settings=Settings((64,)), plan=(table(), table("skipped", 0, "needs two devices")),
)  # fmt: skip
LOG = KernelLog((LogLine(1.5, "NVRM: täst \\x1b", "xid", "0000:01:00.0", 3, 79),), 2, lost=True)
RECORDS = (
    OPENED, MeasuredRepetition(0, cell("0")), MeasuredRepetition(0, cell("1", "skip", "no")),
    Logged(LOG),
    Closed("later"),
)  # fmt: skip


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


@pytest.fixture
def data(path):
    journal = Journal.begin(path, OPENED)
    for record in RECORDS[1:]:
        journal.append(record)
    journal.close()
    return path.read_bytes()


def test_each_record_is_on_disk_before_the_next(path):
    journal = Journal.begin(path, OPENED)
    assert read_records(path.read_bytes()) == RECORDS[:1]
    for count, record in enumerate(RECORDS[1:], start=2):
        journal.append(record)
        assert read_records(path.read_bytes()) == RECORDS[:count]
    journal.close()


def test_cut_off_at_any_byte_it_reads_up_to_its_last_whole_line(data):
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == b"\n"]
    for length in range(len(data) + 1):
        whole = sum(end <= length for end in ends)
        if whole == 0:
            with pytest.raises(InputError):
                read_records(data[:length])
        else:
            assert read_records(data[:length]) == RECORDS[:whole]


@given(at=st.integers(0, 5000), junk=st.binary(min_size=1, max_size=6))
def test_a_damaged_journal_raises_nothing_else_either(at, junk):
    import msgspec

    data = b"".join(msgspec.json.encode(record, enc_hook=encode_hook) + b"\n" for record in RECORDS)
    at %= len(data)
    try:
        records = read_records(data[:at] + junk + data[at + len(junk) :])
        assemble(records)
    except InputError:
        pass


def test_a_run_is_its_journal_put_together():
    run = assemble(RECORDS)
    assert (run.id, run.label, run.finished, run.kernel_log) == ("run", "täst", "later", LOG)
    measured, skipped = run.results
    assert (measured.status, [c.column for c in measured.cells]) == ("pass", ["0", "1"])
    assert (skipped.status, skipped.reason, skipped.cells) == ("skip", "needs two devices", ())


def test_left_is_what_has_no_record():
    def columns(*records):
        return [
            [one.column for one in cells] for cells in repetitions_of((OPENED, *records)).left()
        ]

    assert columns() == [["0", "1"], []]
    assert columns(MeasuredRepetition(0, cell("1", "error", "lost"))) == [["0"], []]
    second = [["0"], []]  # the other was skipped, and is not repeated
    assert columns(*RECORDS[1:]) == second
    # Copies by host threads vary from process to process by more than the precision: after seven
    # repetitions, more would not help.
    assert columns(*RECORDS[1:], *[RECORDS[1]] * 6) == [[], []]


def test_a_journal_never_overwrites(path):
    path.write_text("precious")
    with pytest.raises(ResultsError, match=r"journal\.jsonl"):
        Journal.begin(path, OPENED)
    assert path.read_text() == "precious"


@pytest.mark.parametrize("cut", [0, 1, 40])
def test_it_goes_on_after_its_last_whole_record(path, data, cut):
    ends = [at + 1 for at in range(len(data)) if data[at : at + 1] == b"\n"]
    path.write_bytes(data[: ends[1] + cut])
    journal, records = Journal.reopen(path, tuple)
    assert records == RECORDS[:2]
    for record in RECORDS[2:]:
        journal.append(record)
    journal.close()
    assert path.read_bytes() == data


@pytest.mark.parametrize("begun", [True, False])
def test_only_one_process_writes_it(path, data, begun):
    if begun:
        path.unlink()
        journal = Journal.begin(path, OPENED)
    else:
        journal, _ = Journal.reopen(path, tuple)
    before = path.read_bytes()
    with pytest.raises(DeviceBusy, match=str(path.parent)):
        Journal.reopen(path, tuple)
    assert path.read_bytes() == before
    journal.close()
    Journal.reopen(path, tuple)[0].close()


FULL = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")


@FULL
def test_a_full_disk_is_said_with_the_path(path):
    journal = Journal.begin(path, OPENED)
    journal._file.close()
    message = pytest.raises(ResultsError, match=r"journal\.jsonl.*No space left")
    with Path("/dev/full").open("wb", buffering=0) as journal._file, message:
        journal.append(OPENED)


def test_a_disk_too_full_for_the_plan_leaves_nothing(path, monkeypatch):
    def full(_descriptor):
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr("linkgauge.engine.kept.journal.os.fsync", full)
    with pytest.raises(ResultsError, match=r"journal\.jsonl.*No space left"):
        Journal.begin(path, OPENED)
    assert list(path.parent.iterdir()) == []


def test_a_journal_of_an_earlier_version_has_today_s_words(path, data):
    """Their cells were `unknown` until they were judged."""
    earlier = data.replace(b'"verdict":"not judged"', b'"verdict":"unknown"')
    assert earlier != data
    assert read_records(earlier) == read_records(data)
