"""Copies cut into small pieces on OpenCL: every byte arrives, and the queues are not overfilled."""

import pytest

from linkgauge.backends import opencl
from linkgauge.backends.protocol import Copy, Pattern
from linkgauge.machine.host import read_host
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.settings import EngineSettings, Pieces

pytest.importorskip("pyopencl")

PATHS = ["host:0/staging -> opencl:0", "opencl:0 -> host:0/staging", "opencl:0 -> opencl:0"]


@pytest.fixture(scope="module")
def backend():
    try:
        opened = opencl.create(EngineSettings(pieces=Pieces(4096, 3)), read_host())
    except Unsupported as reason:
        pytest.skip(str(reason))
    yield opened
    opened.close()


def prepared(backend, text, size):
    transfer = parse_transfer(text)
    reason = backend.refusal(transfer)
    if reason is not None:
        pytest.skip(reason)
    ends = [backend.allocate(memory, size, transfer.engine) for memory in transfer.memories]
    backend.fill(ends[0], size, Pattern.WORDS, 5, inverted=False)
    backend.fill(ends[1], size, Pattern.WORDS, 5, inverted=True)
    return backend.prepare([Copy(transfer, *ends, size, seed=5)]), ends


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("engine", ["ce", "sm"])
@pytest.mark.parametrize("size", [1, 15, 17, 4096, 4097, 100_003])
def test_every_byte_of_every_piece_arrives(backend, path, engine, size):
    group, ends = prepared(backend, f"{path} by opencl:0.{engine}", size)
    for loops in (1, 3):
        group.arm(loops)
        group.open()
        assert group.wait().span > 0
    group.close()
    assert backend.first_mismatch(ends[1], size, Pattern.WORDS, 5) is None


def test_more_pieces_than_a_queue_holds_are_refused(backend):
    group, _ = prepared(backend, f"{PATHS[0]} by ce", 501 * 4096)
    assert group.most_loops == 1
    group.arm(1)
    group.open()
    group.wait()
    with pytest.raises(Unsupported, match="no more than 500 pieces a buffer"):
        group.arm(2)
    group.close()


def test_what_is_told_of_a_figure_names_the_pieces(backend):
    (remark,) = [
        text for text in backend.remarks(parse_transfer(f"{PATHS[0]} by ce")) if "pieces" in text
    ]
    assert remark == "pieces of 4096 bytes over 1 streams"
