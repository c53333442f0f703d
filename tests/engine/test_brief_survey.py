"""A survey for a screen names NVIDIA's cards although CUDA is slow, and says "none" only of what
was answered so. The workers are real processes; NVML, CUDA's library and its bindings are fakes
that the workers find instead of real ones."""

import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from fakes import machine
from linkgauge.engine.workers import supervisor
from linkgauge.engine.workers.supervisor import Supervisor
from linkgauge.judge.doctor import diagnose
from linkgauge.judge.findings import Evidence
from linkgauge.model.hardware.inventory import Inventory, PciFunction
from linkgauge.report.blocks import text_of
from linkgauge.report.sections.glance import Glance, glance_blocks
from linkgauge.report.sections.machine import machine_blocks

LONG = 60.0
"""Seconds that a test would take if it waited for what hangs."""
NVML = """
import sys
from fake_nvml import FakeNvml
sys.modules[__name__] = FakeNvml(nvmlDeviceGetCount=4)
"""
HANGS = f"""
import time
time.sleep({LONG})
"""
NO_DEVICE = """
class CUresult:
    CUDA_SUCCESS = 0

def cuInit(flags):
    return (100,)
"""
ENDS = "import os; os._exit(3)\n"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Makes a machine of fakes: modules by name, and CUDA's library unless told otherwise."""

    def make(library=True, **modules):
        if library:
            libm = next(Path(place).resolve() for place in _mapped() if "libm.so" in place)
            (tmp_path / "libcuda.so.1").symlink_to(libm)
        for name, content in modules.items():
            path = tmp_path / f"{name.replace('__', '/')}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
        monkeypatch.setattr(supervisor, "has_no_driver", lambda name: False)

    return make


def _mapped():
    import math  # noqa: F401  # maps libm

    return [line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()]


def surveyed(brief=LONG, accelerators=("cuda",)):
    with closing(Supervisor(brief=brief)) as worker:
        return worker.survey(accelerators)


def lines(blocks):
    return [text_of(line) for block in blocks for line in getattr(block, "lines", ())]


def shown(found):
    """The lines of the first screen and of `devices`."""
    return lines(glance_blocks(Glance(found, {}, 0, []))), lines(machine_blocks(found))


def test_cards_are_named_although_cuda_hangs(here):
    here(pynvml=NVML, cuda__bindings__driver=HANGS)
    found = surveyed()
    assert [one.memory for one in found.devices["cuda"]] == [f"cuda:{n}" for n in range(4)]
    assert {one.model for one in found.devices["cuda"]} == {"NVIDIA H200"}
    assert [one.memory for one in found.known.accelerators] == [f"cuda:{n}" for n in range(4)]
    assert (found.unavailable, found.unanswered) == ({}, ())
    first, _ = shown(found)
    assert "4 × NVIDIA H200 (cuda:0-3)" in first


def test_what_would_only_add_names_is_not_waited_for(here):
    here(pynvml=NVML, cuda__bindings__driver=HANGS, pyopencl=HANGS)
    began = time.monotonic()
    found = surveyed(accelerators=("cuda", "opencl"))
    assert time.monotonic() - began < LONG / 2
    assert len(found.devices["cuda"]) == 4
    assert found.unanswered == ("opencl",)
    for screen in shown(found):
        assert any(
            line.startswith("opencl: not yet known: open the backend: not waited for, because")
            for line in screen
        )
        assert not any("opencl: none" in line for line in screen)


def test_a_driver_that_hangs_is_not_yet_known_and_the_line_says_how_to_wait(here):
    here(pynvml=HANGS, cuda__bindings__driver=HANGS)
    began = time.monotonic()
    found = surveyed(brief=0.5)
    assert time.monotonic() - began < LONG / 2
    assert found.host.cpus
    assert found.unanswered == ("cuda",)
    for screen in shown(found):
        (line,) = [line for line in screen if "cuda" in line]
        assert line.startswith("cuda: not yet known: open the backend: no answer within 0.5 s")
        assert line.endswith("linkgauge devices --backend cuda")


def test_without_nvml_cuda_is_asked(here):
    here(pynvml="raise ImportError\n", cuda__bindings__driver=NO_DEVICE)
    found = surveyed()
    assert found.unanswered == ()
    assert "cuInit" in found.unavailable["cuda"]
    assert any(line.startswith("cuda: none: ") for line in shown(found)[1])


def test_without_a_driver_there_is_none(here):
    here(library=False, pynvml=NVML)
    found = surveyed()
    assert (found.devices, found.unanswered) == ({}, ())
    assert found.unavailable["cuda"].startswith("no NVIDIA driver")


def test_a_complete_survey_opens_cuda(here):
    here(pynvml=NVML, cuda__bindings__driver=NO_DEVICE)
    found = surveyed(brief=None)
    assert "cuInit" in found.unavailable["cuda"]


def test_a_worker_that_ends_is_no_slow_one(here):
    here(pynvml=ENDS, cuda__bindings__driver=ENDS)
    found = surveyed()
    assert found.unanswered == ()
    assert "exit code 3" in found.unavailable["cuda"]


def test_nobody_is_left_behind(here):
    here(pynvml=HANGS, cuda__bindings__driver=HANGS)
    with closing(Supervisor(brief=0.1)) as worker:
        process = worker._worker("cuda").process
        worker.survey(("cuda",))
    for _ in range(600):
        if process.returncode is not None:
            break
        time.sleep(0.05)
    assert process.returncode == -9
    with pytest.raises(ChildProcessError):
        os.waitpid(process.pid, 0)


@pytest.mark.parametrize(("reached", "severity"), [(False, "warn"), (True, None)])
def test_the_doctor_is_not_content_with_no_answer(reached, severity):
    from msgspec.structs import replace

    from fakes import device

    card = PciFunction(address="0000:1b:00.0", class_code=0x030200)
    cards = [device(0, "cuda", pci=card.address)] if reached else []
    of = replace(
        machine(cards, unavailable={"opencl": "open the backend: no answer within 60.0 s"}),
        unanswered=("opencl",),
        inventory=Inventory(pci=(card,)),
    )
    found = [one.severity for one in diagnose(Evidence(of)) if one.check == "answer"]
    assert found == ([severity] if severity else [])
