"""`linkgauge ai`: what its options ask for, and what it says without torch."""

import pytest

from linkgauge.cli.main import application


def called(*words):
    return application()(["ai", *words], standalone_mode=False, prog_name="linkgauge")


@pytest.mark.ai
def test_every_workload_at_its_small_size(tmp_path, monkeypatch, capsys):
    from linkgauge.engine.kept.runs import RUN_FILE, read_run

    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    monkeypatch.setenv("LINKGAUGE_HISTORY", "none")
    monkeypatch.setenv("LINKGAUGE_NO_REPORT", "1")
    small = ["--device", "torch:cpu:0", "--model", "10m", "--prompt", "16", "--batch", "1"]
    assert called(*small, "--types", "fp32", "--samples", "2", "--out", str(tmp_path)) == 0
    (kept,) = tmp_path.rglob(RUN_FILE)
    run = read_run(kept)
    assert len({result.benchmark for result in run.results}) == 5
    cells = [cell for result in run.results for cell in result.cells]
    assert {cell.status for cell in cells} == {"pass"}
    assert all(cell.verified and cell.work is not None for cell in cells)
    shown = capsys.readouterr().out
    assert "first token, p50 (ms)" in shown
    assert "bounded by" in shown
