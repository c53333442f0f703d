"""What libraries print in workers, at whatever moment, goes to the run's folder."""

from contextlib import closing

import pytest

from command_kit import called, with_processes
from engine.test_supervisor import settings
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.machine.processes import process

CHATTY = """import atexit
import os
import sys
print("vendor \\x1b[31mbanner")
atexit.register(lambda: print("leaked 27 instances", file=sys.stderr))
atexit.register(lambda: os.write(2, b"from C\\n"))
"""
SAID = ("vendor ", "leaked 27 instances", "from C")


@pytest.fixture(autouse=True)
def _chatty(monkeypatch):
    """A worker whose libraries print as they load and as they end."""
    program = process._PROGRAM.replace("import os\nimport sys\n", CHATTY, 1)
    assert program != process._PROGRAM
    monkeypatch.setattr(process, "_PROGRAM", program)
    with_processes(monkeypatch)


def test_without_one_it_does_not_mix_with_a_document(capfd):
    with closing(Supervisor(settings())) as worker:
        worker.survey(["sim"])
    out, err = capfd.readouterr()
    assert out == ""
    assert all(words in err for words in SAID)
    assert "\x1b" not in err


def test_a_run_keeps_it_beside_its_results(tmp_path):
    done = called("run", "host_to_device_memcpy_ce", "--machine", "ppu-8", "--samples", "1",
                  "--fault", "hang sim:0 cells=99", "--no-report", "--out", tmp_path)  # fmt: skip
    assert done.returncode == 0
    (kept,) = tmp_path.rglob("output.log")
    assert (kept.parent / "run.json").exists()
    assert "leaked" in kept.read_text()
    assert "leaked" not in done.stdout + done.stderr
