"""Whatever befalls a worker process costs one cell. The workers here are real processes, most of
them of a simulated machine, since nothing else fails when asked to."""

import os
import signal
import time
from contextlib import closing
from pathlib import Path

import pytest

from linkgauge.backends.sim.description import load
from linkgauge.engine.workers import supervisor
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.machine.processes import process
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.errors import LinkgaugeError
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import Report

SIZE = 1 << 20


def settings(*faults, timeout=None, **others):
    simulation = Simulation(*load("ppu-8"), faults)
    given = {"samples": 6, "timeout": timeout, "simulation": simulation, **others}
    return Settings((SIZE,), **given)


def cell(text, number=0, together=None):
    return PlannedCell("0", "1", parse_transfers(text), Report.FIRST, None, together, number)


def write(row, column, number=0, together=None):
    return cell(f"sim:{row} -> sim:{column} by sim:{row}.sm", number, together)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def gone(pid):
    for _ in range(600):
        if not alive(pid):
            return True
        time.sleep(0.05)
    return False


def test_a_worker_finds_the_size_of_a_buffer():
    with closing(Supervisor(Settings((SIZE,)))) as worker:
        node = worker.survey([]).host.nodes[0].index
        assert worker.find_buffer(node, SIZE, SIZE) == SIZE
        assert SIZE <= worker.find_buffer(node, SIZE, 4 * SIZE) <= 4 * SIZE


def test_a_worker_that_is_stopped_ends_at_its_deadline(monkeypatch):
    """It neither works nor ends."""
    with closing(Supervisor(settings(timeout=0.5))) as worker:
        worker.survey(["sim"])
        before = worker._workers["sim"].process.pid
        os.kill(before, signal.SIGSTOP)
        with monkeypatch.context() as shorter:
            shorter.setattr("linkgauge.engine.workers.messages.ANSWER_SECONDS", 0.5)
            (result,) = worker.measure([write(0, 1)], SIZE)
        assert result.status == result.kind == "timeout"
        assert gone(before)
        (after,) = worker.measure([write(0, 1, 1)], SIZE)
        assert after.status == "pass"


def test_wrong_bytes_are_no_reason_for_a_new_worker():
    with closing(Supervisor(settings("flip sim:1 cells=0 offset=77"))) as worker:
        worker.survey(["sim"])
        before = worker._workers["sim"].process.pid
        (result,) = worker.measure([write(0, 1)], SIZE)
        assert (result.status, result.kind, result.verified) == ("fail", "wrong-bytes", False)
        assert "wrong at byte 77" in result.reason
        assert worker._workers["sim"].process.pid == before


class TestSettingAside:
    def test_a_device_that_failed_three_cells_in_a_row(self):
        with closing(Supervisor(settings("nomem sim:2"))) as worker:
            results = []
            places = [(0, 2), (1, 2), (2, 3), (2, 0), (2, 2), (2, 2), (0, 1)]  # (2, 2): alone, once
            for number, (row, column) in enumerate(places):
                results += worker.measure([write(row, column, number)], SIZE)
        kinds = ["memory"] * 3 + ["set-aside", "memory", "set-aside", None]
        assert [result.kind for result in results] == kinds
        assert [r.status for r in results] == [*["error"] * 3, "skip", "error", "skip", "pass"]
        assert results[3].reason.startswith("sim:2 set aside after 3 cells in a row that failed")
        assert results[2].reason in results[3].reason

    def test_a_cell_that_passes_makes_up_for_it(self):
        with closing(
            Supervisor(settings("nomem sim:2 cells=0..1", "nomem sim:2 cells=3"))
        ) as worker:
            results = []
            for number in range(5):
                results += worker.measure([write(2, 3, number)], SIZE)
        assert [r.status for r in results] == ["error", "error", "pass", "error", "pass"]


class TestSurvey:
    def test_a_description_that_is_wrong_is_told(self):
        wrong = Settings((SIZE,), simulation=Simulation("mine", "devices: 3"))
        with closing(Supervisor(wrong)) as worker, pytest.raises(LinkgaugeError, match="devices"):
            worker.survey(["sim"])


class TestNobodyIsLeftBehind:
    def test_ctrl_c_while_one_is_set_to_work_leaves_it_to_be_closed(self, monkeypatch):
        begun = []

        def interrupted(self, *_):
            begun.append(self)
            raise KeyboardInterrupt

        monkeypatch.setattr(supervisor.WorkerProcess, "begin", interrupted)
        worker = Supervisor(settings())
        with pytest.raises(KeyboardInterrupt):
            worker._worker("sim")
        worker.close()
        assert gone(begun[0].process.pid)

    def test_once_told_they_end_while_the_controller_does_something_else(self):
        with closing(Supervisor(settings())) as worker:
            worker.survey(["sim"])
            process = worker._workers["sim"].process
            worker.end()
            assert gone(process.pid)
        assert process.returncode == 0

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_what_ends_a_run_is_the_controllers_alone(self, number):
        with closing(Supervisor(settings())) as worker:
            worker.survey(["sim"])
            os.kill(worker._workers["sim"].process.pid, number)
            (result,) = worker.measure([write(0, 1)], SIZE)
            assert result.status == "pass"


@pytest.mark.parametrize(
    ("standing", "asked", "left"),
    [
        # A worker has 30 s and the bytes at 100 MB/s, then the cell as long until it is warmed up.
        (("plan", 0, 0, 0), {}, 40 - 100),
        (("allocate", 90, 95, 0), {}, 90 + 40 - 100),
        (("warm up", 90, 95, 0), {}, 90 + 40 - 100),
        # Then each phase has 20 warm-ups, though 10 s at least, beside the time that it samples.
        (("verify", 80, 99, 3), {}, 60 - 1),
        (("fill", 80, 99, 0.001), {}, 10 - 1),
        (("measure", 80, 99, 3), {}, 60 + 2 - 1),
        # The first sample has 20 warm-ups a loop, the next 20 of the longest so far.
        (("measure", 80, 99, 1), {"samples": 1000, "loops": 16}, 20 * 16 + 2 - 1),
        (("measure", 80, 99, 1, 7), {"samples": 1000, "loops": 16}, 20 * 7 + 2 - 1),
        (("measure", 1, 99, 0.05, 0.1), {"samples": 300}, 12 - 1),
        # A timeout that was asked for is of the whole cell, also under a profiler, which slows.
        (("verify", 96, 99, 1), {"timeout": 5.0}, 1.0),
        (("verify", 96, 99, 1), {"timeout": 5.0, "profiler": "nsys"}, 1.0),
        (("verify", 80, 99, 3), {"profiler": "nsys"}, supervisor.TIMES_PROFILED * 60 - 1),
    ],
)
def test_a_deadline_grows_with_what_there_is_to_do(monkeypatch, standing, asked, left):
    """At second 100, of a cell that was handed over at second 0."""
    monkeypatch.setattr(supervisor.time, "monotonic", iter([0.0, 100.0]).__next__)
    copy = [cell("host:0 -> host:0 by cpu")]
    watch = supervisor._Watch(copy, 10**9, Settings((1,), **{"max_time": 2.0, **asked}))
    assert watch.left(supervisor.Heartbeat(*standing)) == pytest.approx(left)


def test_what_a_worker_does_not_foresee_is_told(monkeypatch, capfd):
    broken = process._PROGRAM.replace(
        "main(module",
        "from linkgauge.engine.workers.worker import LocalWorker\n"
        "def fail(self, *asked): raise ZeroDivisionError('a bug')\n"
        "LocalWorker.measure = fail\n"
        "main(module",
    )
    monkeypatch.setattr(process, "_PROGRAM", broken)
    with closing(Supervisor(settings())) as worker:
        (result,) = worker.measure([write(0, 1)], SIZE)
    assert (result.status, "ZeroDivisionError: a bug" in result.reason) == ("error", True)
