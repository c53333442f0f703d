"""Statuses add up to one, and one exit code says what happened."""

import itertools

import msgspec
import pytest

from linkgauge.model.machine import Host, Machine
from linkgauge.model.notation import decode_hook, encode_hook
from linkgauge.model.result import CellResult, PlannedCell, Result, Run, exit_code, worst
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Report


def run_of(*statuses):
    host = Host("h", "os", "6.1", "x86_64", None, 1, (), None, None, None, None)
    cells = tuple(
        CellResult("0", str(number), ("host:0 -> host:0 by cpu",), Report.FIRST, status)
        for number, status in enumerate(statuses)
    )
    result = Result(
        benchmark="b", title="t", backend="host", size=1, unit="B/s", better="higher",
        status=worst(statuses), cells=cells,
    )  # fmt: skip
    return Run(
        id="1", label="l", command=(), started="", finished="", machine=Machine(host),
        settings=Settings((1,)), results=(result,),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("statuses", "code"),
    [
        (("pass", "skip"), 0),
        (("pass", "fail"), 1),
        (("pass", "fail", "error"), 3),
        (("timeout", "fail"), 3),
        (("skip",), 4),
        ((), 4),
    ],
)
def test_exit_codes_follow_the_contract(statuses, code):
    assert exit_code(run_of(*statuses)) == code


def test_nothing_measured_is_never_success():
    for statuses in itertools.product(("skip", "fail", "error", "timeout"), repeat=3):
        assert exit_code(run_of(*statuses)) != 0


@pytest.mark.parametrize(
    ("report", "operation"),
    [("latency", "chase"), ("enqueue", "enqueue"), ("first", "copy"), ("sum", "copy")],
)
@pytest.mark.parametrize(
    ("kind", "more"), [(CellResult, {"status": "pass"}), (PlannedCell, {"number": 3})]
)
def test_a_cell_of_a_file_without_operations_did_what_its_report_implies(
    kind, more, report, operation
):
    old = {"row": "0", "column": "1", "transfers": ["host:0 -> sim:0 by ce"], "report": report}
    cell = msgspec.json.decode(msgspec.json.encode(old | more), type=kind, dec_hook=decode_hook())
    assert (cell.report, cell.operation) == (report, operation)
    again = msgspec.json.encode(cell, enc_hook=encode_hook)
    assert msgspec.json.decode(again, type=kind, dec_hook=decode_hook()) == cell
