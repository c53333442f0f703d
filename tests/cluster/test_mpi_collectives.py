"""Every collective between the memories of hosts, in real launches: each result is checked.

LINKGAUGE_CAMPAIGN=full does so by both launchers throughout."""

from __future__ import annotations

import os
import shutil
from collections import Counter

import pytest

from launch_kit import launch, mpich, openmpi
from linkgauge.backends.mpi.calls import OPERATIONS, TYPES
from linkgauge.model.operations.collective import COLLECTIVE_NAMES, NUMBERS, REDUCTIONS

NAMES = list(COLLECTIVE_NAMES)
QUICK = ("--backend", "mpi", "--samples", "1", "--loops", "2", "--size")

FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
campaign = pytest.mark.skipif(not FULL, reason="takes long: LINKGAUGE_CAMPAIGN=full")
ALTERING = """
import ctypes, os, sys
from linkgauge.__main__ import main
from linkgauge.backends.mpi.collectives import MpiCollective

make = MpiCollective._make

def altered(collective, calls, *those):
    made = make(collective, calls, *those)
    if os.environ.get("PMI_RANK") == "2" and calls is collective._once:
        ctypes.c_ubyte.from_address(collective._calls.result + {byte}).value ^= 1
    return made

MpiCollective._make = altered
sys.argv[0] = "linkgauge"
main()
"""
"""A linkgauge whose rank 2 receives one element that is not the one that was sent."""


def carried_out(folder, ranks, *names, sizes="8,4K", **options):
    return launch(folder, ranks, "run", *names, *QUICK, sizes, **options)


def either():
    """Open MPI, whose waiting ranks give way at once; where it is not installed, MPICH."""
    return openmpi() if shutil.which("mpirun.openmpi") else mpich()


LAUNCHERS = [mpich, openmpi] if FULL else [either]


def cells_of(ended):
    return [cell for result in ended.run.results for cell in result.cells]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_four_ranks_carry_out_every_collective_and_check_every_element(tmp_path, launcher):
    ended = carried_out(tmp_path, 4, *NAMES, launcher=launcher())
    assert set(ended.exits.values()) == {0}, ended.stderr
    assert [result.benchmark for result in ended.run.results] == NAMES
    cells = cells_of(ended)
    assert {(cell.status, cell.verified, cell.wrong) for cell in cells} == {("pass", True, 0)}
    ways = Counter((cell.operation.collective, cell.operation.in_place) for cell in cells)
    both = [name for name in NAMES if name not in ("alltoall", "sendrecv")]
    assert ways == {(name, way): 2 for name in both for way in (False, True)} | {
        ("alltoall", False): 2,
        ("sendrecv", False): 2,
    }
    for cell in cells:
        assert [one.rank for one in cell.iterations] == [0, 1, 2, 3]
        (count,) = {len(one.samples) for one in cell.iterations}
        assert count >= 4
        assert min(min(one.samples) for one in cell.iterations) > 0


@campaign
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_three_ranks_do_all_but_what_takes_a_power_of_two(tmp_path, launcher):
    ended = carried_out(tmp_path, 3, *NAMES, launcher=launcher())
    assert set(ended.exits.values()) == {0}, ended.stderr
    assert {result.benchmark for result in ended.run.results if result.status == "skip"} == {
        "hypercube"
    }
    assert {(cell.status, cell.wrong) for cell in cells_of(ended)} == {("pass", 0)}


@campaign
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_type_and_reduction_is_carried_out_or_skipped_with_the_reason(tmp_path, launcher):
    how = "--types", "all", "--reductions", "all"
    ended = carried_out(tmp_path, 4, "all_reduce", *how, sizes="4K", launcher=launcher())
    assert set(ended.exits.values()) == {0}, ended.stderr
    cells = cells_of(ended)
    assert len(cells) == 2 * len(NUMBERS) * len(REDUCTIONS)
    for cell in cells:
        has_it = cell.operation.type in TYPES and cell.operation.reduction in OPERATIONS
        assert (cell.status, cell.wrong) == (("pass", 0) if has_it else ("skip", None)), cell
        if not has_it:
            assert cell.reason.startswith("MPI has no ")


@campaign
@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_groups_work_at_the_same_time_each_by_itself(tmp_path, launcher):
    """Ranks 0 and 2, and 1 and 3; each of a group is the root once."""
    how = *"--types int8 --roots 0,1 --aggregate 3 --blocking --split".split(), "MOD 2"
    ended = carried_out(tmp_path, 4, *NAMES, *how, sizes="4K", launcher=launcher())
    assert set(ended.exits.values()) == {0}, ended.stderr
    cells = cells_of(ended)
    assert {(cell.status, cell.wrong) for cell in cells} == {("pass", 0)}
    assert {cell.operation.root for cell in cells} == {None, 0, 1}
    assert "MPI_Barrier follows each iteration" in ended.stdout


def test_one_wrong_element_of_one_rank_is_found(tmp_path):
    ended = carried_out(tmp_path, 4, "all_gather", program=ALTERING.format(byte=4 * 257))
    assert ended.exits[0] == 1, ended.stderr
    large = [cell for cell in cells_of(ended) if cell.bytes == 4096]
    assert {(cell.status, cell.verified, cell.wrong) for cell in large} == {("fail", False, 1)}
    assert {cell.reason for cell in large} == {"1 element is wrong, first element 257 of rank 2"}
