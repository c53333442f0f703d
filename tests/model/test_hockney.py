"""Hockney's line: exact where times lie on one, honest where they do not."""

import random
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from linkgauge.model.stats.hockney import KNOWN, OFF, OFF_PIECE, Timed, fit

KI, MI = 1 << 10, 1 << 20
POWERS = tuple(KI << n for n in range(0, 21, 2))

latencies = st.floats(1e-7, 1e-3)
bandwidths = st.floats(1e8, 1e12)
sweeps = st.lists(st.integers(1, 1 << 34), min_size=3, max_size=20, unique=True).filter(
    lambda sizes: max(sizes) >= 4 * min(sizes)
)


def on_line(sizes, latency, bandwidth, counted=1):
    return [Timed(size, counted * size, latency + counted * size / bandwidth) for size in sizes]


@given(sweeps, latencies, bandwidths, st.integers(1, 4))
def test_a_line_is_found_exactly(sizes, latency, bandwidth, counted):
    found = fit(on_line(sizes, latency, bandwidth, counted))
    assert found.error < 1e-6
    assert found.latency is None or found.latency == pytest.approx(latency, rel=1e-4)
    assert found.bandwidth is None or found.bandwidth == pytest.approx(bandwidth, rel=1e-4)
    if found.half_size is not None:
        assert found.half_size == pytest.approx(latency * bandwidth / counted, rel=1e-3)


@given(latencies, bandwidths)
def test_at_the_half_size_half_of_the_bandwidth_is_reached(latency, bandwidth):
    assume(4 * KI < latency * bandwidth < 100 * MI)
    found = fit(on_line(POWERS, latency, bandwidth))
    time = found.latency + found.half_size / found.bandwidth
    assert found.half_size / time == pytest.approx(found.bandwidth / 2)


@given(st.lists(st.builds(Timed, st.integers(1, 1 << 40), st.integers(1, 1 << 40),
                          st.floats(1e-9, 1e3)), max_size=8))  # fmt: skip
def test_any_times_have_a_line_that_is_nowhere_negative_or_none(points):
    found = fit(points)
    if found is None:
        return
    for value in (found.latency, found.bandwidth, found.half_size):
        assert value is None or value > 0
    if found.error > OFF:
        assert (found.latency, found.bandwidth, found.half_size) == (None, None, None)


@given(st.integers(1, 9), latencies, bandwidths, st.floats(2, 20), st.floats(1.5, 10))
def test_a_change_of_protocol_makes_two_pieces(last, latency, bandwidth, slower, faster):
    before, after = POWERS[: last + 1], POWERS[last + 1 :]
    protocols = on_line(before, latency, bandwidth) + on_line(
        after, slower * latency, faster * bandwidth
    )
    found = fit(protocols)
    assert found.pieces or found.error <= OFF_PIECE
    assert len(found.pieces) <= 2
    for time in protocols:
        said = [piece for piece in found.pieces if piece.least <= time.size <= piece.most]
        for piece in said:
            seconds = piece.latency + (time.bytes / piece.bandwidth if piece.bandwidth else 0)
            assert seconds == pytest.approx(time.seconds, rel=OFF_PIECE)
        assert len(said) == bool(found.pieces)


def test_times_that_follow_no_lines_have_no_pieces():
    wild = [Timed(size, size, 1e-6 * (1, 9)[n % 2] / (1 + n)) for n, size in enumerate(POWERS)]
    assert fit(wild).pieces == ()


@pytest.mark.parametrize("sizes", [(), (KI,), (KI, MI), (KI, MI, KI), (KI, 2 * KI, 3 * KI)])
def test_few_sizes_or_close_ones_have_no_line(sizes):
    assert fit(on_line(sizes, 1e-6, 1e10)) is None


def test_times_that_change_their_course_have_no_line_but_the_place_that_is_off_most():
    """A cache of ten times the memory's bandwidth up to 1 MiB."""
    points = [Timed(s, s, s / (1e11 if s <= MI else 1e10)) for s in POWERS]
    found = fit(points)
    assert found.error > OFF
    assert found.worst in POWERS
    assert found.latency is found.bandwidth is found.half_size is None


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_what_is_known_is_known_to_a_quarter(noise):
    rng = random.Random(7)
    missed = known = 0
    for _ in range(2000):
        latency, bandwidth = 10 ** rng.uniform(-7, -4), 10 ** rng.uniform(9, 11.7)
        sizes = [2 ** rng.randint(0, 16) * 4**n for n in range(rng.randint(3, 9))]
        points = on_line(sorted({*sizes}), latency, bandwidth)
        found = fit([replace(p, seconds=p.seconds * rng.gauss(1, noise)) for p in points])
        for value, true in (
            ((found.latency, latency), (found.bandwidth, bandwidth)) if found else ()
        ):
            known += value is not None
            missed += value is not None and abs(value / true - 1) > KNOWN
    assert known > 2000
    assert missed < 0.01 * known


RECORDED = Path(__file__).parents[1] / "data"


def recorded(file):
    """Yields the times of each collective of nccl-tests, out of place and in place."""
    found, name = {}, ""
    for text in (RECORDED / file).read_text().splitlines():
        words = text.split()
        if "Collective test starting" in text:
            name = words[-1]
        elif words and words[0].isdigit() and int(words[0]):
            for place, column in (("out", 5), ("in", 9)):
                if words[column] != "N/A":
                    time = Timed(int(words[0]), int(words[0]), 1e-6 * float(words[column]))
                    found.setdefault((name, place), []).append(time)
    return found


@pytest.mark.parametrize("file", ["nccl-tests-2xH200.txt", "nccl-tests-4xH200.txt"])
def test_pieces_of_recorded_collectives_miss_no_time_by_more_than_a_twentieth(file):
    curves = recorded(file)
    assert ("all_reduce_perf", "out") in curves
    for of, times in curves.items():
        found = fit(times)
        # 16 to 20 µs in turn up to 32 KiB: such times follow no lines.
        if (file, of) == ("nccl-tests-2xH200.txt", ("sendrecv_perf", "out")):
            assert found.pieces == ()
            continue
        assert found.pieces
        for time in times:
            (piece,) = [one for one in found.pieces if one.least <= time.size <= one.most]
            seconds = piece.latency + (time.bytes / piece.bandwidth if piece.bandwidth else 0)
            assert seconds == pytest.approx(time.seconds, rel=OFF_PIECE * 1.0001)
