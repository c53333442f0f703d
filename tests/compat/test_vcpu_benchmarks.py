"""`linkgauge as run_vcpu_benchmark` and `as setup_vcpu_benchmarks`, the vCPU benchmark suite's two
commands."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from compat_kit import ONE, spoken
from fakes import device, machine
from linkgauge.engine.kept.runs import read_run
from linkgauge.model.hardware.inventory import Inventory, PciFunction


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


TWO = machine([device(0, "cuda"), device(1, "cuda")])


def without_driver(vendor, **unavailable):
    card = PciFunction(address="0000:01:00.0", vendor=vendor, class_code=0x030200)
    cpu = machine([device(is_cpu=True)], unavailable=unavailable)
    return replace(cpu, inventory=Inventory(pci=(card,)))


@pytest.mark.parametrize(
    ("found", "nccl", "code", "says"),
    [
        (TWO, "libnccl.so.2", 0, "AllReduce  NCCL, 2 GPUs"),
        (TWO, None, 0, "as yourself:\n    pip install '.[nccl]'"),
        (without_driver(0x10DE, cuda="no driver"), None, 1, "but no driver"),
        (without_driver(0x10DE, cuda="cuda-bindings is not installed"), None, 1, "    make run"),
        (without_driver(0x1002), None, 1, "the CPU is the only OpenCL device"),
    ],
)
def test_each_gpu_is_used_or_says_what_it_needs(monkeypatch, found, nccl, code, says):
    names = {"survey": found, "find_spec": None, "find_library": nccl, "package_manager": None}
    for name, value in names.items():
        where = f"linkgauge.rooms.compat.vcpu_benchmarks.{name}"
        monkeypatch.setattr(where, lambda *_, value=value: value)
    done = spoken("setup_vcpu_benchmarks", on=None, PATH="nowhere")
    assert (done.returncode, says in done.stdout) == (code, True), done.stdout
    assert "# install numactl util-linux as this system does" in done.stdout
