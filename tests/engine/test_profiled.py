"""A worker under a profiler measures as any other, and leaves the profiler's files whatever ends
it."""

import os
import re
import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from engine.test_supervisor import alive, gone
from linkgauge.engine.workers import profiled, supervisor
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.machine.processes import process
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.errors import BackendError
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Profiled
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report
from profiler_kit import LEAVES_NOTHING, REFUSES, WRITES, arguments_of, install

COPY = PlannedCell("0", "0", parse_transfers("host:0 -> host:0 by cpu*1"), Report.FIRST)
SIZE = 1 << 16
KERNEL = re.compile(r"__global__ void(?: __launch_bounds__\([^)]*\))?\s+(\w+)\(([^)]*)\)")
UNDER = Settings((SIZE,), samples=2, loops=1, profiler="nsys")


@pytest.fixture
def bin_(tmp_path):
    return tmp_path / "bin"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


@pytest.fixture
def has(bin_, monkeypatch):
    """Installs a profiler."""

    def profiler(script=WRITES, name="nsys"):
        monkeypatch.setenv("PATH", install(bin_, name, script))

    return profiler


def measured(folder, cells=(COPY,), settings=UNDER):
    """The results of cells, and what was said and left once the profiler had ended."""
    said = []
    with closing(Supervisor(settings)) as worker:
        worker.survey([])
        worker.profile(settings.profiler, folder)
        results = [worker.measure([cell], SIZE)[0] for cell in cells]
        return results, worker.end_profile(said.append), said


@pytest.mark.parametrize(("name", "suffix"), [("nsys", "nsys-rep"), ("ncu", "ncu-rep")])
def test_a_cell_is_measured_and_the_report_is_there(has, folder, bin_, capfd, name, suffix):
    has(name=name)
    under = Settings((SIZE,), samples=2, loops=1, profiler=name)
    (cell,), files, said = measured(folder, settings=under)
    assert (cell.status, len(cell.samples)) == ("pass", 2)
    assert Profiled(name) in cell.notes
    assert files == (f"{name}-1.log", f"{name}-1.{suffix}")
    assert (folder / f"{name}-1.{suffix}").read_text() == "ended with 0\n"
    assert said == [f"waiting for {name} to write its files"]
    assert "".join(capfd.readouterr()) == ""
    assert (folder / f"{name}-1.log").read_text() == f"{name} prints this\n"
    given = arguments_of(bin_, name)
    assert str(folder / f"{name}-1") in " ".join(given)
    if name == "ncu":
        check_kernels(re.compile(given[given.index("--kernel-name") + 1].removeprefix("regex:")))


def check_kernels(profiled):
    """ncu runs a kernel alone: those that wait for somebody, or are watched at work, are left out.
    What a kernel shares with somebody who watches it is volatile."""
    found = {}
    for file in (Path(__file__).parents[2] / "src/linkgauge/kernels").glob("*.cu"):
        text = re.sub(r"#if PROGRESS.*?#endif", "", file.read_text(), flags=re.DOTALL)
        found |= dict(KERNEL.findall(text))
    measured = {name for name in found if profiled.search(name)}
    assert measured == {"arrays", "copy", "chase", "multiply_add", "read", "write"}
    assert not any("volatile" in found[name] for name in measured)
    assert any("volatile" in parameters for parameters in found.values())
    assert profiled.search("filler_of_a_library")


class TestAProfilerThatDoesNotWork:
    def test_costs_a_cell_where_it_worked_before(self, has, folder, monkeypatch):
        has()
        with closing(Supervisor(UNDER)) as worker:
            worker.profile("nsys", folder)
            worker._first.kill()
            has(REFUSES)
            (first,) = worker.measure([COPY], SIZE)
            (second,) = worker.measure([COPY], SIZE)
            has()
            (third,) = worker.measure([COPY], SIZE)
        assert [one.status for one in (first, second, third)] == ["error", "error", "pass"]
        assert "the worker ended, and nsys with exit code 137" in first.reason
        assert "nsys started no worker (exit code 7)" in second.reason

    def test_lets_nobody_else_in(self, has, folder, monkeypatch):
        """An abstract socket has no owner: whoever connects is asked."""
        has()
        monkeypatch.setattr(profiled, "START_SECONDS", 2.0)
        monkeypatch.setattr(os, "geteuid", lambda: -2)
        with (
            closing(Supervisor(UNDER)) as worker,
            pytest.raises(BackendError, match="nsys started no worker"),
        ):
            worker.profile("nsys", folder)

    def test_left_no_report(self, has, folder):
        has(LEAVES_NOTHING)
        (cell,), files, said = measured(folder)
        assert (cell.status, files) == ("pass", ("nsys-1.log",))
        assert said[1] == f"nsys left no report: the importer failed ({folder / 'nsys-1.log'})"


def begun(folder):
    """A worker that has work to do for long, and the process that does it."""
    settings = Settings((SIZE,), samples=10**9, profiler="nsys")
    of = Supervisor(settings)
    of.profile("nsys", folder)
    worker = of._first
    worker.begin(settings)
    worker.ask(supervisor.Measure((COPY,), SIZE))
    return worker, worker._pid


class TestAnEnd:
    def test_by_a_crash_is_told_and_leaves_the_report(self, has, folder):
        has()
        worker, pid = begun(folder)
        os.kill(pid, signal.SIGSEGV)
        with closing(worker), pytest.raises(process.ProcessLost, match="nsys with exit code 139: "):
            worker.answer(list)
        assert (folder / "nsys-1.nsys-rep").read_text() == "ended with 139\n"

    def test_of_a_worker_at_work_lets_it_end_by_itself(self, has, folder):
        """Killed, its exit code would be 137."""
        has()
        worker, pid = begun(folder)
        worker.close()
        assert not alive(pid)
        assert (folder / "nsys-1.nsys-rep").read_text() == "ended with 0\n"

    def test_by_ctrl_c_while_it_writes_ends_all(self, has, folder, monkeypatch):
        has('#!/bin/bash\nwhile [ "${1#-}" != "$1" ] || [ "$1" = profile ]; do shift; done\n'
            '"$@"\nsleep 600\n')  # fmt: skip
        worker, pid = begun(folder)
        wait = worker.process.wait

        def interrupted(timeout=None):
            if timeout is not None:
                raise KeyboardInterrupt
            return wait()

        monkeypatch.setattr(worker.process, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.close()
        assert gone(pid)
        assert worker.process.returncode == -signal.SIGKILL

    def test_of_the_controller_ends_the_worker_and_the_profiler(self, has, folder):
        """A controller that is killed says nothing."""
        has()
        code = (
            "import time, sys\n"
            "from pathlib import Path\n"
            "from linkgauge.engine.workers.profiled import ProfiledProcess\n"
            "from linkgauge.engine.workers.profiled import Reports\n"
            "from linkgauge.model.settings import Surroundings\n"
            f"worker = ProfiledProcess(Reports('nsys', Path({str(folder)!r})), Surroundings())\n"
            "print(worker._pid, worker.process.pid, flush=True)\n"
            "time.sleep(600)\n"
        )
        controller = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        both = [int(word) for word in controller.stdout.readline().split()]
        controller.kill()
        controller.wait()
        controller.stdout.close()
        assert all(map(gone, both))
        assert (folder / "nsys-1.nsys-rep").exists()
