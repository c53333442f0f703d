"""Files of earlier versions say in words alone why a cell did not pass."""

import pytest

from linkgauge.engine.older import with_kind
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult
from linkgauge.model.transfer import Report


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
    assert with_kind(cell(status, reason)).kind == kind


def test_what_failed_had_wrong_bytes_or_missed_a_limit():
    assert with_kind(cell("fail", "wrong at byte 0", verified=False)).kind == "wrong-bytes"
    assert with_kind(cell("fail", "below the limit", verified=True)).kind == "limit"


def test_a_kind_that_is_there_stays():
    assert with_kind(cell("error", "device lost", kind="call")).kind == "call"
