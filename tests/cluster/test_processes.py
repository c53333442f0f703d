"""Several processes measure one run: real launches, without GPUs."""

from __future__ import annotations

import os
import re

import pytest

from campaigns import FULL
from launch_kit import by_variables, launch, mpich, openmpi
from linkgauge.benchmarks.processes import BETWEEN_PROCESSES

NAMES = [row.name for row in BETWEEN_PROCESSES]
OF_THE_PAGE = [
    f"multinode_device_to_device_{name}"
    for name in (
        "memcpy_read_ce", "bidirectional_memcpy_read_ce",
        "memcpy_write_ce", "bidirectional_memcpy_write_ce",
        "memcpy_read_sm", "bidirectional_memcpy_read_sm",
        "memcpy_write_sm", "bidirectional_memcpy_write_sm",
        "all_to_one_write_sm", "all_from_one_read_sm",
    )
]  # fmt: skip
QUICK = ("--size", "64K", "--samples", "1", "--loops", "2")


@pytest.mark.parametrize("launcher", [mpich, openmpi] if FULL else [mpich])
def test_four_ranks_move_and_verify_every_byte_of_every_benchmark(tmp_path, launcher):
    ended = launch(
        tmp_path, 4, "run", "--prefix", "multinode", "--backend", "mpi", *QUICK,
        launcher=launcher(),
    )  # fmt: skip
    assert set(ended.exits.values()) == {0}, ended.stderr
    run = ended.run
    assert sorted(result.benchmark for result in run.results) == sorted(NAMES)
    cells = [cell for result in run.results for cell in result.cells]
    assert {cell.status for cell in cells} == {"pass"}
    copies = [cell for cell in cells if cell.operation != "flag-ping-pong"]
    assert all(cell.verified for cell in copies)
    assert [rank.number for rank in run.machine.ranks] == [0, 1, 2, 3]
    assert all(rank.unsure is not None for rank in run.machine.ranks)
    assert ended.stdout.count("results: ") == 1, "rank 0 alone prints"


SHARED = """
import os, sys
from linkgauge.__main__ import main
sys.argv[0] = "linkgauge"
try:
    main()
finally:
    from linkgauge.backends.mpi.world import GIVING_WAY
    print("gives way:", {os.environ.get(name) == value for name, value in GIVING_WAY.items()})
"""


@pytest.mark.parametrize(("ranks", "cpus"), [(3, 1), (2, 2)])
def test_ranks_that_share_cpus_give_way_while_they_wait(tmp_path, ranks, cpus):
    """And a run of which no figure is judged says why."""
    able = sorted(os.sched_getaffinity(0))[:cpus]
    if len(able) < cpus:
        pytest.skip(f"needs {cpus} CPUs")
    ended = launch(
        tmp_path, ranks, "run", "multinode_bisect_write_ce", "--backend", "mpi", *QUICK,
        launcher=["taskset", "-c", ",".join(map(str, able)), *mpich()], program=SHARED,
    )  # fmt: skip
    assert set(ended.exits.values()) == {0}, ended.stderr
    assert ended.stdout.count("gives way: {True}") == (ranks if ranks > cpus else 0)
    host, oversubscription = ended.run.machine.ranks[0].host, ended.run.machine.oversubscription
    why = "no reference for copies between processes of one machine"
    if ranks > cpus:
        assert (oversubscription.ranks, oversubscription.cpus) == (ranks, cpus)
        why = f"{ranks} ranks share {cpus} CPU of {host}"
    assert f"not judged: {why}" in ended.stdout


def test_ranks_of_a_simulated_machine_are_judged_as_one_process_is(tmp_path):
    ended = launch(
        tmp_path, 4, "run", "--machine", "dgx-h200-8", "--fault", "slow sim:3 rate=0.5",
        "multinode_device_to_device_memcpy_write_ce", launcher=by_variables(),
    )  # fmt: skip
    assert ended.exits[0] == 1
    (result,) = ended.run.results
    low = {cell.place for cell in result.cells if cell.verdict == "low"}
    assert low == {cell.place for cell in result.cells if "3" in cell.place}
    assert "fail slow  sim:3" in ended.stdout or "sim:3: clocks" in ended.stdout
    assert "struck nothing" not in ended.stdout


def test_ranks_that_share_no_machine_meet_over_tcp(tmp_path):
    """Each is told that it is alone on its machine: MPI then carries rank 0's address."""
    ended = launch(
        tmp_path, 3, "run", "multinode_bisect_write_ce", "--machine", "ppu-2x2",
        prefix="MPI_LOCALNRANKS=1 MPI_LOCALRANKID=0 ",
    )  # fmt: skip
    assert set(ended.exits.values()) == {0}, ended.stderr
    assert len(ended.run.results[0].cells) == 3


def test_two_launches_at_once_do_not_meet(tmp_path):
    """The first is in the middle of its run while the second begins and ends."""
    run = ("run", "multinode_bisect_write_ce", "--backend", "mpi", *QUICK)
    inner = tmp_path / "inner"
    program = f"""
import os, sys
sys.path.insert(0, {str(__file__.rsplit("/", 2)[0])!r})
from pathlib import Path
from linkgauge.engine.ranks.spanning import SpanningBackend
prepare = SpanningBackend.prepare
def between(backend, *given):
    if os.environ["PMI_RANK"] == "0" and not begun:
        begun.append(True)
        from launch_kit import launch
        assert launch(Path({str(inner)!r}), 2, *{run!r}).exits == {{0: 0, 1: 0}}
    return prepare(backend, *given)
begun = []
SpanningBackend.prepare = between
sys.argv[0] = "linkgauge"
from linkgauge.__main__ import main
main()
"""
    ended = launch(tmp_path / "outer", 2, *run, program=program)
    assert ended.exits == {0: 0, 1: 0}, ended.stderr
    assert (inner / "exit-1").exists()


class TestTools:
    def test_the_page_s_commands_by_open_mpi(self, tmp_path):
        """As printed, but for the hosts, and all ten at once."""
        options = ["-npernode", "4", "--host", "localhost:4", "-mca", "btl_tcp_if_include", "lo"]
        ended = launch(
            tmp_path, 4, "as", "--machine", "ppu-2x2", "sailbandwidth", "-t", *OF_THE_PAGE,
            launcher=[*openmpi(), *options],
        )  # fmt: skip
        assert ended.exits[0] == 0
        assert re.findall(r"^Running (\w+)\.$", ended.stdout, re.MULTILINE) == OF_THE_PAGE
        for name in OF_THE_PAGE:
            sums = re.findall(rf"^SUM {name}(\w*) \d+\.\d\d$", ended.stdout, re.MULTILINE)
            way = "read" if "read" in name else "write"
            both = [f"_{way}1", f"_{way}2", "_total"]
            assert sums == (both if "bidirectional" in name else [""])
        for way in ("->", "<-"):
            assert f"memcpy SM All Gpus {way} GPU(column) total bandwidth (GB/s)" in ended.stdout
