"""The comparisons on a GPU, without one: what takes turns with what, and what is made of it."""

import sys
from types import SimpleNamespace

import pytest

import device_latency
import device_memory
import gpu_matmul
import turns
from compiled_kit import CUBLAS, own_library_of
from cuda_emulator import emulated
from linkgauge.backends.cuda import cublas
from linkgauge.model.inventory import Reading
from linkgauge.model.matmul import operations_of
from linkgauge.model.transfer import HAND_OVERS


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("kernels")


@pytest.fixture
def backend():
    made, _ = emulated()
    yield made
    made.close()


def test_each_has_as_many_turns_and_a_ratio_is_of_neighbours():
    seen = []
    runs = {name: lambda name=name: seen.append(name) or len(seen) for name in "abc"}
    taken = turns.take_turns(runs, 5)
    assert {name: len(own) for name, own in taken.items()} == {"a": 5, "b": 5, "c": 5}
    assert all(set(seen[at : at + 3]) == set("abc") for at in range(0, 15, 3))
    found = turns.ratio([2.0, 4.0, 9.0], [1.0, 2.0, 3.0])
    assert (found.middle, found.low, found.high) == (2, 2, 3)
    assert str(found) == "2.0000 [2.0000, 3.0000]"


@pytest.mark.parametrize(
    ("reading", "words"),
    [
        (Reading(memory="cuda:0", count=0), "no readings"),
        (Reading(memory="cuda:0", count=3, clock_min=1.5e9, clock_max=1.98e9, power_max=699.7,
                 throttled=("power cap",)),
         "1500 to 1980 MHz, at most 700 W, throttled: power cap"),
    ],
)  # fmt: skip
def test_the_state_of_the_device_is_said(reading, words):
    assert turns.state(reading) == words


class Torch:
    """As much of torch as is asked: a product takes so many seconds."""

    def __init__(self, each):
        self.each, self.products = each, 0
        self.float32 = self.bfloat16 = self.float16 = None
        self.backends = SimpleNamespace(
            cuda=SimpleNamespace(matmul=SimpleNamespace(allow_tf32=None))
        )
        self.cuda = SimpleNamespace(synchronize=lambda: None, Event=self.event)

    def empty(self, shape, dtype, device):
        return SimpleNamespace(data_ptr=lambda: 4096)

    def matmul(self, a, b):
        self.products += 1

    def event(self, enable_timing):
        made = SimpleNamespace(at=None)
        made.record = lambda: setattr(made, "at", self.products)
        made.elapsed_time = lambda other: (other.at - made.at) * self.each * 1e3
        return made


@pytest.mark.parametrize(("each", "holds"), [(1e-5, True), (1.1e-5, False)])
def test_a_turn_of_torch_is_ten_products_and_a_hundred(backend, folder, monkeypatch, each, holds):
    library = own_library_of(CUBLAS, folder)
    monkeypatch.setattr(cublas, "_paths", lambda majors: iter([str(library)]))
    torch = Torch(each)
    outcome = gpu_matmul.compare(backend, torch, "matmul-tf32", order=8, rounds=2)
    assert torch.products == 3 * 110  # one turn before those that count
    assert torch.backends.cuda.matmul.allow_tf32 is True
    assert outcome.torch == pytest.approx(operations_of(8) / each)
    assert outcome.ours == pytest.approx(operations_of(8) * 100 / 1e-3)  # the emulated millisecond
    assert outcome.holds is holds
    assert outcome.wrong is None
    assert ("MISSED" in gpu_matmul.show(outcome)) is not holds
    assert gpu_matmul.markdown(outcome).count("|") == 6


class References:
    """Kernels as fast as their blocks are many, and a slow cudaMemcpy."""

    def __init__(self):
        self.shapes = []

    def kernel(self, kind, arrays, threads, blocks, loops):
        self.shapes.append((threads, blocks))
        return 1e-3 * (0.99 if (threads, blocks) == (512, 36) else 1.2)

    def memcpy(self, arrays, loops):
        return 1.5e-3


def test_ours_is_beside_the_fastest_shape_and_cudamemcpy(backend):
    bench = device_memory.Bench(backend, References(), 2)
    kernel, memcpy = bench.compare("copy", 1 << 14)
    assert (kernel.reference, memcpy.reference) == ("kernel 36 × 512", "cudaMemcpy")
    assert kernel.ratio.middle == pytest.approx(0.99)
    assert memcpy.ratio.middle == pytest.approx(1.5)
    assert kernel.ours == pytest.approx(2 * (1 << 14) * 20 / 1e-3)  # both arrays, 20 loops
    assert kernel.how == "plain of 1024 threads, 4 in flight"
    assert kernel.holds
    assert "50.0%" in device_memory.show(kernel, 2 * kernel.ours)
    (written,) = bench.compare("write", 1 << 14)
    assert written.ours == pytest.approx(kernel.ours / 2)


def test_a_result_that_is_wrong_ends_it(backend, monkeypatch):
    monkeypatch.setattr(backend, "first_mismatch", lambda *_: 8)
    with pytest.raises(RuntimeError, match="peak-copy: the result is wrong"):
        list(device_memory.Bench(backend, References(), 1).compare("copy", 1 << 14))


def latencies(ours, theirs):
    """Medians and tails in microseconds, of each round."""
    own, their = (
        tuple((middle * 1e-6, tail * 1e-6) for middle, tail in of) for of in (ours, theirs)
    )
    return device_latency.Outcome("launch", own, their, 1e-6)


@pytest.mark.parametrize(
    ("ours", "theirs", "missed"),
    [
        ([(5, 6)] * 3, [(5, 6)] * 3, []),
        ([(5.3, 6)] * 3, [(5, 6)] * 3, ["p50"]),
        ([(0.59, 1)] * 3, [(0.5, 1)] * 3, []),  # by less than 100 ns
        ([(5, 8)] * 3, [(5, 6)] * 3, ["p99"]),
        ([(5, 8)] * 3, [(5, 6), (5, 6), (5, 9)], []),  # which the reference's own does, too
        ([(5, 6), (5.2, 6), (5, 6)], [(5, 6)] * 3, ["spread"]),
        ([(5, 6), (5.2, 6), (5, 6)], [(5, 6), (5.3, 6), (5, 6)], []),
    ],
)
def test_latencies_have_bars_of_their_own(ours, theirs, missed):
    outcome = latencies(ours, theirs)
    assert outcome.missed == missed
    assert ("MISSED" in device_latency.show(outcome)) is bool(missed)
    assert device_latency.markdown(outcome).count("|") == 8


def test_each_latency_is_compared_and_pairs_where_there_are_two():
    one, two = ([case.name for case in device_latency.cases(n)] for n in (1, 2))
    assert "flag 0-0" in one
    assert set(two) - set(one) == {"flag 0-1", *(f"copy 1-0, {s} B" for s in device_latency.SIZES)}
    assert {case.operation for case in device_latency.cases(1)} >= set(HAND_OVERS)


@pytest.mark.parametrize("bench", [gpu_matmul, device_memory, device_latency])
def test_without_a_gpu_it_is_skipped(bench, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("linkgauge.backends.cuda.driver.LIBRARY", "libnone.so.1")
    monkeypatch.setattr(sys, "argv", [bench.__name__])
    assert bench.main() == 0
    assert "skipped" in capsys.readouterr().out
