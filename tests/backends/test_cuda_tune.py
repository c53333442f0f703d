"""The search for the best settings goes on without what fails, as long as the device lives."""

from types import SimpleNamespace

import pytest

from fakes import FakeBackend, FakeGroup
from linkgauge.backends.cuda.settings import CopySettings, load_tuned
from linkgauge.backends.cuda.tune import tune
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.hardware.machine import Device

SIZE = 512
STREAMS, BULK = CopySettings(streams=3), CopySettings(kernel="bulk", unroll=2)
BEST = {"ce local": STREAMS} | dict.fromkeys(("sm from-host", "sm to-host", "sm local"), BULK)


class Gpu(FakeBackend):
    """Copies twice as fast by the best settings. `strike(gpu, settings)` may do harm."""

    def __init__(self, strike):
        super().__init__("cuda", [Device("cuda:0", "GPU", 1 << 30, 1 << 30)])
        self.strike, self.dead = strike, False

    def device_of(self, memory):
        return SimpleNamespace(multiprocessors=2)

    def fill(self, *arguments, **named):
        if self.dead:
            raise BackendError("cuLaunchKernel", "CUDA_ERROR_ILLEGAL_ADDRESS (pattern.fill)")
        super().fill(*arguments, **named)

    def prepare_with(self, copies, settings, operation="copy"):
        if operation != "copy":
            raise Unsupported("it has no arrays")
        self.strike(self, settings)
        self.open_groups += 1
        self.seconds_a_byte = lambda n: 1e-9 if settings in BEST.values() else 2e-9
        return FakeGroup(self, copies)


def search(gpu, folder):
    """What was found, and what was dropped and why."""
    heard = []
    best = tune(gpu, 0, size=SIZE, folder=folder, tell=heard.append)
    return best, [(tried.path, tried.settings, tried.problem) for tried in heard if tried.problem]


def test_one_that_fails_in_the_final_has_not_won_and_is_not_tried_again(tmp_path):
    runs = 0

    def strike(gpu, settings):
        nonlocal runs
        runs += settings == STREAMS
        if settings == STREAMS and runs > 2:
            raise BackendError("cuStreamCreate", "CUDA_ERROR_OUT_OF_MEMORY")

    best, dropped = search(Gpu(strike), tmp_path)
    assert "ce local" not in best
    assert len(dropped) == 1


def test_a_dead_device_ends_it_and_what_was_found_is_kept(tmp_path):
    def strike(gpu, settings):
        if settings.streams == 2:
            gpu.dead = True
            raise BackendError("cuMemcpyAsync", "CUDA_ERROR_ILLEGAL_ADDRESS")

    with pytest.raises(BackendError, match="cuLaunchKernel"):
        search(Gpu(strike), tmp_path)
    assert load_tuned("GPU", tmp_path) == {p: best for p, best in BEST.items() if p != "ce local"}
