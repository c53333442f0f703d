"""The command line as a user types it, in a process of its own: output, exit codes, refusals."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import jsonschema
import pytest

from command_kit import called, linkgauge

ROOT = Path(__file__).parents[2]
FAST = ("--size", "1M", "--samples", "6", "--loops", "2", "--untuned")
COPY = "host_to_host_memcpy_copy_cpu"


def test_a_run_leaves_its_files_and_a_valid_document(tmp_path):
    done = linkgauge("run", COPY, *FAST, "--backend", "host", "--out", tmp_path, "--label", "A b")
    assert done.returncode == 0, done.stderr
    assert "\nhost_to_host_memcpy_copy_cpu  " in done.stdout
    (folder,) = (tmp_path / "cpu" / "a-b").iterdir()
    assert {p.name for p in folder.iterdir()} == {
        "run.json", "samples.bin", "samples.csv", "journal.jsonl",
    }  # fmt: skip
    document = json.loads(called("show", folder, "--json").stdout)
    for each in (document, json.loads((folder / "run.json").read_text())):
        jsonschema.validate(each, json.loads((ROOT / "docs" / "run.schema.json").read_text()))
    (cell,) = document["results"][0]["cells"][:1]
    assert (cell["status"], cell["verified"], cell["loops"]) == ("pass", True, 2)
    assert (cell["stopped"], len(cell["samples"])) == ("samples", 6)
    assert cell["placement"][0]["memory"] == "host:0"
    assert (folder / "samples.csv").read_text().count(COPY) == 6 * len(
        document["results"][0]["cells"]
    )

    shown = called("show", folder)
    assert (shown.returncode, COPY in shown.stdout) == (0, True)
    assert json.loads(called("show", folder, "--json").stdout) == document
    journal = called("show", folder / "journal.jsonl", "--json")
    assert json.loads(journal.stdout) == document


def test_another_package_adds_a_command_by_a_room(tmp_path):
    (tmp_path / "other.py").write_text(
        "from linkgauge.cli.options import Options, option\n"
        "from linkgauge.rooms import Room\n"
        "ROOM = Room('other', {'hello': 'other:hello', 'typed': 'other:typed'})\n"
        "class Greeting(Options):\n    to: str = option('Output', 'Whom to greet.', 'NAME')\n"
        "def hello(asked: Greeting) -> int:\n    print('hello', asked.to)\n    return 4\n"
        "def typed(name: str) -> int: pass\n"
    )
    (tmp_path / "other-1.dist-info").mkdir()
    (tmp_path / "other-1.dist-info/METADATA").write_text("Name: other\nVersion: 1\n")
    points = "[linkgauge.rooms]\nother = other:ROOM\nbroken = nowhere:ROOM\n"
    (tmp_path / "other-1.dist-info/entry_points.txt").write_text(points)
    done = linkgauge("hello", "--to", "all", PYTHONPATH=tmp_path)
    assert (done.returncode, done.stdout) == (4, "hello all\n"), done.stderr
    assert done.stderr.startswith("linkgauge: nowhere:ROOM of other 1 is left out: ModuleNotFound")
    done = linkgauge("typed", PYTHONPATH=tmp_path)
    assert done.returncode == 2
    said = (
        "the command 'typed' of other 1 is left out: TypeError: other:typed is no function of one"
    )
    assert said in done.stderr


def wait_for_its_plan(process, tmp_path):
    """Walks, because files come and go below the folder, which `rglob` takes ill."""
    while process.poll() is None:
        there = [Path(at) for at, _, names in os.walk(tmp_path) if "journal.jsonl" in names]
        if any((at / "journal.jsonl").read_bytes().endswith(b"\n") for at in there):
            break
        time.sleep(0.02)


def interrupted(tmp_path, *arguments, number=signal.SIGINT, **options):
    """A run all of whose processes get a signal once its plan is in the journal: its exit code,
    stdout and stderr."""
    command = [sys.executable, "-m", "linkgauge", *arguments, "--out", str(tmp_path)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        **options,
    )  # fmt: skip
    wait_for_its_plan(process, tmp_path)
    os.killpg(process.pid, number)
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err


ENDLESS = ("--prefix", "host_to_host", "--size", "1M", "--backend", "host", "--untuned",
           "--samples", "1000000000")  # fmt: skip


@pytest.mark.parametrize(
    ("number", "code", "endless"),
    [(signal.SIGINT, 130, "--samples"), (signal.SIGINT, 130, "--loops"),
     (signal.SIGTERM, 143, "--samples"), (signal.SIGHUP, 129, "--samples")],
)  # fmt: skip
def test_what_was_measured_before_a_signal_is_kept(tmp_path, number, code, endless):
    """Also within a sample: the first cell would never end, by its samples or by its loops."""
    words = (*ENDLESS[:-2], endless, ENDLESS[-1])
    ended, out, err = interrupted(tmp_path, "run", *words, number=number)
    assert (ended, "Traceback" in err) == (code, False), err
    assert "interrupted" in out
    assert "linkgauge run --resume" in out
    (path,) = tmp_path.rglob("run.json")
    assert json.loads(path.read_text())["finished"] is None
    assert called("show", path).returncode == 130


def test_a_hang_up_that_nohup_ignores_stays_ignored(tmp_path):
    code, out, err = interrupted(
        tmp_path, "run", COPY, *FAST, "--backend", "host", number=signal.SIGHUP,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    )  # fmt: skip
    assert code == 0, err
    assert "1 cell measured" in out


def test_a_terminal_that_goes_away_does_not_cost_the_run(tmp_path):
    ours, theirs = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "linkgauge", "run", *ENDLESS, "--out", str(tmp_path)],
        stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(theirs)
    wait_for_its_plan(process, tmp_path)
    os.close(ours)
    assert process.wait(60) == 129
    (path,) = tmp_path.rglob("run.json")
    assert json.loads(path.read_text())["finished"] is None


def unread(*arguments):
    """The exit code of a command whose output nobody reads, and what it says on stderr."""
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", *map(str, arguments)],
        stdout=theirs, stderr=subprocess.PIPE, text=True, check=False, timeout=120,
    )  # fmt: skip
    os.close(theirs)
    return done.returncode, done.stderr


SIMULATED = ("--machine", "ppu-8")
BROKEN = ("--fault", "crash sim:1")


@pytest.mark.parametrize(
    ("code", "arguments"),
    [
        (0, ("list", "--json")),
        (0, ("devices", *SIMULATED)),
        (0, ("run", "device_local_copy", *SIMULATED)),
        (3, ("run", "device_local_copy", *SIMULATED, *BROKEN, "--json")),
        (3, ("run", "device_local_copy", *SIMULATED, *BROKEN, "--csv")),
        (3, ("copy", "sim:0 -> sim:1 by ce", *SIMULATED, *BROKEN)),
        (4, ("copy", "host:0 -> host:0 by cpu*9999", *FAST)),
        (1, ("traffic", *SIMULATED, "--min-device-bandwidth", "100000")),
        (1, ("doctor", "--machine", "vm-degraded")),
        (3, ("as", *SIMULATED, *BROKEN, "nvbandwidth", "-t", "device_local_copy")),
    ],
)
def test_a_command_that_nobody_reads_has_its_own_exit_code(tmp_path, code, arguments):
    keeps = ("--out", tmp_path) if arguments[0] in ("run", "copy", "traffic") else ()
    found, err = unread(*arguments, *keeps)
    assert (found, "Traceback" in err, "Errno" in err) == (code, False, False)
    for path in tmp_path.rglob("run.json"):
        assert called("show", path).returncode == code
    assert any(tmp_path.rglob("run.json")) == bool(keeps)


def test_a_reader_that_goes_away_does_not_cost_the_run(tmp_path):
    command = f"{sys.executable} -m linkgauge run --prefix host_threads --backend host"
    fast = f"{' '.join(FAST)} --out {tmp_path}"
    subprocess.run(f"{command} {fast} | true", shell=True, check=True, timeout=120)
    (path,) = tmp_path.rglob("run.json")
    assert json.loads(path.read_text())["finished"] is not None
    done = subprocess.run(
        ["/bin/sh", "-c", f"{sys.executable} -m linkgauge list | head -1"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert (done.stderr, len(done.stdout.splitlines())) == ("", 1)


def test_text_in_another_encoding_is_no_trouble(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", "run", COPY, *FAST, "--backend", "host",
         "--out", os.fsencode(tmp_path) + b"/bad\xff\xc3"],
        capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(list(tmp_path.rglob("run.json"))) == 1


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_installed_once(shell, tmp_path):
    for _ in range(2):
        done = linkgauge("--install-completion", HOME=str(tmp_path), SHELL=f"/usr/bin/{shell}")
        said, _, path = done.stdout.splitlines()[0].rpartition(" ")
        assert (done.returncode, said) == (0, f"{shell} completion installed in"), done.stderr
    assert f"_LINKGAUGE_COMPLETE={shell}_complete" in Path(path).read_text()
    started = [line for path in tmp_path.glob(".*rc") for line in path.read_text().splitlines()]
    assert len(list(filter(None, started))) == (0 if shell == "fish" else 1)


def test_completion_of_another_shell_is_refused_with_its_remedy():
    done = linkgauge("--show-completion", SHELL="/bin/sh")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("set SHELL to one, as in SHELL=bash\n")


CALLER = """
import sys
from linkgauge.__main__ import main
print("before")
kept = open("kept", "w")
kept.write("whole")  # written when Python frees it
try:
    main()
finally:
    print("after")
"""


def test_a_program_that_calls_the_command_line_goes_on_and_loses_nothing(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", CALLER, "--version"], capture_output=True, text=True, check=False,
        cwd=tmp_path,
    )  # fmt: skip
    before, *_, after = done.stdout.splitlines()
    assert (done.returncode, before, after) == (0, "before", "after")
    assert (tmp_path / "kept").read_text() == "whole"
