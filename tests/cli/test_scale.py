"""`linkgauge scale` as a user types it, on simulated machines."""

import json

from scale_kit import scale

QUICK = ("--samples", "3")
FEW = (*QUICK, "--size", "8,64K,512M")
SLOW = ("--fault", "slow sim:2-sim:3 rate=50%")


def test_a_slow_link_is_found_and_fails(tmp_path, capsys):
    code = scale("all_reduce", "--gpus", "2,4", "--machine", "full-8", *SLOW, *FEW,
                 "--out", tmp_path)  # fmt: skip
    said = capsys.readouterr()
    assert code == 1
    assert "knee at 4 GPUs: 50% of the busbw of 2: also slow alone: sim:2 -> sim:3" in said.out
    (line,) = [line for line in said.out.splitlines() if line.endswith("slow link")]
    assert line.startswith("  sim:2 -> sim:3 alone: 2")
    assert "measuring 4 pairs of devices alone" in said.err
    assert "SIMULATED" in said.out
    assert "struck nothing" not in said.out
    (path,) = tmp_path.rglob("run.json")
    results = json.loads(path.read_text())["results"]
    assert results[-1]["benchmark"] == "device_to_device_memcpy_write_sm"


def test_wrong_numbers_fail(tmp_path, capsys):
    args = ("--gpus", "2", "--machine", "full-8", "--fault", "flip sim:1 bit=6")
    assert scale(*args, *FEW, "--out", tmp_path) == 1
    assert "fail: float sum, 2 GPUs, 8 B: 1 element is wrong, first element 0 of rank 1" in (
        capsys.readouterr().out
    )


def test_ctrl_c_keeps_what_was_measured(tmp_path, capsys, monkeypatch):
    left = iter(range(5))

    def finished(self, cell):
        if next(left, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr("linkgauge.report.scale_live.LiveScaling.finished", finished)
    code = scale("--machine", "full-8", "--gpus", "2,4", *FEW, "--out", tmp_path)
    assert code == 130
    said = capsys.readouterr().out
    assert "(interrupted)" in said
    (path,) = tmp_path.rglob("run.json")
    assert json.loads(path.read_text())["finished"] is None
