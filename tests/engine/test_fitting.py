"""A journal whose records do not fit its plan is refused in a line that names the file and the
record, wherever it is read."""

import pytest
from msgspec.structs import replace

from engine.test_journal import OPENED, TRANSFER, cell
from linkgauge.engine.kept.journal import Again, Closed, Journal, MeasuredRepetition
from linkgauge.engine.kept.runs import read_run
from linkgauge.engine.repetitions import CellAt
from linkgauge.model.documents.result import RankTimes, TransferFigure
from linkgauge.model.errors import InputError
from linkgauge.model.transfer import Place

WHOLE = replace(cell(), repetitions=((1,),))
PART = TransferFigure(0, 64, (1.5,), None)
NOT_THERE = Place("0", "7")


@pytest.fixture
def journal(tmp_path):
    """Makes a journal of these records behind its plan, and returns its path."""

    def make(*records):
        path = tmp_path / "journal.jsonl"
        path.unlink(missing_ok=True)
        written = Journal.begin(path, OPENED)
        for record in records:
            written.append(record)
        written.close()
        return path

    return make


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (MeasuredRepetition(7, WHOLE), "its table is 7, and the plan has 2"),
        (MeasuredRepetition(-1, WHOLE), "its table is -1, and the plan has 2"),
        (MeasuredRepetition(1, WHOLE), r"skipped has no cell \[0, 0\] in the plan"),
        (MeasuredRepetition(0, replace(WHOLE, column="7")), r"b has no cell \[0, 7\] in the plan"),
        (
            MeasuredRepetition(0, replace(WHOLE, transfers=TRANSFER * 2)),
            "it has 2 transfers.* plan has 1",
        ),
        (
            MeasuredRepetition(0, replace(WHOLE, repetitions=((1, 1),))),
            "its repetitions have 2 samples, and it has 1",
        ),
        (MeasuredRepetition(0, replace(WHOLE, repetitions=((2, -1),))), "its repetitions have"),
        (
            MeasuredRepetition(0, replace(WHOLE, samples=())),
            "its repetitions have 1 samples, and it has 0",
        ),
        (
            MeasuredRepetition(0, replace(WHOLE, parts=(replace(PART, samples=()),))),
            "a part of it has 0",
        ),
        (
            MeasuredRepetition(0, replace(WHOLE, parts=(replace(PART, transfer=1),))),
            "is of transfer 1",
        ),
        (
            MeasuredRepetition(
                0, replace(WHOLE, iterations=(RankTimes(0, (1.5,)), RankTimes(1, ())))
            ),
            "its ranks have different numbers of iterations",
        ),
        (MeasuredRepetition(0, WHOLE, 0, -1.0), "it was measured -1 seconds after"),
        (MeasuredRepetition(0, WHOLE, 0, 1e300), r"it was measured 1e\+300 seconds after"),
        (Again((CellAt(0, NOT_THERE),)), r"b has no cell \[0, 7\] in the plan"),
        (Again((CellAt(2, WHOLE.place),)), "its table is 2"),
        (OPENED, "it opens a run, as the first line does"),
    ],
)
def test_a_record_that_does_not_fit_the_plan_is_named_with_its_file(journal, record, said):
    path = journal(MeasuredRepetition(0, WHOLE), record, Closed("later"))
    with pytest.raises(InputError, match=f"{path}.*line 3 of the journal does not fit: .*{said}"):
        read_run(path)
