"""bench/torch_against_cuda.py: what it compares, and what it makes of the figures."""

import sys

import pytest

import torch_against_cuda as bench
from linkgauge.backends.torch import refusals
from linkgauge.model.notation import parse_memory, parse_transfers
from torch_kit import facts
from turns import Ratio

DEVICES = [
    facts("torch:cuda:0", peers=("torch:cuda:1",)),
    facts("torch:cuda:1", peers=("torch:cuda:0",)),
]


@pytest.mark.parametrize("text", [*bench.ALONE, *bench.PAIR])
def test_each_copy_is_one_that_torch_can_do(text):
    for transfer in parse_transfers(text):
        theirs = transfer.placed(bench.renamed)
        assert str(theirs) == str(transfer).replace("cuda:", "torch:cuda:")
        assert refusals.refusal(theirs, DEVICES, [0]) is None


def test_host_memory_keeps_its_name():
    memory = parse_memory("host:0/pageable")
    assert bench.renamed(memory) == memory


@pytest.mark.parametrize(
    ("middle", "spread", "holds"),
    [(1.02, 0.001, True), (0.98, 0.0, True), (0.96, 0.01, False), (0.94, 0.08, True)],
)
def test_the_bar_is_three_percent_or_cudas_own_spread(middle, spread, holds):
    one = bench.Outcome("x", 1e9, 1e9, spread, Ratio(middle, middle, middle))
    assert one.holds == holds
    assert len(list(one.cells())) == 5


def test_without_torch_it_is_skipped(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["torch_against_cuda.py"])
    monkeypatch.setitem(sys.modules, "torch", None)
    assert bench.main() == 0
    assert "skipped" in capsys.readouterr().out


def test_a_rate_is_that_of_all_copies_and_every_byte_is_compared():
    from fakes import FakeBackend

    backend = FakeBackend()
    transfers = list(parse_transfers("host:0 -> fake:0 by ce & fake:0 -> host:0 by ce"))
    assert bench.once(backend, transfers, 4096) > 0
    backend.first_mismatch = lambda *_: 17
    with pytest.raises(AssertionError, match="wrong at byte 17"):
        bench.once(backend, transfers, 4096)
