"""`linkgauge report`, and the report that a run writes."""

import pytest

from command_kit import called
from configurations_kit import cell, here, result, run_of
from linkgauge.report.files import write_run


@pytest.fixture
def results(tmp_path, monkeypatch):
    """Two configurations on one accelerator, one on another."""
    monkeypatch.chdir(tmp_path)
    for number, (accelerator, label, figure) in enumerate(
        (("gpu-a", "host", 50e9), ("gpu-a", "guest", 40e9), ("gpu-b", "host", 20e9))
    ):
        run = run_of(label, result("host_to_device_memcpy_ce", cell("0", "0", figure)),
                     started=f"2026-11-21T2{number}:15:00Z")  # fmt: skip
        folder = tmp_path / "results" / accelerator / label / run.id
        folder.mkdir(parents=True)
        write_run(folder, here(run))
    return tmp_path / "results"


def test_it_lies_beside_the_latest_run_and_is_packed_with_it(results):
    path = "results/gpu-b/host/20261121T221500Z/report.html"
    assert called("report").stdout == f"report: {path}\n"
    assert "<!DOCTYPE html>" in (results.parent / path).read_text()
    assert "report.html" in called("pack", "-o", "run.tar.zst").stdout
    assert "anonymised: report.html" in called("pack", "--anonymize", "-o", "x.tar.zst").stdout


def test_the_folder_of_a_comparison_of_settings_is_named_with_what_reads_it(tmp_path):
    folder = tmp_path / "results/gpu/vary/20261121T201500Z"
    folder.mkdir(parents=True)
    (folder / "vary.json").write_text('{"schema": "linkgauge.vary/1"}')
    for command in (["export", "--csv"], ["compare", folder], ["doctor"], ["pack"]):
        done = called(*command, folder)
        assert done.returncode == 2, command
        assert f"{folder} compares settings: linkgauge show {folder} reads it" in done.stderr


def test_a_report_that_cannot_be_written_costs_nothing_else(tmp_path, monkeypatch):
    given = ("host_to_device_memcpy_ce", "--machine", "riscv-2gpu", "--samples", "1")
    called("run", *given, "--no-report", "--out", tmp_path)
    (journal,) = tmp_path.rglob("journal.jsonl")
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-1]))
    (journal.parent / "report.html").mkdir()
    monkeypatch.delenv("LINKGAUGE_NO_REPORT", raising=False)
    done = called("run", "--resume", journal.parent)
    assert done.returncode == 0, done.stderr
    assert "no report: cannot write" in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "command",
    [
        ("run", "host_to_device_memcpy_ce", "--samples", "1"),
        ("copy", "host:0 -> sim:0", "--samples", "1"),
        ("latency", "latency_copy_pingpong", "--iterations", "1"),
        ("traffic", "--samples", "1"),
        ("scale", "all_reduce", "--gpus", "1,2", "--size", "1M", "--samples", "1"),
    ],
)
def test_each_command_that_keeps_a_run_writes_its_report(command, tmp_path, monkeypatch):
    monkeypatch.delenv("LINKGAUGE_NO_REPORT", raising=False)
    given = (*command, "--machine", "riscv-2gpu", "--out")
    done = called(*given, tmp_path / "with")
    assert len([*(tmp_path / "with").rglob("report.html")]) == 1, done.stderr
    called(*given, tmp_path / "without", "--no-report")
    assert len([*(tmp_path / "without").rglob("run.json")]) == 1
    assert not [*(tmp_path / "without").rglob("report.html")]
