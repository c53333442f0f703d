"""A run that broke off goes on with what is left, and with nothing else."""

import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import uuid
from collections import Counter
from pathlib import Path

import pytest

from cli.test_cli import COPY, ENDLESS, wait_for_its_plan
from command_kit import called, folder_of
from linkgauge.engine.kept.journal import (
    Again,
    Closed,
    Logged,
    MeasuredRepetition,
    Opened,
    assemble,
    read_records,
)
from linkgauge.engine.kept.runs import read_run
from linkgauge.engine.locks import hold
from linkgauge.model.errors import InputError

FILES = ("samples.csv", "samples.bin", "run.json")
FAST = ("--prefix", "host_to_host", "--backend", "host", "--size", "64K", "--samples", "3",
        "--loops", "2", "--untuned")  # fmt: skip


def places(run):
    """How often each cell of the run was measured."""
    return Counter((r.benchmark, c.row, c.column) for r in run.results for c in r.cells)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The folder of a run that came to its end."""
    out = tmp_path_factory.mktemp("whole")
    done = called("run", *FAST, "--label", "mine", "--out", out)
    assert done.returncode == 0, done.stderr
    return folder_of(out)


@pytest.fixture
def broken(whole, tmp_path):
    """The same run, as if it had been killed within its second cell's record."""
    folder = tmp_path / "broken"
    shutil.copytree(whole, folder)
    lines = (whole / "journal.jsonl").read_bytes().splitlines(keepends=True)
    second = [at for at, line in enumerate(lines) if b'"record":"cell"' in line[:20]][1]
    (folder / "journal.jsonl").write_bytes(b"".join(lines[:second]) + lines[second][:40])
    for name in FILES:
        (folder / name).unlink()
    return folder


def test_cut_off_at_any_byte_a_real_journal_reads_up_to_its_last_whole_record(whole):
    data = (whole / "journal.jsonl").read_bytes()
    records = read_records(data)
    first, *others, last = (type(one) for one in records if not isinstance(one, Logged))
    # On a busy machine, cells in doubt are measured again.
    assert (first, {*others} - {Again}, last) == (Opened, {MeasuredRepetition}, Closed)
    for length in range(len(data) + 1):
        count = data.count(b"\n", 0, length)
        if count:
            assert read_records(data[:length]) == records[:count]
        else:
            with pytest.raises(InputError) as refused:
                read_records(data[:length])
            assert len(str(refused.value).splitlines()) == 1


def test_it_measures_what_is_left_and_shows_all(whole, broken):
    done = called("run", "--resume", broken)
    assert done.returncode == 0, done.stderr
    before, after = read_run(whole), read_run(broken)
    assert places(after) == places(before)
    assert max(places(after).values()) == 1
    assert (after.started, after.id, after.command) == (before.started, before.id, before.command)
    assert (len(before.resumed), len(after.resumed)) == (0, 1)
    assert before.kernel_log is not None
    assert after.kernel_log is not None
    records = read_records((whole / "journal.jsonl").read_bytes())
    first = next(record for record in records if isinstance(record, MeasuredRepetition))
    kept = first.cell.samples  # on a busy machine, a cell in doubt is measured once more
    assert after.results[0].cells[0].samples[: len(kept)] == kept
    named = [line.split()[0] for line in done.stdout.splitlines() if line.startswith("host_to_")]
    assert named == [result.benchmark for result in before.results]
    assert {path.name for path in broken.iterdir()} == {p.name for p in whole.iterdir()}


def test_a_run_killed_after_its_last_record_gets_its_files(whole, broken):
    shutil.copy(whole / "journal.jsonl", broken)
    assert called("run", "--resume", broken, "--csv").stdout.startswith("run,label,benchmark")
    for name in FILES:
        assert (broken / name).read_bytes() == (whole / name).read_bytes()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--size", "1M"), "--size 1M disagrees with the run's own (--size 64K)"),
        (("--no-verify",), "--no-verify disagrees with the run's own (no --no-verify)"),
        (("--precision", "3%"), "--precision 0.03 disagrees with the run's own (--precision 0.01)"),
        (("--label", "other"), "--label other disagrees with the run's own (--label mine)"),
        (("--loops", "3"), "--loops 3 disagrees"),
        ((COPY,), f"{COPY} disagrees"),
        (("--size", "lots"), "'lots' is not understood"),
    ],
)
def test_an_option_that_disagrees_is_refused(broken, options, says):
    before = (broken / "journal.jsonl").read_bytes()
    done = called("run", "--resume", broken, *options)
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert says in line
    assert (broken / "journal.jsonl").read_bytes().startswith(before[:-40])


MACHINE = """
source: a test
host:
  cpu_model: A CPU
  nodes:
    - {count: 1, cpus: 8, memory: 64G}
link_kinds:
  pcie: {kind: pcie, speed: 32, width: 16, latency: 300 ns}
devices:
  - {count: 2, model: Card, memory: 64G, memory_rate: 2 TB/s}
links:
  - {kind: pcie, each: sim:0..1, to: host:0}
"""


def test_a_simulated_run_goes_on_with_the_description_and_the_faults_it_began_with(tmp_path):
    file = tmp_path / "mine.yml"
    file.write_text(MACHINE)
    fault = ("--fault", "flip sim:1 offset=77")
    name = "host_to_device_memcpy_ce"
    done = called("run", name, "--machine", file, *fault, "--out", tmp_path)
    assert done.returncode == 1, done.stderr
    folder = folder_of(tmp_path)
    before = read_run(folder)
    lines = (folder / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "journal.jsonl").write_bytes(lines[0])
    file.write_text(MACHINE.replace("width: 16", "width: 8"))
    for given, says in (
        (("--machine", file), "description has changed"),
        (("--fault", "hang sim:0"), "--fault hang sim:0 disagrees"),
    ):
        done = called("run", "--resume", folder, *given)
        assert (done.returncode, says in done.stderr) == (2, True)
    assert called("run", "--resume", folder, *fault).returncode == 1
    assert read_run(folder).results == before.results
    assert read_run(folder).simulated


def test_another_machine_is_refused(broken):
    path = broken / "journal.jsonl"
    opened = json.loads(path.read_bytes().splitlines()[0])
    name = opened["machine"]["host"]["hostname"]
    path.write_bytes(path.read_bytes().replace(b'"hostname":"', b'"hostname":"not-'))
    before = path.read_bytes()
    done = called("run", "--resume", broken)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2
    assert f"host name was not-{name}, is now {name}" in line
    assert path.read_bytes() == before[: before.rfind(b"\n") + 1]


def test_a_run_that_still_goes_on_is_not_gone_on_with(tmp_path):
    command = [sys.executable, "-m", "linkgauge", "run", *ENDLESS, "--out", str(tmp_path)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    wait_for_its_plan(running, tmp_path)
    assert running.poll() is None
    done = called("run", "--resume", folder_of(tmp_path))
    running.send_signal(signal.SIGINT)
    running.communicate(timeout=60)
    assert done.returncode == 4
    assert "still in progress in another process" in done.stderr


HOLDING = """
import sys
import linkgauge.engine.locks as locks
key = sys.argv.pop(1)
locks.devices_measured = lambda machine, plan: {key: "cuda:0"}
from linkgauge.cli.main import main
main()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="locks are Linux' alone")
@pytest.mark.parametrize("command", ["run", "copy", "resume"])
def test_a_device_that_another_run_holds_is_not_measured(tmp_path, broken, command):
    key = str(uuid.uuid4())
    arguments = {
        "run": ["run", *FAST, "--out", str(tmp_path / "out")],
        "copy": ["copy", "host:0 -> host:0 by cpu", "--size", "64K", "--samples", "3"],
        "resume": ["run", "--resume", str(broken)],
    }[command]
    held = [sys.executable, "-c", HOLDING, key, *arguments]
    with hold({key: "cuda:0"}):
        done = subprocess.run(held, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout) == (4, "")
        assert f"cuda:0 ({key}) is being measured by process" in done.stderr
        assert not (tmp_path / "out").exists()
        waiting = subprocess.Popen(
            [*held, "--wait"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert waiting.stderr.readline().startswith("waiting: cuda:0")
    out, errors = waiting.communicate(timeout=120)
    # On a busy machine, cells in doubt are measured once more.
    assert (waiting.returncode, re.sub(r"measuring .* once more, to be sure\n", "", errors)) == (
        0,
        "",
    )
    assert "GB/s" in out


MANY_SAMPLES = ("run", "--prefix", "host_to_host", "--backend", "host", "--size", "4K", "--samples",
                "1500", "--loops", "1", "--untuned")  # fmt: skip


@pytest.fixture
def one_cpu():
    """Threads that meet at a barrier a thousand times get on badly where other tests run, too."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    yield
    os.sched_setaffinity(0, before)


def check_full(done, folder, strerror):
    """Exit 3 with the path; what was written is valid, and the run goes on where there is room."""
    assert done.returncode == 3
    (line,) = done.stderr.splitlines()
    assert line.startswith("linkgauge: cannot write ")
    assert f"journal.jsonl: {strerror}" in line
    assert "linkgauge run --resume " in line
    broken = assemble(read_records((folder / "journal.jsonl").read_bytes()))
    assert 0 < len(places(broken)) < 3
    assert called("run", "--resume", folder).returncode == 0
    assert list(places(read_run(folder)).values()) == [1, 1, 1]


def test_a_journal_that_may_not_grow_ends_the_run_and_costs_nothing_written(tmp_path, one_cpu):
    done = subprocess.run(
        [sys.executable, "-m", "linkgauge", *MANY_SAMPLES, "--out", str(tmp_path)],
        capture_output=True, text=True, check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)),
    )  # fmt: skip
    check_full(done, folder_of(tmp_path), "File too large")


@pytest.mark.parametrize("name", FILES)
def test_a_full_disk_at_a_file_of_results_says_how_to_go_on(tmp_path, monkeypatch, name):
    plain = Path.open

    def full(path, mode="r", **more):
        if path.name.startswith(name) and mode == "wb":
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))
        return plain(path, mode, **more)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", full)
        done = called("run", "device_local_copy", "--machine", "riscv-2gpu", "--size", "1M",
                      "--samples", "2", "--out", tmp_path)  # fmt: skip
    folder = folder_of(tmp_path)
    line = done.stderr.splitlines()[-1]
    assert done.returncode == 3
    assert line.startswith(f"linkgauge: cannot write {folder / name}: No space left on device: ")
    assert not (folder / "run.json").exists(), "it is there beside its samples alone"
    advice = line.partition("to resume: ")[2].split()
    assert advice[-3:] == ["run", "--resume", str(folder)]
    assert called(*advice[-3:]).returncode == 0
    assert {*FILES} <= {path.name for path in folder.iterdir()}
