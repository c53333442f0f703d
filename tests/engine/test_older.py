"""Files of earlier versions say in words alone why a cell did not pass, and what else there is to
know of it."""

import pytest
from msgspec.structs import replace

from linkgauge.engine.kept.runs import read_run
from linkgauge.model.notes import Concurrent, Imprecise, Remark
from linkgauge.report.files import write_run
from report.samples import RUN

QUIET = "; raise --max-time or stop other programs"


def read(folder, **changed):
    """The first cell of a run, read from a file that says this of it."""
    (result, *others) = RUN.results
    values = {"kind": None, "notes": (), "warnings": (), **changed}
    cells = (replace(result.cells[0], **values), *result.cells[1:])
    write_run(folder, replace(RUN, results=(replace(result, cells=cells), *others)))
    return read_run(folder).results[0].cells[0]


@pytest.mark.parametrize(
    ("kind", "status", "reason", "verified"),
    [
        ("peer", "skip", "no peer access from cuda:0 to cuda:1 (cuDeviceCanAccessPeer)", None),
        ("imex", "error", "cuMemCreate: fabric handles need an IMEX channel", None),
        ("timeout", "timeout", "while measuring (cuda:0): no end after 10 s", None),
        ("crash", "error", "while measuring (cuda:0): the worker was ended by SIGSEGV", None),
        ("lost", "error", "while measuring (cuda:0): copy: device lost", None),
        ("memory", "error", "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY", None),
        (None, "error", "while measuring (cuda:0): cuMemcpyAsync: CUDA_ERROR_UNKNOWN", None),
        (None, "skip", "a copy engine cannot read or write alone: use sm", None),
        (None, "pass", None, True), ("wrong-bytes", "fail", "wrong at byte 0", False),
        ("limit", "fail", "below the limit", True),
    ],
)  # fmt: skip
def test_the_words_tell_the_kind(tmp_path, kind, status, reason, verified):
    assert read(tmp_path, status=status, reason=reason, verified=verified).kind == kind


@pytest.mark.parametrize(
    ("warning", "note"),
    [
        ("measured at the same time as 3 other pairs", Concurrent(3)),
        ("precision of ±1.00% missed: ±4.26% after 24 samples" + QUIET,
         Imprecise(0.01, 0.0426, 24)),
        ("precision of ±0.50% missed: no interval after 2 samples" + QUIET,
         Imprecise(0.005, None, 2)),
        ("not repeated: set aside", Remark("not repeated: set aside")),
    ],
)  # fmt: skip
def test_warnings_become_notes(tmp_path, warning, note):
    cell = read(tmp_path, warnings=(warning,))
    assert (cell.notes, cell.warnings) == ((note,), ())
    kept = read(tmp_path, warnings=("in words",), notes=(note,))
    assert (kept.notes, kept.warnings) == ((note,), ())
