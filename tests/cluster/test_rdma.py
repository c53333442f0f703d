"""linkgauge and perftest over a device with RDMA that two ranks share: this machine's own, or rxe.

Where there is none, tools/rdma-guest runs this file in a machine whose kernel has rxe."""

import os

import pytest

import rdma_kit
from launch_kit import launch
from linkgauge.model.hardware.inventory import Interface

SECONDS = 400
"""An emulated machine is slow."""
SIZE = 64 << 10
QUICK = ("--size", str(SIZE), "--samples", "2")
SYSTEM = {"RAPIDS_LIBUCX_PREFER_SYSTEM_LIBRARY": "true"}
FEW = ("--samples", "2", "--loops", "20")
"""Of perftest: both ends look for work without a pause, and where they share a CPU each message may
wait for a turn."""
ATTEMPTS = 4
PERFTEST = ("rdma_write_bw", "rdma_read_bw", "rdma_write_lat", "rdma_read_lat", "rdma_send_lat")


@pytest.fixture(scope="module")
def nic():
    """The interface of a device with RDMA."""
    with rdma_kit.device() as found:
        if not isinstance(found, Interface):
            if "rdma" in os.environ.get("LINKGAUGE_REQUIRE", ""):
                pytest.fail(f"no device with RDMA: {found}")
            pytest.skip(f"no device with RDMA here: {found}")
        yield found


def launched(tmp_path, *arguments):
    """Two ranks of this machine, with a UCX that has RDMA."""
    return launch(tmp_path, 2, *arguments, seconds=SECONDS, **SYSTEM)


def test_ucx_writes_and_reads_by_the_device_and_every_byte_is_verified(tmp_path, nic):
    before = rdma_kit.packets(nic)
    at = rdma_kit.number(nic)
    ended = launched(
        tmp_path, "copy",
        f"host:0@0 -> host:0@1 by nic:{at}.rdma & host:0@1 -> host:0@0 by nic:{at}@0.rdma",
        *QUICK, "--out", str(tmp_path / "out"),
    )  # fmt: skip
    assert ended.exits == {0: 0, 1: 0}, ended.stderr
    (cell,) = ended.run.results[0].cells
    assert cell.status == "pass"
    assert cell.verified
    assert len(cell.parts) == 2
    moved = sum(part.bytes * cell.loops * len(part.samples) for part in cell.parts)
    if before is not None:
        assert rdma_kit.packets(nic) - before >= moved / rdma_kit.MTU


def test_each_rank_reaches_the_other_by_the_fastest_device(tmp_path, nic):
    ended = launched(tmp_path, "run", "nic_rdma", *QUICK)
    assert ended.exits == {0: 0, 1: 0}, ended.stderr
    cells = ended.run.results[0].cells
    assert {(cell.row, cell.column) for cell in cells} == {("0", "1"), ("1", "0")}
    assert all(cell.verified and cell.summary.median > 0 for cell in cells)


def test_perftest_measures_beside_it(tmp_path, nic):
    left = {*PERFTEST}
    for attempt in range(ATTEMPTS):
        ended = launched(tmp_path / str(attempt), "run", *sorted(left), *FEW)
        assert {result.benchmark for result in ended.run.results} == left
        left = {one.benchmark for one in ended.run.results if not all(map(is_measured, one.cells))}
        if not left:
            return
    pytest.fail(f"{left}: perftest never found out the rate of the clock")


def is_measured(cell):
    """False where it is to be tried again; Debian's perftest knows no GPUs."""
    if cell.column != "host":
        assert cell.status == "skip"
        assert "was built without CUDA" in cell.reason
        return True
    if cell.status == "error":
        assert "did not find out the rate of the clock" in cell.reason
        return False
    assert cell.status == "pass", cell.reason
    return cell.summary.median > 0
