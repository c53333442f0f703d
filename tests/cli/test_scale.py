"""`linkgauge scale` as a user types it, on simulated machines."""

import json

from command_kit import called

QUICK = ("--samples", "3")
FEW = (*QUICK, "--size", "8,64K,512M")


def test_wrong_numbers_fail(tmp_path):
    args = ("--gpus", "2", "--machine", "full-8", "--fault", "flip sim:1 bit=6")
    done = called("scale", *args, *FEW, "--out", tmp_path)
    assert done.returncode == 1
    told = "fail: float sum, 2 GPUs, 8 B: 1 element is wrong, first element 0 of rank 1"
    assert told in done.stdout


def test_ctrl_c_keeps_what_was_measured(tmp_path, monkeypatch):
    left = iter(range(5))

    def finished(self, cell):
        if next(left, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr("linkgauge.rooms.scale.carrying_out.LiveScaling.finished", finished)
    done = called("scale", "--machine", "full-8", "--gpus", "2,4", *FEW, "--out", tmp_path)
    assert (done.returncode, "(interrupted)" in done.stdout) == (130, True)
    (path,) = tmp_path.rglob("run.json")
    assert json.loads(path.read_text())["finished"] is None
