"""The comparisons on a GPU, without one: what takes turns with what, and what is made of it."""

import sys

import pytest

import device_latency
import device_memory
import gpu_matmul
import turns


def test_each_has_as_many_turns_and_a_ratio_is_of_neighbours():
    seen = []
    runs = {name: lambda name=name: seen.append(name) or len(seen) for name in "abc"}
    taken = turns.take_turns(runs, 5)
    assert {name: len(own) for name, own in taken.items()} == {"a": 5, "b": 5, "c": 5}
    assert all(set(seen[at : at + 3]) == set("abc") for at in range(0, 15, 3))
    found = turns.ratio([2.0, 4.0, 9.0], [1.0, 2.0, 3.0])
    assert (found.middle, found.low, found.high) == (2, 2, 3)
    assert str(found) == "2.0000 [2.0000, 3.0000]"


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


@pytest.mark.parametrize("bench", [gpu_matmul, device_memory, device_latency])
def test_without_a_gpu_it_is_skipped(bench, monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.setattr("linkgauge.backends.cuda.driver.LIBRARY", "libnone.so.1")
    monkeypatch.setattr(sys, "argv", [bench.__name__])
    assert bench.main() == 0
    assert "skipped" in capsys.readouterr().out
