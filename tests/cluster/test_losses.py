"""A rank that ends, or falls silent, ends the run: the others end with exit 3 in time. Rank 0 keeps
what was measured and names the rank; of rank 0, each other rank does, and writes nothing. The
launcher leaves the other ranks alone."""

from __future__ import annotations

import random
import re
import signal

import pytest

from campaigns import FULL, trials
from command_kit import called
from launch_kit import by_variables, harmed, launch, mpich, openmpi
from linkgauge.cli.main import application

RUN = ("run", "multinode_device_to_device_memcpy_write_ce", "--size", "64K", "--samples", "20")
LIMIT = ("--timeout", "5")
campaign = pytest.mark.skipif(not FULL, reason="takes long: LINKGAUGE_CAMPAIGN=full")
HANGS = 120
"""Seconds that nobody may wait."""
DIES_EARLY = """
import os, signal, sys, time
names = "LINKGAUGE_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK"
number = next((int(os.environ[name]) for name in names if name in os.environ), -1)
if {rank} == number:  # once the others have begun, and have had the time to see it
    while len([name for name in os.listdir() if name.startswith("begun-")]) < 2:
        time.sleep(0.1)
    time.sleep(6.0)
    os.kill(os.getpid(), signal.SIGKILL)
open(f"begun-{{number}}", "w").close()
from linkgauge.__main__ import main
sys.argv[0] = "linkgauge"
main()
"""
PHASES = {
    "init": ("start", 1, "joining"),
    "exchange": ("Open", 1, "opening devices"),
    "warm-up": ("Begin", 1, "warming up"),
    "measuring": ("Begin", 9, "measuring"),
    "gathering": ("Mismatch", 1, "verifying"),
}
"""Where a rank is when it dies: at which command, and what the run is then said to be doing."""


MPI = ("--backend", "mpi")
SIMULATED = ("--machine", "ppu-2x2")


def launcher():
    return [*mpich(), "-disable-auto-cleanup"]


def lost(tmp_path, rank, how, phase, backend=SIMULATED):
    """Simulated ranks take no MPI."""
    at, count, _ = PHASES[phase]
    return launch(
        tmp_path, 3, *RUN, *backend, *LIMIT,
        launcher=launcher() if backend is MPI else by_variables(),
        program=harmed(rank, how, at, count),
    )  # fmt: skip


def names(ended, rank, doing):
    """That every other rank ended with 3, and that what is kept names this one."""
    assert {code for number, code in ended.exits.items() if number != rank} == {3}
    (journal,) = ended.journals
    run = ended.run
    assert run.lost is not None
    assert run.lost.number == rank
    assert run.lost.doing == doing
    assert run.lost.host
    assert shown(journal.parent) == 3
    return run.lost


def shown(folder):
    try:
        return application()(["show", str(folder)], standalone_mode=False)
    except SystemExit as end:
        return end.code


AFTER_THE_PLAN = [phase for phase in PHASES if phase not in ("init", "exchange")]


@pytest.mark.parametrize("phase", AFTER_THE_PLAN if FULL else ["measuring"])
def test_a_rank_that_dies_is_named(tmp_path, phase, capsys):
    ended = lost(tmp_path, 1, "SIGKILL", phase, MPI)
    at = names(ended, 1, PHASES[phase][2])
    assert at.process is not None
    assert "rank 1 (" in capsys.readouterr().out


@pytest.mark.parametrize("phase", ["init", "exchange"] if FULL else ["exchange"])
def test_a_rank_that_dies_before_there_is_a_plan_is_named_and_nothing_is_kept(tmp_path, phase):
    ended = lost(tmp_path, 1, "SIGKILL", phase)
    assert ended.exits == {0: 3, 1: 137, 2: 3}
    assert re.search(rf"linkgauge: rank 1( \(.*\))? ended while {PHASES[phase][2]}", ended.stderr)
    assert not ended.journals


def name_rank_0(ended, how):
    """That each other rank named rank 0, and that none wrote an end to what rank 0 left."""
    for rank in (1, 2):
        said = [one for one in ended.stderr.splitlines() if f"linkgauge: rank {rank}: " in one]
        assert [re.search(r": rank 0 \([^)]*process \d+\) (.*)", one)[1] for one in said] == [
            f"{how} while controlling the run"
        ]
        assert ended.exits[rank] == 3
    for journal in ended.journals:
        assert ended.run.finished is ended.run.lost is None
        assert not (journal.parent / "run.json").exists()


@pytest.mark.parametrize("phase", ["exchange", "measuring"] if FULL else ["measuring"])
def test_a_rank_0_that_dies_is_named_by_each_other_rank(tmp_path, phase):
    ended = lost(tmp_path, 0, "SIGKILL", phase)
    assert ended.exits == {0: 128 + signal.SIGKILL, 1: 3, 2: 3}
    name_rank_0(ended, "ended")
    assert len(ended.journals) == (phase == "measuring")


STARTS = (launcher, mpich, by_variables)
SILENT = [(rank, start, trial) for rank in range(1, 4) for start in STARTS for trial in range(5)]


@pytest.mark.parametrize(("rank", "start", "trial"), SILENT if FULL else [(2, by_variables, 0)])
def test_a_rank_that_falls_silent_is_named_not_those_that_wait_for_it(tmp_path, rank, start, trial):
    """Whichever it is, though the launcher may end all others when it sees one die, and with or
    without MPI."""
    count = random.Random(trial).randrange(2, 12)
    ended = launch(
        tmp_path, 4, "run", "--machine", "ppu-2x2", "--prefix", "multinode",
        "--size", "64K,1M,16M", "--timeout", "5", launcher=start(),
        program=harmed(rank, "SIGSTOP", "Begin", count, ranks=4),
    )  # fmt: skip
    others = set(range(4)) - {rank}
    assert {other: ended.exits[other] for other in others} == dict.fromkeys(others, 3)
    run = ended.run
    assert run.lost is not None
    assert run.lost.number == rank
    assert run.lost.how == "gives no sign of life after 5 s"
    said = ended.stdout + ended.stderr
    assert said.count(f"rank {rank} (") >= 1
    assert run.finished is not None
    if FULL:
        (journal,) = ended.journals
        took = journal.stat().st_mtime - (tmp_path / "stopped").stat().st_mtime
        print(f"rank {rank} by {start.__name__}: named after {took:.2f} s")
        assert took <= 5 + 5


@pytest.mark.parametrize("phase", ["exchange", "measuring"] if FULL else ["measuring"])
def test_a_silent_rank_0_is_named_by_each_other_rank(tmp_path, phase):
    ended = lost(tmp_path, 0, "SIGSTOP", phase)
    name_rank_0(ended, "gives no sign of life after 5 s")


EARLY = [(rank, start) for rank in range(2) for start in (mpich, openmpi, by_variables)]


@pytest.mark.parametrize(("rank", "start"), EARLY if FULL else [(0, by_variables), (1, mpich)])
def test_a_rank_that_dies_before_it_joins_is_not_waited_for(tmp_path, rank, start):
    """Its process can be seen to have ended, long before the time to appear is over."""
    options = {mpich: ["-disable-auto-cleanup"], openmpi: ["--enable-recovery"]}.get(start, [])
    ended = launch(
        tmp_path, 3, *RUN, "--machine", "ppu-2x2", "--timeout", str(HANGS),
        launcher=[*start(), *options], seconds=HANGS,
        program=DIES_EARLY.format(rank=rank),
    )  # fmt: skip
    assert ended.exits == {0: 3, 1: 3, 2: 3, rank: 128 + signal.SIGKILL}
    named = re.findall(rf"linkgauge: .*rank {rank} \(.*\) ended while joining", ended.stderr)
    assert len(named) == (1 if rank else 2), ended.stderr
    assert not ended.journals, "nothing was measured"


def test_a_run_of_several_ranks_is_not_resumed(tmp_path):
    """Neither by one process nor by all ranks; the refusal says what to do instead."""
    ended = lost(tmp_path, 1, "SIGKILL", "measuring")
    folder = ended.journals[0].parent
    before = ended.journals[0].read_bytes()
    alone = called("run", "--resume", folder)
    again = launch(tmp_path, 3, "run", "--resume", str(folder), launcher=by_variables())
    assert (alone.returncode, again.exits) == (2, {0: 2, 1: 2, 2: 2})
    for said in (alone.stderr, again.stderr):
        (line,) = said.splitlines()
        assert "--resume works with one process only: start a new run of all ranks" in line
        assert f"`linkgauge show {folder}` shows what it measured" in line
    assert ended.journals[0].read_bytes() == before


def test_a_rank_that_fails_unexpectedly_is_named_with_its_error(tmp_path):
    ended = lost(tmp_path, 1, "raise", "gathering")
    at = names_without_exit(ended)
    assert at.number == 1
    assert "RuntimeError: out of order" in at.how


def names_without_exit(ended):
    assert ended.exits[0] == 3
    run = ended.run
    assert run.lost is not None
    return run.lost


SOMETIME = """
import os, random, signal, sys, threading, time
if int(os.environ["PMI_RANK"]) == {rank}:
    threading.Timer({delay}, os.kill, (os.getpid(), signal.SIGKILL)).start()
sys.argv[0] = "linkgauge"
from linkgauge.__main__ import main
main()
"""


@campaign
@pytest.mark.parametrize("seed", range(trials("ranks: killed at any moment, the loss is named")))
def test_at_any_moment(tmp_path, seed):
    draw = random.Random(seed)
    rank, delay = draw.randrange(4), draw.uniform(0, 3.0)
    ended = launch(
        tmp_path, 4, "run", "--prefix", "multinode_device_to_device_memcpy", "--backend", "mpi",
        "--size", "64K", "--max-time", "0.2", *LIMIT,
        launcher=launcher(), program=SOMETIME.format(rank=rank, delay=delay),
    )  # fmt: skip
    others = {code for number, code in ended.exits.items() if number != rank}
    if ended.exits[rank] != 137:  # the run was over
        assert others == {ended.exits[rank]}
        return
    assert others == {3}, ended.stderr
    assert f"rank {rank} " in ended.stdout + ended.stderr
    if rank and ended.journals:
        assert ended.run.lost is not None
        assert ended.run.lost.number == rank
