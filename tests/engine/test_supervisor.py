"""Whatever befalls a worker process costs one cell. The workers here are real processes, most of
them of a simulated machine, since nothing else fails when asked to."""

import os
import signal
import subprocess
import sys
import time
from contextlib import closing
from operator import sub
from pathlib import Path

import pytest

from linkgauge.backends.sim.description import load
from linkgauge.engine import process, supervisor
from linkgauge.engine.process import WorkerLost
from linkgauge.engine.standing import SIGN_SECONDS, Signs, Standing
from linkgauge.engine.supervisor import Supervisor
from linkgauge.engine.worker import LocalWorker
from linkgauge.model.errors import BackendError, LinkgaugeError
from linkgauge.model.inventory import Inventory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Beside
from linkgauge.model.result import PlannedCell
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


def test_a_process_measures_what_one_in_this_process_does():
    planned = [cell("host:0 -> sim:1 by ce"), write(0, 6, 1)]
    with closing(Supervisor(settings())) as there, closing(LocalWorker(settings())) as here:
        assert there.survey(["sim"]) == here.survey(["sim"])
        for one in planned:
            assert there.measure([one], SIZE) == here.measure([one], SIZE)


def test_the_host_has_a_worker_of_its_own():
    with closing(Supervisor(Settings((SIZE,), samples=6))) as worker:
        machine = worker.survey([])
        assert machine.host.nodes
        (result,) = worker.measure([cell("host:0 -> host:0 by cpu*1")], SIZE)
        assert (result.status, result.verified) == ("pass", True)


@pytest.mark.parametrize("name", ["SEGV", "KILL"])
def test_a_crash_costs_one_cell_and_is_explained(name):
    with closing(Supervisor(settings(f"crash sim:1 cells=1 signal={name}"))) as worker:
        before, struck, after = (worker.measure([write(0, 1, n)], SIZE)[0] for n in range(3))
    assert [before.status, struck.status, after.status] == ["pass", "error", "pass"]
    expected = f"while measuring (sim:0, sim:1): the worker was ended by SIG{name}"
    assert struck.reason.startswith(expected)
    assert struck.kind == "crash"
    assert ("memory runs out" in struck.reason) == (name == "KILL")
    assert struck.summary is None


def test_a_hang_ends_at_its_deadline():
    with closing(Supervisor(settings("hang sim:1 cells=0", timeout=0.5))) as worker:
        (result,) = worker.measure([write(0, 1)], SIZE)
        assert result.status == result.kind == "timeout"
        assert result.reason.startswith("while measuring (sim:0, sim:1): still running after ")
        (after,) = worker.measure([write(0, 1, 1)], SIZE)
        assert after.status == "pass"


def test_an_error_costs_the_worker_too_since_nobody_knows_what_it_left_behind():
    with closing(Supervisor(settings("nomem sim:1 cells=0"))) as worker:
        worker.survey(["sim"])
        before = worker._workers["sim"].process.pid
        (result,) = worker.measure([write(0, 1)], SIZE)
        assert (result.status, result.kind) == ("error", "memory")
        assert "while allocating" in result.reason
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
            for number, (row, column) in enumerate([(0, 2), (1, 2), (2, 3), (2, 0), (0, 1)]):
                results += worker.measure([write(row, column, number)], SIZE)
        assert [result.status for result in results] == ["error"] * 3 + ["skip", "pass"]
        assert [result.kind for result in results] == ["memory"] * 3 + ["set-aside", None]
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

    def test_the_host_never_is(self):
        with closing(Supervisor(settings("nomem host:0 cells=0..3"))) as worker:
            results = []
            for number in range(5):
                results += worker.measure([cell("host:0 -> host:0 by cpu", number)], SIZE)
        assert [r.status for r in results] == ["error"] * 4 + ["pass"]


def test_one_of_a_round_does_not_cost_the_others():
    with closing(Supervisor(settings("crash sim:1 cells=0"))) as worker:
        first, second = worker.measure([write(0, 1, 0, 0), write(2, 3, 1, 0)], SIZE)
        assert (first.status, second.status) == ("error", "pass")
        first, second = worker.measure([write(0, 1, 2, 1), write(2, 3, 3, 1)], SIZE)
        assert first.notes == second.notes == (Beside(1),)


def test_a_planned_reason_is_a_skip_and_starts_no_worker():
    with closing(Supervisor(settings())) as worker:
        planned = PlannedCell(
            "0", "1", parse_transfers("sim:0 -> sim:1 by ce"), Report.FIRST, "too large"
        )
        (result,) = worker.measure([planned], SIZE)
        assert (result.status, result.reason) == ("skip", "too large")
        assert result.kind == "size"
        assert not worker._workers


class TestSurvey:
    def test_a_worker_that_cannot_start_is_why_a_backend_has_no_devices(self, monkeypatch):
        monkeypatch.setattr(
            process,
            "_PROGRAM",
            process._PROGRAM.replace("main(", "sys.exit(sys.argv[2] and 7);main("),
        )
        with (
            closing(Supervisor()) as worker,
            pytest.raises(LinkgaugeError, match="the worker ended with exit code 7"),
        ):
            worker.survey(["opencl"])

    def test_a_driver_that_hangs_is_given_up(self, monkeypatch):
        monkeypatch.setattr(process, "_PROGRAM", "import time; time.sleep(600)")
        monkeypatch.setattr(supervisor, "SURVEY_SECONDS", 0.3)
        with (
            closing(Supervisor()) as worker,
            pytest.raises(BackendError, match="no answer within"),
        ):
            worker.survey([])

    def test_one_backend_that_is_missing_leaves_the_others(self):
        with closing(Supervisor()) as worker:
            machine = worker.survey(["cuda", "opencl"])
        assert set(machine.devices) | set(machine.unavailable) == {"cuda", "opencl"}
        assert machine.host.cpus > 0

    def test_a_description_that_is_wrong_is_told(self):
        wrong = Settings((SIZE,), simulation=Simulation("mine", "devices: 3"))
        with closing(Supervisor(wrong)) as worker, pytest.raises(LinkgaugeError, match="devices"):
            worker.survey(["sim"])


class TestStartedAhead:
    def test_it_is_the_first_that_is_asked(self):
        with closing(process.WorkerProcess()) as first:
            with closing(Supervisor(settings(), first)) as worker:
                worker.survey(["sim"])
                assert worker._worker("sim") is first
            assert gone(first.process.pid)

    def test_one_that_nobody_asks_is_not_left_behind(self):
        first = process.WorkerProcess()
        assert alive(first.process.pid)
        first.close()
        assert gone(first.process.pid)


class TestNobodyIsLeftBehind:
    def test_closing_ends_idle_workers_and_kills_busy_ones(self):
        worker = Supervisor(settings("hang sim:1"))
        worker.survey(["sim"])
        busy = worker._workers["sim"]
        busy.ask(supervisor.Measure((write(0, 1),), SIZE))
        worker._worker(None)
        pids = [one.process.pid for one in worker._workers.values()]
        worker.close()
        assert all(map(gone, pids))
        worker.close()

    def test_ctrl_c_while_one_is_set_to_work_leaves_it_to_be_closed(self, monkeypatch):
        begun = []

        def interrupted(self, *_):
            begun.append(self)
            raise KeyboardInterrupt

        monkeypatch.setattr(process.WorkerProcess, "begin", interrupted)
        worker = Supervisor(settings())
        with pytest.raises(KeyboardInterrupt):
            worker._worker("sim")
        worker.close()
        assert gone(begun[0].process.pid)

    def test_workers_end_with_a_controller_that_was_killed(self):
        program = (
            "import sys, time\n"
            "from linkgauge.engine.supervisor import Supervisor\n"
            "worker = Supervisor()\n"
            "worker.survey([])\n"
            "print(worker._workers[None].process.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as parent:
            pid = int(parent.stdout.readline())
            assert alive(pid)
            parent.kill()
        assert gone(pid)

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
    def test_what_ends_a_run_is_the_controllers_alone(self, number):
        with closing(Supervisor(settings())) as worker:
            worker.survey(["sim"])
            os.kill(worker._workers["sim"].process.pid, number)
            (result,) = worker.measure([write(0, 1)], SIZE)
            assert result.status == "pass"


class TestDeadlines:
    def left(self, monkeypatch, at, **asked):
        """Seconds left, asked at second 100 for a cell that was handed over at second 0."""
        monkeypatch.setattr(supervisor.time, "monotonic", iter([0.0, 100.0]).__next__)
        given = {"max_time": 2.0, **asked}
        copy = [cell("host:0 -> host:0 by cpu")]
        return supervisor._Watch(copy, 10**9, Settings((1,), **given)).left(at)

    def test_a_worker_has_30_s_and_the_bytes_at_100_mb_a_second(self, monkeypatch):
        assert self.left(monkeypatch, Standing("plan", 0, 0, 0)) == pytest.approx(40 - 100)

    @pytest.mark.parametrize("phase", ["allocate", "warm up"])
    def test_then_the_cell_as_long_until_it_is_warmed_up(self, monkeypatch, phase):
        assert self.left(monkeypatch, Standing(phase, 90, 95, 0)) == pytest.approx(90 + 40 - 100)

    def test_then_each_phase_20_warm_ups(self, monkeypatch):
        assert self.left(monkeypatch, Standing("verify", 80, 99, 3)) == pytest.approx(60 - 1)

    def test_beside_the_time_it_samples(self, monkeypatch):
        assert self.left(monkeypatch, Standing("measure", 80, 99, 3)) == pytest.approx(62 - 1)

    def test_a_short_warm_up_does_not_make_it_impatient(self, monkeypatch):
        at = Standing("fill", 80, 99, 0.001)
        assert self.left(monkeypatch, at) == pytest.approx(10 - 1)

    def test_a_cell_that_goes_on_sampling_is_never_late(self, monkeypatch):
        at = Standing("measure", begun=1, since=99, warm_up=0.05, longest=0.1)
        assert self.left(monkeypatch, at, samples=300) == pytest.approx(12 - 1)

    def test_the_first_sample_has_20_warm_ups_a_loop(self, monkeypatch):
        at = Standing("measure", 80, 99, 1)
        left = self.left(monkeypatch, at, samples=1000, loops=16)
        assert left == pytest.approx(20 * 16 + 2 - 1)

    def test_the_next_20_of_the_longest_so_far(self, monkeypatch):
        at = Standing("measure", 80, 99, 1, 7)
        left = self.left(monkeypatch, at, samples=1000, loops=16)
        assert left == pytest.approx(20 * 7 + 2 - 1)

    def test_a_timeout_that_was_asked_for_is_of_the_whole_cell(self, monkeypatch):
        at = Standing("verify", 96, 99, 1)
        assert self.left(monkeypatch, at, timeout=5.0) == pytest.approx(1.0)


class TestStanding:
    PHASES = ("allocate", "warm up", "fill", "measure", "verify")

    def said(self, monkeypatch, *steps):
        """What is said of these phases, each begun at its second."""
        said = []
        signs = Signs(said.append)
        times = iter([at for _, at in steps])
        monkeypatch.setattr("linkgauge.engine.standing.time.monotonic", times.__next__)
        for phase, _ in steps:
            signs.enter(phase)
        return said

    def test_each_phase_is_said_as_it_begins(self, monkeypatch):
        steps = [(phase, 10 + number) for number, phase in enumerate(self.PHASES)]
        said = self.said(monkeypatch, *steps)
        assert [(at.phase, at.begun, at.since) for at in said] == [
            (phase, 10, since) for phase, since in steps
        ]
        assert [at.warm_up for at in said] == [0, 0, 1, 1, 1]

    def test_a_cell_begins_with_nothing_of_the_one_before(self, monkeypatch):
        cell = [("allocate", 1), ("warm up", 2), ("measure", 5), ("measure", 7), ("verify", 8)]
        again = self.said(monkeypatch, *cell, ("allocate", 9))[-1]
        assert again == Standing("allocate", begun=9, since=9)

    def test_samples_are_signs_of_life_and_the_longest_is_known(self, monkeypatch):
        samples = [("measure", at) for at in (6, 8, 9)]
        said = self.said(monkeypatch, ("allocate", 3), ("warm up", 5), *samples)
        assert said[-1] == Standing("measure", begun=3, since=9, warm_up=1, longest=2)
        assert len(said) == 5

    def test_short_samples_do_not_wake_the_controller_each_time(self, monkeypatch):
        step = SIGN_SECONDS / 10
        samples = [("measure", 2 + step * number) for number in range(101)]
        said = self.said(monkeypatch, ("allocate", 1), *samples)
        assert 9 <= len(said) - 2 <= 10
        since = [at.since for at in said[1:]]
        assert max(map(sub, since[1:], since)) < SIGN_SECONDS + 1.5 * step

    def test_the_controller_knows_where_its_worker_was_lost(self):
        for phase in self.PHASES:
            named = phase.replace(" ", "-")
            with closing(Supervisor(settings(f"crash sim:1 phase={named}"))) as worker:
                asked = worker._ask("sim", supervisor.Measure((write(0, 1),), SIZE))
                with pytest.raises(WorkerLost):
                    asked.answer(tuple)
                at = asked.standing
                assert at.phase == phase
                assert 0 < at.begun <= at.since <= time.monotonic()
                assert (at.warm_up > 0) == (phase not in ("allocate", "warm up"))

    def test_it_forgets_that_when_it_is_asked_again(self):
        with closing(Supervisor(settings())) as worker:
            worker.measure([write(0, 1)], SIZE)
            process = worker._workers["sim"]
            assert process.standing.phase == "verify"
            process.ask(supervisor.Look())
            assert process.standing == Standing()
            assert process.answer(Inventory).pci


def test_what_a_worker_does_not_foresee_is_told(monkeypatch, capfd):
    broken = process._PROGRAM.replace(
        "main(address",
        "from linkgauge.engine.worker import LocalWorker\n"
        "def fail(self, *asked): raise ZeroDivisionError('a bug')\n"
        "LocalWorker.measure = fail\n"
        "main(address",
    )
    monkeypatch.setattr(process, "_PROGRAM", broken)
    with closing(Supervisor(settings())) as worker:
        (result,) = worker.measure([write(0, 1)], SIZE)
    assert (result.status, "ZeroDivisionError: a bug" in result.reason) == ("error", True)


def test_a_lost_worker_knows_whether_it_was_given_up():
    assert WorkerLost("x", "timeout").kind == "timeout"
    assert WorkerLost("x").kind == "exit"
