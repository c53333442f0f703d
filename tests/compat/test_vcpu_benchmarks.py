"""`linkgauge as run_vcpu_benchmark` and `as setup_vcpu_benchmarks`, the vCPU benchmark suite's two
commands."""

import os
from pathlib import Path

import pytest

from compat_kit import ONE, spoken
from linkgauge.engine.runs import read_run


@pytest.fixture
def benchmark(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(words, on=ONE, **more):
        return spoken("run_vcpu_benchmark", words, on=on, **more)

    return run


@pytest.mark.parametrize(
    ("words", "sizes"),
    [("a", ["128 MiB", "512 MiB"]), ("a --nccl-max-msg 2G", ["512 MiB", "2 GiB"])],
)
def test_the_largest_message_ends_the_sweep(benchmark, tmp_path, words, sizes):
    assert benchmark(words, on="riscv-2gpu").returncode == 0
    (folder,) = tmp_path.glob("results/*/a/*")
    (result,) = (one for one in read_run(folder).results if one.benchmark == "all_reduce")
    assert list(dict.fromkeys(cell.column for cell in result.cells))[-2:] == sizes


def test_wrong_bytes_are_no_success_and_a_low_figure_is_none_of_its_business(benchmark):
    assert benchmark("a", faults=["flip sim:0"]).returncode == 1
    slow = benchmark("a", on="riscv-2gpu", faults=["slow host:0-sim:0 rate=10%"])
    assert slow.returncode == 0


def test_setting_up_reads_this_machine_and_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "numactl").touch(mode=0o755)
    path = f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = spoken("setup_vcpu_benchmarks", on=None, PATH=path)
    assert f"ok       numactl    {tmp_path}/bin/numactl" in done.stdout
    assert done.returncode == ("missing  GPU" in done.stdout)
    assert {path.name for path in Path().rglob("*")} == {"bin", "numactl"}
