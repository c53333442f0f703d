"""Real processes with emulated GPUs, each as if on a machine of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from launch_kit import launch, mpich
from linkgauge.backends.cuda.rank import BY_FABRIC
from linkgauge.model.notes import Remark

WRITE = "multinode_device_to_device_memcpy_write_ce"
BOTH = "multinode_device_to_device_bidirectional_memcpy_write_sm"
FULL = os.environ.get("LINKGAUGE_CAMPAIGN") == "full"
QUICK = ("--size", "64K", "--samples", "1", "--loops", "2")
PROGRAM = """
import ctypes, os, signal, sys
from pathlib import Path
from types import SimpleNamespace

sys.path.insert(0, {tests!r})
rank = int(os.environ["PMI_RANK"])
os.environ["LINKGAUGE_HOST"] = f"node{{rank}}"

from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.cuda import rank as ranked
from linkgauge.backends.cuda.nccl import collectives

backend, bindings = emulated(2)
bindings.answers["cuDeviceGetPCIBusId"] = [b"%04x:1b:00.0" % (os.getpid() % 65536)]
bindings.answers["cuDeviceTotalMem"] = [1 << 30]
ranked.open_backend = lambda *arguments: backend
# Events are in the order in which they were made.
bindings.cuEventElapsedTime = lambda start, end: (Status.CUDA_SUCCESS, float(end - start))
by_nccl, dies = {by_nccl!r}, {dies!r}
if by_nccl:
    bindings.failing["cuMemCreate"] = Status.CUDA_ERROR_NOT_PERMITTED


class Nccl:
    version, path = "2.28.9", "libnccl.so.2"
    token = staticmethod(lambda: b"token")
    join = staticmethod(lambda *arguments: [SimpleNamespace(ptr=1)])

    def call(self, name, *words):
        if rank == dies:
            os.kill(os.getpid(), signal.SIGKILL)
        while True:  # as a call whose other side never comes
            ctypes.CDLL(None).pause()


collectives.open_nccl = Nccl
sys.argv[0] = "linkgauge"
from linkgauge.__main__ import main
main()
"""


def program(*, by_nccl=False, dies=None):
    tests = str(Path(__file__).parents[1])
    return PROGRAM.format(tests=tests, by_nccl=by_nccl, dies=dies)


def test_gpus_of_one_nvlink_domain_map_each_other_s_memory(tmp_path):
    ended = launch(tmp_path, 2, "run", WRITE, BOTH, *QUICK, program=program())
    assert set(ended.exits.values()) == {0}, ended.stdout + ended.stderr
    run = ended.run
    assert [one.host for one in run.machine.ranks] == ["node0", "node1"]
    cells = [cell for result in run.results for cell in result.cells]
    assert len(cells) == 4
    assert {(cell.status, cell.verified) for cell in cells} == {("pass", True)}
    assert all(Remark(BY_FABRIC) in cell.notes for cell in cells)


@pytest.mark.parametrize("dies", [0, 1] if FULL else [1])
def test_a_rank_that_dies_while_nccl_moves_bytes_is_named(tmp_path, dies):
    """The other one waits in NCCL, and would for ever."""
    ended = launch(
        tmp_path, 2, "run", WRITE, *QUICK, "--timeout", "5",
        launcher=[*mpich(), "-disable-auto-cleanup"], program=program(by_nccl=True, dies=dies),
    )  # fmt: skip
    assert ended.exits == {dies: 137, 1 - dies: 3}, ended.stderr
    assert ended.run.lost is not None
    assert (ended.run.lost.number, ended.run.lost.host) == (dies, f"node{dies}")


@pytest.mark.skipif(not FULL, reason="some seconds: LINKGAUGE_CAMPAIGN=full")
def test_a_rank_that_nccl_never_lets_go_of_ends_the_run_in_time(tmp_path):
    ended = launch(
        tmp_path, 2, "run", WRITE, *QUICK, "--timeout", "1",
        launcher=[*mpich(), "-disable-auto-cleanup"], program=program(by_nccl=True),
    )  # fmt: skip
    assert set(ended.exits.values()) == {3}, ended.stderr
    assert ended.run.lost is not None
    assert "is stuck after" in ended.run.lost.how
