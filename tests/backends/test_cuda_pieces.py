"""Copies cut into small pieces, on a GPU: every byte arrives, by kernels and by copy engines."""

import pytest

from linkgauge.backends import cuda
from linkgauge.backends.protocol import Copy, Pattern, run
from linkgauge.machine.host import read_host
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import EngineSettings, Pieces

SIZES = [1, 15, 4095, 4096, 4097, 100_003, 1 << 20, (16 << 20) + 5]
PATHS = ["host:0/staging -> cuda:0", "cuda:0 -> host:0/staging", "cuda:0 -> cuda:0"]


@pytest.mark.gpu
@pytest.mark.parametrize("engine", ["sm", "ce"])
@pytest.mark.parametrize("payload", [128, 256, 512])
@pytest.mark.parametrize("streams", [1, 32, 200])
def test_every_byte_of_every_piece_arrives(engine, payload, streams):
    pieces = Pieces(4096, streams, payload)
    try:
        backend = cuda.create(EngineSettings(tuned=False, pieces=pieces), read_host())
    except Unsupported as reason:
        pytest.skip(str(reason))
    try:
        for size in SIZES:
            for path in PATHS:
                copy_once(backend, parse_transfer(f"{path} by cuda:0.{engine}"), size)
    finally:
        backend.close()


def copy_once(backend, transfer, size):
    ends = [backend.allocate(memory, size, transfer.engine) for memory in transfer.memories]
    copy = Copy(transfer, *ends, size, seed=7)
    backend.fill(ends[0], size, Pattern.WORDS, 7, inverted=False)
    backend.fill(ends[1], size, Pattern.WORDS, 7, inverted=True)
    group = backend.prepare([copy])
    try:
        for loops in (1, 3):
            timing = run(group, loops)
            assert min(*timing.seconds, timing.span) > 0
    finally:
        group.close()
    assert backend.first_mismatch(ends[1], size, Pattern.WORDS, 7) is None, (transfer, size)
    for end in ends:
        end.free()
