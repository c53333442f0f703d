"""Files of earlier versions say in words alone why a cell did not pass, and what else there is to
know of it."""

import pytest

from linkgauge.engine.older import current
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import Beside, Imprecise, Remark
from linkgauge.model.result import CellResult
from linkgauge.model.transfer import Report
from linkgauge.report.sentences import sentence


def cell(status, reason, **more):
    transfers = parse_transfers("host:0 -> cuda:0 by ce")
    return CellResult("0", "0", transfers, Report.FIRST, status, reason, **more)


@pytest.mark.parametrize(
    ("kind", "status", "reason"),
    [
        ("peer", "skip", "no peer access from cuda:0 to cuda:1 (cuDeviceCanAccessPeer)"),
        ("imex", "error", "cuMemCreate: fabric handles need an IMEX channel"),
        ("timeout", "timeout", "while measuring (cuda:0): no end after 10 s"),
        ("crash", "error", "while measuring (cuda:0): the worker was ended by SIGSEGV"),
        ("lost", "error", "while measuring (cuda:0): copy: device lost"),
        ("memory", "error", "while allocating (cuda:0): cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY"),
        (None, "error", "while measuring (cuda:0): cuMemcpyAsync: CUDA_ERROR_UNKNOWN"),
        (None, "skip", "a copy engine cannot read or write alone: use sm"),
        (None, "pass", None),
    ],
)
def test_the_words_tell_the_kind(kind, status, reason):
    assert current(cell(status, reason)).kind == kind


def test_what_failed_had_wrong_bytes_or_missed_a_limit():
    assert current(cell("fail", "wrong at byte 0", verified=False)).kind == "wrong-bytes"
    assert current(cell("fail", "below the limit", verified=True)).kind == "limit"


@pytest.mark.parametrize(
    ("warning", "note"),
    [
        ("measured at the same time as 3 other pairs", Beside(3)),
        (
            (
                "precision of ±1.00% missed: ±4.26% after 24 samples; raise --max-time or "
                "quiet the machine"
            ),
            Imprecise(0.01, 0.0426, 24),
        ),
        (
            (
                "precision of ±0.50% missed: no interval after 2 samples; raise --max-time or "
                "quiet the machine"
            ),
            Imprecise(0.005, None, 2),
        ),
        ("host:0 is not locked in memory", Remark("host:0 is not locked in memory")),
        ("not visited again: set aside", Remark("not visited again: set aside")),
    ],
)
def test_warnings_become_notes_that_say_the_same(warning, note):
    read = current(cell("pass", None, warnings=(warning,)))
    assert (read.notes, read.warnings) == ((note,), ())
    assert sentence(note) == warning
