"""Collectives by torch.distributed between real processes: torch's `cpu`, by gloo."""

import pytest

from launch_kit import launch, mpich

pytestmark = pytest.mark.ai
pytest.importorskip("torch")

QUICK = ("--size", "64K", "--samples", "1", "--loops", "2")
NAMES = ("all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "alltoall")


def test_two_ranks_carry_out_and_check_every_collective_that_torch_has(tmp_path):
    ended = launch(
        tmp_path, 2, "run", *NAMES, "gather", "--backend", "torch", *QUICK, launcher=mpich()
    )
    assert set(ended.exits.values()) == {0}, ended.stderr
    *measured, gather = ended.run.results
    assert [result.benchmark for result in measured] == list(NAMES)
    cells = [cell for result in measured for cell in result.cells]
    assert {cell.status for cell in cells} == {"pass"}
    assert all(cell.verified for cell in cells)
    assert {cell.row for cell in measured[0].cells} == {"float sum", "float sum in place"}
    assert any("by torch.distributed (gloo)" in str(text) for text in ended.stdout.splitlines())
    why = "torch.distributed has no gather of one tensor"
    assert {cell.reason for cell in gather.cells} == {why}
    assert [device.memory for device in ended.run.machine.all_devices] == [
        "torch:cpu:0@0",
        "torch:cpu:0@1",
    ]


def test_copies_between_processes_are_refused(tmp_path):
    ended = launch(
        tmp_path, 2, "run", "multinode_device_to_device_memcpy_read_ce", "--backend", "torch",
        *QUICK, launcher=mpich(),
    )  # fmt: skip
    assert ended.exits[0] == 4, ended.stderr
    (result,) = ended.run.results
    assert {cell.status for cell in result.cells} == {"skip"}
