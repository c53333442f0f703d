"""A run that a rank's loss ended says so when it is shown, whoever is left to write it."""

import os
import signal
import subprocess
import sys

import pytest

from linkgauge.cluster import heir as module
from linkgauge.cluster.heir import add_loss, keep_loss, stopped
from linkgauge.engine.journal import (
    JOURNAL_FILE,
    Journal,
    Lost,
    Resumed,
    read_records,
)
from linkgauge.engine.request import RunRequest
from linkgauge.engine.runs import read_run
from linkgauge.model.errors import DeviceBusy
from linkgauge.model.ranks import LostRank
from linkgauge.model.result import exit_code
from linkgauge.model.settings import Settings
from ranks_kit import SOON

LOST = LostRank(2, "ended", "measuring", "node7", 4711, "cuda:0@2")
SETTINGS = Settings((1 << 20,))


def request(folder, **more):
    return RunRequest(
        settings=SETTINGS, out=None if folder is None else str(folder), label="mine",
        command=("linkgauge", "run", "multinode"), options={"size": "1M"}, **more,
    )  # fmt: skip


def records(folder):
    return read_records((folder / JOURNAL_FILE).read_bytes())


class TestKept:
    def test_is_a_run_that_names_the_culprit(self, tmp_path):
        folder = keep_loss(request(tmp_path), LOST)
        assert folder.parent == tmp_path / "cpu" / "mine"
        run = read_run(folder)
        assert run.lost == LOST
        assert (run.results, exit_code(run)) == ((), 3)
        assert run.finished is not None

    def test_is_nothing_if_runs_are_not_kept(self, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        assert keep_loss(request(None), LOST) is None
        assert list(tmp_path.iterdir()) == []


@pytest.fixture
def journal(tmp_path):
    """What rank 0 has left."""
    opened = records(keep_loss(request(tmp_path), LOST))[0]
    path = tmp_path / JOURNAL_FILE
    Journal.begin(path, opened).close()
    return path


class TestAdded:
    def test_twice_changes_nothing(self, journal):
        add_loss(journal, LOST)
        written = journal.read_bytes()
        add_loss(journal, LostRank(0, "ended", "measuring"))
        assert journal.read_bytes() == written

    def test_to_a_run_that_was_resumed_since_its_end(self, journal):
        add_loss(journal, LOST)
        reopened, _ = Journal.reopen(journal, tuple)
        reopened.append(Resumed("noon", ("linkgauge",)))
        reopened.close()
        gone = LostRank(0, "ended", "measuring")
        add_loss(journal, gone)
        assert read_run(journal).lost == gone

    def test_waits_for_the_end_of_who_has_it_locked(self, journal, monkeypatch):
        """The kernel does away with a process step by step."""
        locked, _ = Journal.reopen(journal, tuple)
        monkeypatch.setattr(module.time, "sleep", lambda seconds: locked.close())
        add_loss(journal, LOST)
        assert records(journal.parent)[1] == Lost(LOST)

    def test_of_a_run_that_goes_on_is_refused(self, journal, monkeypatch):
        monkeypatch.setattr(module, "LOCKED_SECONDS", SOON)
        locked, _ = Journal.reopen(journal, tuple)
        with pytest.raises(DeviceBusy, match="is still in progress"):
            add_loss(journal, LOST)
        locked.close()
        assert len(records(journal.parent)) == 1


RANK_0 = """
import sys
from pathlib import Path
from linkgauge.engine.journal import Closed, Journal
journal, _ = Journal.reopen(Path(sys.argv[1]), tuple)
print("here", flush=True)
sys.stdin.readline()
journal.append(Closed("too late"))
"""


class TestOfASilentRank0:
    """It has the journal open and locked, and may go on at any time."""

    @pytest.fixture
    def first(self, journal):
        command = [sys.executable, "-c", RANK_0, str(journal)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with subprocess.Popen(command, **pipes) as process:
            process.stdout.readline()
            os.kill(process.pid, signal.SIGSTOP)
            yield process
            process.kill()

    def test_one_that_goes_on_before_it_is_ended_writes_nothing(self, journal, first):
        with stopped(first.pid):
            add_loss(journal, LOST, by_force=True)
            written = journal.read_bytes()
            os.kill(first.pid, signal.SIGCONT)
            _, said = first.communicate(b"go on\n")
        assert b"another process has ended the run" in said
        assert journal.read_bytes() == written

    def test_one_that_has_ended_or_is_not_here_is_not_stopped(self):
        with subprocess.Popen(["true"]) as gone:
            pass
        for process in (gone.pid, None):
            with stopped(process) as is_here:
                assert not is_here
