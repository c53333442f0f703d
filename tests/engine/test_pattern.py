"""What one-way copies move can be asked for: a 64-bit word, over and over."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fakes import FakeBackend, word
from linkgauge.backends.protocol import seed_of
from linkgauge.engine.measure import measure_together
from linkgauge.engine.measurement import Measurement
from linkgauge.engine.pool import BufferPool
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import PlannedCell
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report

ASKED = 0x0123456789ABCDEF


def measure(text, backend, pattern=ASKED):
    transfers = parse_transfers(text)
    planned = PlannedCell("0", "0", transfers, Report.SUM)
    settings = Settings((1000,), samples=2, loops=1, pattern=pattern)
    cell = Measurement(planned, 1000, settings, [backend] * len(transfers))
    (result,) = measure_together([cell], settings, BufferPool()).cells
    return result


@given(st.integers(0, 2**64 - 1))
def test_every_word_is_the_first_of_some_seed(asked):
    assert word(0, seed_of(asked)) == asked


@pytest.mark.parametrize("asked", [ASKED, 0, 2**64 - 1])
def test_it_is_what_arrives(asked):
    backend = FakeBackend()
    cell = measure("host:0 -> fake:0 by ce & fake:0 -> fake:1 by ce", backend, asked)
    assert (cell.status, cell.verified) == ("pass", True)
    whole = asked.to_bytes(8, "little") * 125
    assert [bytes(buffer.data[:1000]) for buffer in backend.buffers] == [whole] * 4


def test_a_byte_that_differs_from_it_fails_the_cell():
    backend = FakeBackend()

    def harm(group):
        backend.buffers[1].data[77] ^= 1

    backend.on_sample = harm
    cell = measure("host:0 -> fake:0 by ce", backend)
    assert cell.status == "fail"
    assert "wrong at byte 77 of 1000" in cell.reason


def test_split_copies_keep_their_own_pattern():
    assert measure("fake:0 <-> fake:1 by sm", FakeBackend()).status == "pass"
