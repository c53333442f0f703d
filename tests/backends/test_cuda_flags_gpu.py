"""Flags on a real GPU: they come back, and a side that hears nothing gives up."""

import time
from itertools import pairwise

import pytest

from cuda_kit import on_gpus
from linkgauge.backends.cuda import flags
from linkgauge.backends.protocol import Copy, run
from linkgauge.model.errors import TookTooLong
from linkgauge.model.notation import parse_transfer

pytestmark = pytest.mark.gpu
PATHS = ("host:0 -> cuda:0 by sm", "cuda:0 -> cuda:0 by sm")


@pytest.fixture
def backend():
    opened = on_gpus()
    yield opened
    opened.close()


def bounce(backend, text, batches=64):
    transfer = parse_transfer(text)
    ends = [backend.allocate(end, flags.BYTES, transfer.engine) for end in transfer.memories]
    group = backend.prepare([Copy(transfer, *ends, flags.BYTES, 1)], "flag-ping-pong")
    try:
        return run(group, 1, batches)
    finally:
        group.close()
        for end in ends:
            end.free()


@pytest.mark.parametrize("text", PATHS)
def test_each_flag_takes_as_long_as_memory_is_away(backend, text):
    for _ in range(3):  # in memory that may hold flags of the last time
        (times,) = bounce(backend, text).progress
        ways = sorted((end - begin) / 2 for begin, end in pairwise(times))
        assert 50e-9 < ways[len(ways) // 2] < 20e-6


@pytest.mark.parametrize("text", PATHS)
def test_a_partner_that_never_answers_ends_it_in_time_and_the_device_is_free(
    backend, text, monkeypatch
):
    started = flags.FlagKernel.start
    silent = []

    def start(side, first, count):
        if count and not silent:
            silent.append(side)
        if side in silent and count:
            return
        started(side, first, count)

    monkeypatch.setattr(flags.FlagKernel, "start", start)
    begin = time.monotonic()
    with pytest.raises(TookTooLong, match=r"no answer from cuda:0 within 2 s"):
        bounce(backend, text)
    assert time.monotonic() - begin < 5
    monkeypatch.setattr(flags.FlagKernel, "start", started)
    begin = time.monotonic()
    bounce(backend, text)
    assert time.monotonic() - begin < 1


@pytest.mark.parametrize("share", [25, 50, 75])
def test_a_load_keeps_its_share_of_its_own_rate(backend, share):
    size = 64 << 20
    rates = {}
    for load in (share, 100):
        transfer = parse_transfer(f"host:0 -> cuda:0 by sm at {load}%")
        ends = [backend.allocate(end, size, transfer.engine) for end in transfer.memories]
        flag = parse_transfer("host:0 -> cuda:0 by sm")
        own = [backend.allocate(end, flags.BYTES, flag.engine) for end in flag.memories]
        copies = [
            Copy(flag, *own, flags.BYTES, 1),
            Copy(transfer, *ends, size, 2, interference=True, endless=True),
        ]
        group = backend.prepare(copies, "flag-ping-pong")
        timing = run(group, 1, 64)
        rates[load] = 64 * size / timing.seconds[1]
        assert len(timing.progress[0]) == 65
        group.close()
        for end in (*ends, *own):
            end.free()
    assert rates[share] == pytest.approx(rates[100] * share / 100, rel=0.1)
