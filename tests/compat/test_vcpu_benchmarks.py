"""`linkgauge as run_vcpu_benchmark` and `as setup_vcpu_benchmarks`, the vCPU benchmark suite's two
commands."""

import os
from pathlib import Path

import msgspec
import pytest

from compat_kit import ONE_DEVICE, speak, where
from fakes import device, machine
from linkgauge.benchmarks.vm import VM
from linkgauge.compat import run_vcpu_benchmark as runs
from linkgauge.compat import setup_vcpu_benchmarks as sets_up
from linkgauge.engine.runs import read_run
from linkgauge.machine.packages import package_manager
from linkgauge.model.inventory import Inventory, PciFunction
from machine_kit import captured
from report.test_output import compare

UBUNTU = package_manager(captured({"etc/os-release": "ID=ubuntu\nID_LIKE=debian\n"}))
NVIDIA = PciFunction(address="0000:01:00.0", vendor=0x10DE, class_code=0x030200)
AMD = msgspec.structs.replace(NVIDIA, vendor=0x1002, class_code=0x120000)


@pytest.fixture
def benchmark(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def run(*arguments, on=None):
        return speak(capfd, "run_vcpu_benchmark", *arguments, on=on or where(ONE_DEVICE))

    return run


def test_results_lie_where_the_suite_has_them(benchmark, tmp_path):
    done = benchmark("Pinned_1")
    assert (done.code, done.err) == (0, "")
    (folder,) = (tmp_path / "results" / "simulated-test" / "Pinned_1").iterdir()
    names = {path.name for path in folder.iterdir()}
    assert {"numa_topology.txt", "cpu_topology.txt", "hugepages.txt", "run.json"} <= names
    kept = read_run(folder)
    assert kept.label == "Pinned_1"
    assert [result.benchmark for result in kept.results] == list(VM)
    assert done.out.splitlines()[-1] == (
        "to compare configurations: linkgauge show results/simulated-test"
    )


def test_what_is_skipped_says_why(benchmark, tmp_path):
    benchmark("a")
    (folder,) = tmp_path.glob("results/*/a/*")
    skipped = {one.benchmark: one for one in read_run(folder).results if one.status == "skip"}
    assert {"all_reduce", "memory_stream_nodes"} <= set(skipped)
    for result in skipped.values():
        assert result.reason or all(cell.reason for cell in result.cells), result.benchmark


def test_the_largest_message_ends_the_sweep(benchmark, tmp_path):
    def columns(*arguments):
        done = benchmark("a", *arguments, on=where("riscv-2gpu"))
        folder = max(tmp_path.glob("results/*/a/*"), key=lambda path: path.stat().st_mtime_ns)
        (result,) = (one for one in read_run(folder).results if one.benchmark == "all_reduce")
        assert done.code == 0
        return list(dict.fromkeys(cell.column for cell in result.cells))

    assert columns()[-2:] == ["128 MiB", "512 MiB"]
    assert columns("--nccl-max-msg", "2G")[-2:] == ["512 MiB", "2 GiB"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "the following arguments are required: config"),
        (("",), "CONFIG: give the configuration a name"),
        (("a", "--nccl-max-msg", "x"), "--nccl-max-msg: size 'x' is not understood"),
        (("a", "--nccl-max-msg", "7"), "--nccl-max-msg 7: give at least 8"),
        (("a", "--nccl-max-msg"), "argument --nccl-max-msg: expected one argument"),
        (("a", "b"), "unrecognized arguments: b"),
    ],
)
def test_what_it_does_not_understand_is_refused_and_leaves_nothing(
    benchmark, tmp_path, arguments, says
):
    done = benchmark(*arguments)
    assert done.code == 1
    assert says in done.err
    assert done.err.endswith("Usage: run_vcpu_benchmark CONFIG [--nccl-max-msg SIZE]\n")
    assert list(tmp_path.iterdir()) == []


def test_wrong_bytes_are_no_success_and_a_low_figure_is_none_of_its_business(benchmark):
    assert benchmark("a", on=where(ONE_DEVICE, "flip sim:0")).code == 1
    assert benchmark("a", on=where("riscv-2gpu", "slow host:0-sim:0 rate=10%")).code == 0


def test_its_help(benchmark, capfd, monkeypatch):
    compare("run_vcpu_benchmark.txt", benchmark("-h").out)
    assert speak(capfd, "setup_vcpu_benchmarks", "-h").out.startswith("Usage: setup")


def needs(box, *installed, manager=UBUNTU):
    which = {name: f"/usr/bin/{name}" for name in installed}.get
    return tuple(sets_up.needs_of(box, which, manager, lambda: "nccl" in installed))


def with_pci(function, **unavailable):
    box = machine([device(is_cpu=True)], unavailable=unavailable)
    return msgspec.structs.replace(box, inventory=Inventory(pci=(function,)))


def shown(*found, manager=UBUNTU):
    return "\n".join(sets_up.lines(found, manager)) + "\n"


def test_what_is_missing_comes_with_the_commands_of_root():
    box = with_pci(NVIDIA, cuda="no NVIDIA driver: libcuda.so.1 not found")
    text = shown(*needs(box))
    compare("setup_vcpu_benchmarks.txt", text)
    assert max(map(len, text.splitlines())) <= 100


def test_what_is_there_needs_no_command():
    box = machine([device(0, "cuda"), device(1, "cuda")])
    found = needs(box, "numactl", "lscpu", "nccl")
    assert [need.state for need in found] == ["ok", "ok", "ok", "ok", "ok"]
    assert "AllReduce  NCCL, 2 GPUs" in shown(*found)
    assert "GPU        2 × Fake Card X1" in shown(*found)
    assert "as root" not in shown(*found)


def test_gpus_without_nccl_say_how_to_install_it():
    box = machine([device(0, "cuda"), device(1, "cuda")])
    text = shown(*needs(box, "numactl", "lscpu"))
    assert "optional AllReduce  no NCCL: skipped" in text
    assert "as yourself:\n    pip install '.[nccl]'" in text


def test_a_gpu_whose_bindings_are_missing_is_for_its_user_to_mend():
    box = with_pci(NVIDIA, cuda="cuda-bindings is not installed: pip install '.[cuda13]'")
    (gpu,) = (need for need in needs(box, "numactl", "lscpu") if need.name == "GPU")
    assert (gpu.state, gpu.commands) == ("missing", ())
    assert "as yourself:\n    make run" in shown(gpu)


def test_an_amd_gpu_needs_an_opencl_runtime():
    (gpu,) = (need for need in needs(with_pci(AMD)) if need.name == "GPU")
    assert gpu.found == "AMD on the PCI bus, but the CPU is the only OpenCL device"
    assert "ROCm" in gpu.commands[0]


def test_a_network_adapter_of_a_gpus_vendor_is_none():
    adapter = msgspec.structs.replace(NVIDIA, class_code=0x020000)
    (gpu,) = (need for need in needs(with_pci(adapter)) if need.name == "GPU")
    assert gpu.state == "none"


def test_an_unknown_system_is_told_what_to_install():
    text = shown(*needs(machine(), manager=None), manager=None)
    assert "# install numactl util-linux as this system does" in text


def test_setting_up_reads_this_machine_and_changes_nothing(capfd, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    (tmp_path / "bin" / "numactl").touch(mode=0o755)
    done = speak(capfd, "setup_vcpu_benchmarks", on=runs.Where())
    assert f"ok       numactl    {tmp_path}/bin/numactl" in done.out
    assert done.code == ("missing  GPU" in done.out)
    assert {path.name for path in Path().rglob("*")} == {"bin", "numactl"}


def test_a_simulated_machine_has_nothing_to_install(capfd):
    done = speak(capfd, "setup_vcpu_benchmarks")
    assert done.out == "SIMULATED ppu-8: nothing to install\n"
