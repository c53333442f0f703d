"""Buffers are doubled until doubling changes nothing, time is over, or there is no more memory."""

import itertools

import pytest

from linkgauge import _native
from linkgauge.backends import host_plateau
from linkgauge.backends.host_plateau import Speed, beyond_caches, remembered, speed_of
from linkgauge.machine.host import read_host

MI = 1 << 20
NODE = read_host().nodes[0]


@pytest.fixture
def paced(monkeypatch):
    """Takes the speed of each size from a table, and a second of a clock of its own for each."""
    measured = []

    def use(speeds, seconds=0.0):
        clock = itertools.count(0.0, seconds / 2 or 1e-9)

        def measure(_node, size):
            measured.append(size // MI)
            found = speeds[size // MI]
            if isinstance(found, OSError):
                raise found
            return Speed(*found)

        monkeypatch.setattr(host_plateau, "speed_of", measure)
        monkeypatch.setattr(host_plateau.time, "monotonic", lambda: next(clock))
        return measured

    return use


CACHED = {64: (1, 20), 128: (1, 50), 256: (1.3, 90), 512: (1.31, 92), 1024: (1.31, 92)}


def test_it_ends_at_the_size_of_which_the_double_is_alike(paced):
    measured = paced(CACHED)
    assert beyond_caches(NODE, 64 * MI, 4096 * MI) == 256 * MI
    assert measured == [64, 128, 256, 512]


def test_the_rate_and_the_latency_both_count(paced):
    paced({1: (1.0, 100), 2: (1.0, 80), 4: (1.2, 80), 8: (1.2, 80)})
    assert beyond_caches(NODE, MI, 64 * MI) == 4 * MI


def test_it_goes_no_further_than_asked(paced):
    measured = paced(CACHED)
    assert beyond_caches(NODE, 64 * MI, 200 * MI) == 128 * MI
    assert measured == [64, 128]


def test_it_measures_nothing_where_there_is_no_larger_size(paced):
    measured = paced(CACHED)
    assert beyond_caches(NODE, 64 * MI, 100 * MI) == 64 * MI
    assert measured == []


def test_it_ends_when_the_next_size_would_take_too_long(paced):
    measured = paced(CACHED, seconds=1.0)
    assert beyond_caches(NODE, 64 * MI, 4096 * MI, seconds=2.0) == 64 * MI
    assert measured == [64]


def test_it_takes_what_memory_allows(paced):
    paced({**CACHED, 256: OSError(12, "Cannot allocate memory")})
    assert beyond_caches(NODE, 64 * MI, 4096 * MI) == 128 * MI


def test_the_size_is_remembered_and_only_grows(paced, tmp_path):
    file = tmp_path / "tuned" / "buffer.json"
    paced(CACHED)
    assert remembered(NODE, 64 * MI, 4096 * MI, file) == 256 * MI
    measured = paced({256: (1, 90), 512: (1, 90)})
    assert remembered(NODE, 64 * MI, 4096 * MI, file) == 256 * MI
    assert measured[-2:] == [256, 512]
    paced({256: (1, 60), 512: (1.3, 90), 1024: (1.3, 92)})
    assert remembered(NODE, 64 * MI, 4096 * MI, file) == 512 * MI
    assert remembered(NODE, 64 * MI, 128 * MI, file) == 128 * MI
    file.write_text("not JSON")
    paced(CACHED)
    assert remembered(NODE, 64 * MI, 4096 * MI, file) == 256 * MI
    file.unlink()
    file.mkdir()  # cannot be written
    assert remembered(NODE, 64 * MI, 4096 * MI, file) == 256 * MI


def test_a_speed_is_measured_on_this_machine():
    least = _native.LINK * 16
    speed = speed_of(NODE, 4 * MI)
    assert least < 4 * MI
    assert 0 < speed.byte < 1e-6
    assert 0 < speed.access < 1e-4
