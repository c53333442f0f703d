"""A plug-in's backend that fails while it measures costs its cell, which names the plug-in."""

import json
from pathlib import Path

import pytest

import broken_plugins_kit as kit
from command_kit import linkgauge
from fakes import FakeBackend, device
from linkgauge.engine.workers import worker as workers
from linkgauge.hooks import Hook, PluginFailed
from linkgauge.model.notation import parse_memory
from linkgauge.model.transfer import Engine

FAKES = (Path(__file__).parents[1] / "fakes.py").read_text()
CODE = """
import math, os, sys
from msgspec.structs import replace
from fakes import FakeBackend, FakeBuffer, FakeGroup, device
from linkgauge.model.documents.result import Placement
class Own(BaseException): pass
def fails(error):
    def call(*a, **k): raise error
    return call
def index_of(memory): return memory.index or 0
class Buffer(FakeBuffer):
    def placement(self):
        return {7: Placement(5, "x")}.get(index_of(self.memory), super().placement())
class Group(FakeGroup):
    def __init__(self, backend, copies):
        super().__init__(backend, copies)
        self.at = max(index_of(m) for c in copies for m in c.transfer.memories)
    def arm(self, *a):
        if self.at == 3: raise KeyboardInterrupt
        super().arm(*a)
    def wait(self):
        if self.at == 4: return 5
        if self.at == 5: sys.exit(0)
        if self.at == 9: os._exit(9)
        times = super().wait()
        if self.at == 10: return replace(times, seconds=(math.nan,))
        if self.at == 11: return replace(times, span=math.inf, seconds=(math.inf,))
        return times
    def close(self):
        if self.at == 6: raise ValueError("close")
        super().close()
class Npu(FakeBackend):
    def refusal(self, transfer):
        if index_of(transfer.engine.owner) == 0: raise ValueError("refusal")
    def allocate(self, memory, size, engine):
        if memory.index == 1: raise ValueError("allocate")
        return Buffer(memory, size)
    def prepare(self, copies, operation="copy"):
        self.open_groups += 1
        return Group(self, copies)
    def first_mismatch(self, buffer, *a):
        if buffer.memory.index == 2: raise Own("compare")
        if buffer.memory.index == 8: return "x"
def create(*a, **k):
    return Npu("npu", [device(n, "npu") for n in range(13)])
"""
SAID = {
    0: "ValueError: refusal",
    1: "ValueError: allocate",
    2: "Own: compare",
    3: "KeyboardInterrupt",
    4: "AttributeError: 'int' object has no attribute 'seconds'",
    5: "SystemExit: 0",
    6: "ValueError: close",
    7: "ValidationError: Expected `str`, got `int`",
    8: "ValueError: Unknown format code 'd' for object of type 'str'",
}


def test_a_backend_that_fails_while_it_measures_costs_its_cell(tmp_path):
    package = kit.Broken("raises", kit.BACKEND, CODE, files=(("fakes.py", FAKES),))
    done = linkgauge(
        "run", "--backend", "npu", "device_local_copy", "--samples", "3", "--size", "64K",
        "--json", "--no-verdict", cwd=tmp_path, PYTHONPATH=package.lay(tmp_path / "site"),
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    (result,) = json.loads(done.stdout)["results"]
    cells = {int(cell["column"]): cell for cell in result["cells"]}
    for index, said in SAID.items():
        assert cells[index]["status"] == "error"
        reason = cells[index]["reason"]
        assert f"the backend 'npu' of raises 1.0 failed: {said}" in reason, reason
    died = "the backend 'npu' of raises 1.0: the worker ended with exit code 9"
    assert cells[9]["reason"] == f"while warming up (npu:9): {died}"
    for index in (10, 11):
        assert cells[index]["status"] == "error", cells[index]
    assert cells[12]["status"] == "pass"


class Broken(FakeBackend):
    def tune(self, *a):
        raise ValueError("tune")

    def allocate(self, *a):
        buffer = super().allocate(*a)
        buffer.free = self.tune
        return buffer


@pytest.fixture
def worker(monkeypatch):
    """A worker with a backend of a plug-in that fails besides cells."""
    hook = Hook("the backend 'fake'", "raises 1.0")
    monkeypatch.setattr("linkgauge.backends.hook_of_backend", lambda name: hook)
    monkeypatch.setattr(workers, "hook_of_backend", lambda name: hook)
    monkeypatch.setattr("linkgauge.hooks._LEFT_OUT", {})  # no other test's command says it
    made = workers.LocalWorker()
    made._backends["fake"] = Broken(devices=[device()])
    yield made
    made.close()  # or its buffers are freed, and fail, within another test


def test_a_search_for_settings_that_fails_names_the_plug_in(worker):
    with pytest.raises(PluginFailed, match=r"'fake' of raises 1.0 failed: ValueError: tune"):
        worker.tune("fake:0", None, lambda tried: None)


def test_a_buffer_that_cannot_be_freed_costs_no_other_cell(worker):
    memory = parse_memory("fake:0")
    worker._pool.lend(worker._backends["fake"], memory, 64, Engine(memory, "ce"))
    worker._pool.take_back()
    worker.release()
