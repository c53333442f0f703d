"""Statuses add up to one, and one exit code says what happened."""

import msgspec
import pytest

from linkgauge.model.documents.result import CellResult, PlannedCell
from linkgauge.model.notation import decode_hook, encode_hook


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
