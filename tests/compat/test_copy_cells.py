"""Tools that measure paths print what there is after Ctrl-C, and number their cells through."""

import csv
import io

import pytest

from compat_kit import interrupted_after, speak, where
from linkgauge.compat import copy_cells
from linkgauge.compat.base import opened_devices
from linkgauge.compat.copy_cells import CopyPath, Meter
from linkgauge.model.settings import Settings

QUICK = Settings((1 << 20,), samples=2, loops=1)


@pytest.fixture
def cut(capfd, monkeypatch):
    """A tool whose first measurement is interrupted after one cell."""

    def run(tool, *arguments):
        monkeypatch.setattr(copy_cells, "measure", interrupted_after(1))
        return speak(capfd, tool, *arguments, on=where("riscv-2gpu"))

    return run


def test_a_table_has_the_rows_that_were_measured(cut, tmp_path):
    file = tmp_path / "b.csv"
    done = cut("bandwidth_test", "--size", "1M", "--iter", "2", "--out", str(file))
    assert done.code == 130
    rows = list(csv.DictReader(io.StringIO(file.read_text())))
    assert [(row["direction"], row["destination"]) for row in rows] == [("H2D", "sim:0")] * 2
    assert done.err.count("interrupted") == 1


def test_reports_end_as_failed(cut):
    done = cut("bandwidthTest", "--device=all")
    assert (done.code, "Result = FAIL" in done.out) == (130, True)
    done = cut("rblnBandwidthLatencyTest", "--tc", "3", "--test_size", "1M", "-i", "1")
    assert done.code == 130
    assert "[H2D] HOST -> rbln0 : MAX" in done.out
    assert "[D2H] rbln1 -> HOST : N/A" in done.out
    assert "[     FAIL ]" in done.out


def test_cells_are_numbered_through():
    """A fault strikes the cell of its number of all that a tool measures, and once."""
    with opened_devices(where("riscv-2gpu", "flip sim:0 cells=2"), QUICK) as context:
        gauge = Meter(context, "test")
        up = [[CopyPath(None, context.devices[0]).transfer()]]
        found = [gauge.measure(up)[0] for _ in range(4)]
    assert [cell.status for cell in found] == ["pass", "pass", "fail", "pass"]
    assert len({cell.samples for cell in found}) == 4, "and noise goes on"
