"""AI workloads, laid out over torch's devices."""

import pytest

from fakes import device, machine
from linkgauge.benchmarks.catalog import CATALOG
from linkgauge.benchmarks.table import DeviceSet
from linkgauge.engine.request import RunRequest, Selection
from linkgauge.model.hardware.machine import Device
from linkgauge.model.operations.workload import Server, WorkloadChoice

NAMES = [name for name in CATALOG if name.startswith("ai_") and "serving" not in name]
CPU = Device("torch:cpu:0", "CPU", 1 << 34, 1 << 34, is_cpu=True)
GPUS = tuple(Device(f"torch:cuda:{n}", "GPU", 1 << 37, 1 << 37) for n in range(2))


def laid_out(name, *devices, **chosen):
    return CATALOG[name].lay_out(
        DeviceSet("torch", (), devices, workloads=WorkloadChoice(**chosen))
    )


def asked(name, *devices, **chosen):
    return [cell.workload for cell in laid_out(name, *devices, **chosen).cells]


@pytest.mark.parametrize("name", NAMES)
def test_every_cell_is_work_on_a_device_of_torch_and_has_a_place_of_its_own(name):
    for devices in ((CPU,), GPUS):
        benchmark = laid_out(name, *devices)
        assert benchmark.cells
        places = [cell.place for cell in benchmark.cells]
        assert len(set(places)) == len(places)
        for cell in benchmark.cells:
            assert str(cell) == f"null -> null by {cell.transfers[0].engine}"
            assert cell.operation == "workload"
            assert cell.runs == 5


def test_a_cpu_has_a_small_model_and_counts_only_where_there_is_nothing_else():
    assert {work.model for work in asked("ai_inference", CPU)} == {"10m"}
    owners = {str(cell.places[0]) for cell in laid_out("ai_inference", CPU, GPUS[0]).cells}
    assert owners == {"torch:cuda:0"}


def test_what_is_chosen_is_what_is_laid_out():
    works = asked(
        "ai_inference", GPUS[0], model="1b", batches=(3,), prompts=(100,), numbers=("fp16",),
        tokens=7, seed=9, implementation="transformers", trace="/t",
    )  # fmt: skip
    assert [work.kind for work in works] == ["prefill", "decode"]
    for work in works:
        assert (work.model, work.batch, work.prompt, work.numbers) == ("1b", 3, 100, "fp16")
        assert (work.tokens, work.seed, work.implementation, work.trace) == (
            7, 9, "transformers", "/t",
        )  # fmt: skip


def test_training_is_on_one_two_four_and_all_devices_with_and_without_overlap():
    six = [Device(f"torch:cuda:{n}", "GPU", 1 << 37, 1 << 37) for n in range(6)]
    assert {work.ranks for work in asked("ai_training_step", *six)} == {1, 2, 4, 6}
    works = asked("ai_training_step", *GPUS)
    assert {(work.ranks, work.overlap) for work in works} == {
        (1, False), (2, False), (1, True), (2, True),
    }  # fmt: skip


def test_a_server_gets_requests_at_once_and_at_random_moments():
    def cells(name, **chosen):
        choice = WorkloadChoice(**chosen)
        here = DeviceSet("host", machine().host.nodes, workloads=choice)
        return CATALOG[name].lay_out(here)

    server = Server("http://h:1")
    closed = cells("ai_serving", server=server).cells
    assert [cell.workload.batch for cell in closed] == [1, 2, 4, 8, 16]
    assert {str(cell) for cell in closed} == {"null -> null by host:0.cpu"}
    opened = cells("ai_serving_open", server=server, rates=(1.0, 4.5)).cells
    assert [(cell.column, cell.workload.server.rate) for cell in opened] == [
        ("1/s", 1.0),
        ("4.5/s", 4.5),
    ]
    assert "--url" in cells("ai_serving").reason
    what = Selection(("ai_serving",))
    assert what.accelerators(RunRequest(what=what)) == ()


def test_torch_is_opened_for_workloads_and_for_nothing_else():
    def opened(*names, **more):
        what = Selection(names)
        return what.accelerators(RunRequest(what=what, **more))

    assert opened("ai_inference") == ("torch",)
    assert opened("gpu_matmul", "ai_inference") == ("cuda", "opencl", "torch")
    assert opened("gpu_matmul") == ("cuda", "opencl")
    assert opened("gpu_matmul", "ai_inference", backends=("cuda",)) == ("cuda", "torch")


def test_other_benchmarks_are_not_laid_out_over_devices_that_workloads_have_opened():
    here = machine((device(0), CPU))
    what = Selection(("ai_pipeline", "host_to_device_memcpy_ce"))
    found = what.lay_out(RunRequest(what=what), here)
    assert [(one.name, one.backend) for one in found] == [
        ("host_to_device_memcpy_ce", "fake"), ("ai_pipeline", "torch"),
    ]  # fmt: skip
