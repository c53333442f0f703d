"""Signals that people and batch systems send to a command, and what becomes of what it has started
and measured. Commands and signals are real."""

import os
import signal
import subprocess
import sys
import time
import uuid
from contextlib import contextmanager

import pytest
from msgspec.structs import replace

from command_kit import alive
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.engine.interrupts import AGAIN_SECONDS, Ending
from linkgauge.engine.kept.journal import MeasuredRepetition, read_records
from linkgauge.engine.kept.runs import read_run
from linkgauge.judge.outcome import outcome_of
from linkgauge.machine.processes import command
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.settings import Settings
from linkgauge.report.live import INTERRUPTED
from linkgauge.report.sections.verdict import numbers
from linkgauge.report.words.run_notes import missed_precision
from linkgauge.rooms.vary.rounds import prepare

DEADLINE_SECONDS = 60.0
"""Seconds: a loaded machine is slow, not wrong."""
LONG = 600
"""Seconds that nothing here waits for."""
RUN = ("run", "--machine", "dgx-h200-8", "--profile", "quick")
VARY = ("vary", "host_to_host_memcpy_copy_cpu", "--machine", "riscv-2gpu", "--cpus", "0-15",
        "--cpus", "0-7", "--size", "1M", "--rounds", "4", "--significance", "0.2")  # fmt: skip
JUDGES_LONG = f"""
import sys, time
from pathlib import Path
from linkgauge.report.keeping import Display
from linkgauge.cli.main import main
judging, go = map(Path, sys.argv[1:3])
del sys.argv[1:3]
judged = Display.judged
def slowly(*given):
    judging.touch()
    until = time.monotonic() + {LONG}
    while time.monotonic() < until and not go.exists():
        time.sleep(0.01)
    return judged(*given)
Display.judged = slowly
if sys.argv[1] == "vary":
    from linkgauge.rooms.vary import carrying_out
    judged, carrying_out.judge = carrying_out.judge, slowly
main()
"""


def comes(true):
    """Waits until something is true. Fails if it does not become so."""
    until = time.monotonic() + DEADLINE_SECONDS
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


@contextmanager
def running(*words, mark="", **how):
    process = subprocess.Popen(
        words, text=True, env={**os.environ, "MARK": mark, "LINKGAUGE_HISTORY": "none"}, **how
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


class TestACommandOfTheUser:
    @pytest.mark.parametrize(
        ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
    )
    def test_ends_with_all_that_it_has_started(self, tmp_path, number, code):
        mark, ready = f"linkgauge-test-{uuid.uuid4()}", tmp_path / "ready"
        strike = f"(sleep {LONG}; true) | cat & sleep {LONG} & touch {ready}; wait"
        words = (sys.executable, "-m", "linkgauge", *VARY, "--out", str(tmp_path / "out"),
                 "--prepare", strike)  # fmt: skip
        with running(*words, mark=mark, stderr=subprocess.PIPE) as process:
            comes(ready.exists)
            process.send_signal(number)
            assert process.wait(DEADLINE_SECONDS) == code
        comes(lambda: not alive(mark))

    def test_ends_although_it_ignores_the_polite_signal(self, monkeypatch):
        monkeypatch.setattr(command, "GRACE_SECONDS", 0.1)
        mark = f"linkgauge-test-{uuid.uuid4()}"
        leader = command.start(
            f"trap '' TERM; echo; sleep {LONG}; true",
            env={**os.environ, "MARK": mark}, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert leader.stdout.read(1)
        command.end(leader)
        assert leader.returncode == -signal.SIGKILL
        comes(lambda: not alive(mark))

    def test_goes_on_in_the_background_if_it_ended_well(self, tmp_path):
        mark = f"linkgauge-test-{uuid.uuid4()}"
        prepare(f"sleep {LONG} >{tmp_path}/out 2>&1 &", {"MARK": mark}, "A, round 1")
        (there,) = alive(mark)
        os.kill(int(there), signal.SIGKILL)

    def test_that_asks_at_the_terminal_is_told_so(self, monkeypatch):
        monkeypatch.setattr("linkgauge.rooms.vary.rounds._LOOK", 0.05)
        mark = f"linkgauge-test-{uuid.uuid4()}"
        with pytest.raises(LinkgaugeError, match="asks at the terminal before A, round 1: let it"):
            prepare(f"kill -TTIN $$; sleep {LONG}", {"MARK": mark}, "A, round 1")
        comes(lambda: not alive(mark))

    def test_that_cannot_be_started_loses_no_signal(self, monkeypatch):
        def fails(*words, **options):
            signal.raise_signal(signal.SIGINT)
            raise BlockingIOError("no more processes")

        monkeypatch.setattr(subprocess, "Popen", fails)
        with pytest.raises(KeyboardInterrupt):
            prepare("true", {}, "A, round 1")


@pytest.fixture
def judging(tmp_path):
    """A run whose judge works for long: the process, and files that say that it judges and that let
    it go on."""
    begun, go = tmp_path / "judging", tmp_path / "go"

    @contextmanager
    def begin(*command):
        words = (sys.executable, "-c", JUDGES_LONG, str(begun), str(go), *(command or RUN))
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        with running(*words, "--out", str(tmp_path / "out"), **pipes) as process:
            yield process, begun, go

    return begin


def journal_of(tmp_path):
    return next((tmp_path / "out").rglob("journal.jsonl"), None)


def has_measured(tmp_path):
    found = journal_of(tmp_path)
    return found is not None and found.read_bytes().count(b"\n") > 3


def heard(process):
    """Reads what the process says until it answers the signal."""
    line = None
    while line != "":
        line = process.stderr.readline()
        if line.strip() == INTERRUPTED:
            return
    pytest.fail("it does not answer")


def test_ctrl_c_while_measuring_is_answered_and_once_more_ends_without_a_verdict(tmp_path, judging):
    with judging() as (process, begun, _):
        comes(lambda: has_measured(tmp_path))
        process.send_signal(signal.SIGINT)
        heard(process)
        comes(begun.exists)
        time.sleep(2 * AGAIN_SECONDS)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 130
    journal = journal_of(tmp_path)
    assert f"run --resume {journal.parent}" in err
    assert "verdict" not in out
    records = read_records(journal.read_bytes())
    assert sum(isinstance(record, MeasuredRepetition) for record in records) > 2
    assert read_run(journal).finished is None


def test_ctrl_c_while_measuring_keeps_and_judges_what_was_measured(tmp_path, judging):
    with judging() as (process, begun, go):
        comes(lambda: has_measured(tmp_path))
        process.send_signal(signal.SIGINT)
        heard(process)
        comes(begun.exists)
        go.touch()
        out, _ = process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 130
    assert f"run --resume {journal_of(tmp_path).parent}" in out
    assert "raise --max-time" not in out
    assert (journal_of(tmp_path).parent / "run.json").exists()


def test_ctrl_c_while_a_whole_run_is_judged_is_answered_and_costs_nothing(tmp_path, judging):
    with judging() as (process, begun, go):
        comes(begun.exists)
        process.send_signal(signal.SIGTERM)
        heard(process)
        go.touch()
        process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 0
    assert read_run(journal_of(tmp_path).parent / "run.json").finished is not None


@pytest.mark.parametrize("again", [False, True])
def test_ctrl_c_while_a_run_of_vary_is_judged_is_answered(tmp_path, judging, again):
    with judging(*VARY) as (process, begun, go):
        comes(begun.exists)
        process.send_signal(signal.SIGINT)
        heard(process)
        if again:
            time.sleep(2 * AGAIN_SECONDS)
            process.send_signal(signal.SIGINT)
        else:
            go.touch()
        process.communicate(timeout=DEADLINE_SECONDS)
        assert process.returncode == 130
    assert journal_of(tmp_path) is not None
    assert len([*tmp_path.rglob("vary.json")]) == (0 if again else 1)


class TestEnding:
    def strike(self):
        signal.raise_signal(signal.SIGINT)

    def strike_within(self, ending, done):
        with ending.keeping():
            self.strike()
            done.append(1)

    def test_signals_that_come_together_are_one(self):
        said = []
        with Ending(lambda: said.append(1)) as ending, ending.concluding():
            self.strike()
            self.strike()
        assert said == [1]

    def test_a_second_signal_ends_at_once_and_the_first_ends_measuring(self, monkeypatch):
        monkeypatch.setattr("linkgauge.engine.interrupts.AGAIN_SECONDS", 0.0)
        with Ending(lambda: None) as ending:
            with pytest.raises(KeyboardInterrupt):
                self.strike()
            with ending.concluding(), pytest.raises(SystemExit) as ended:
                self.strike()
        assert ended.value.code == 130

    def test_a_signal_takes_effect_after_a_block_that_keeps(self):
        done = []
        with Ending(lambda: None) as ending:
            with pytest.raises(KeyboardInterrupt):
                self.strike_within(ending, done)
            with ending.keeping():
                done.append(2)
        assert done == [1, 2]

    def test_handlers_are_given_back(self):
        before = signal.getsignal(signal.SIGINT)
        with Ending(lambda: None):
            assert signal.getsignal(signal.SIGINT) != before
        assert signal.getsignal(signal.SIGINT) == before


@pytest.mark.parametrize(
    ("finished", "advice"),
    [("f", "stop other programs"), (None, "the run was interrupted: --resume goes on with it")],
)
def test_the_advice_on_precision_of_an_interrupted_run_names_resume(finished, advice):
    settings = Settings((1 << 20,), samples=6, loops=1, precision=0.01)
    run = run_of(*load("ppu-8"), "device_to_device_memcpy_read_ce", settings=settings)
    (result,) = run.results
    cells = tuple(
        replace(cell, stopped="max-time", summary=replace(cell.summary, ci95=None))
        for cell in result.cells
    )
    run = replace(run, finished=finished, results=(replace(result, cells=cells),))
    missed = missed_precision(run)
    assert missed.advice.startswith(advice)
    assert missed.noted[0].endswith(missed.advice)
    lines = ["".join(span.text for span in line) for name, line in numbers(run, outcome_of(run))
             if name == "precision"]  # fmt: skip
    (line,) = lines
    assert ("--resume" in line) == (finished is None)
    assert line.endswith(missed.advice) or "give --budget" in line
