"""A run that lost ranks goes on when they are back, and measures what their loss cost."""

import pytest

from command_kit import called
from launch_kit import by_variables, harmed, launch
from linkgauge.engine.kept.journal import MeasuredVisit, read_records

PASSED = [("0", "1"), ("0", "2"), ("1", "0")]
COST = [("1", "2"), ("2", "0"), ("2", "1")]
"""Of three ranks, what a loss in the middle has left, and what it cost."""


@pytest.fixture(scope="module")
def broken(tmp_path_factory):
    """Rank 2 is killed in the second of the four cells in which it has a part."""
    made = launch(
        tmp_path_factory.mktemp("broken"), 3, "run", "nic_tcp", "--size", "64K", "--samples", "2",
        "--loops", "2", "--timeout", "20",
        launcher=by_variables(), program=harmed(2, "SIGKILL", "Prepare", 2),
    )  # fmt: skip
    assert made.exits == {0: 3, 1: 0, 2: 137}, made.stderr
    return made


def resumed(broken, **more):
    """By all ranks; without a verdict, since a busy machine's pairs differ."""
    (journal,) = broken.journals
    words = "run", "--resume", str(journal.parent), "--no-verdict"
    return launch(journal.parents[4], 3, *words, launcher=by_variables(), **more)


def measured(broken):
    """Each visit in the journal that passed, in order."""
    records = read_records(broken.journals[0].read_bytes())
    cells = [record.cell for record in records if isinstance(record, MeasuredVisit)]
    return [(cell.row, cell.column) for cell in cells if cell.status == "pass"]


def test_ranks_that_are_elsewhere_are_refused_and_nothing_is_lost(broken):
    before = broken.journals[0].read_bytes()
    elsewhere = "LINKGAUGE_HOST=$(test $LINKGAUGE_RANK = 1 && echo node7 || hostname) "
    ended = resumed(broken, prefix=elsewhere)
    assert ended.exits == {0: 2, 1: 0, 2: 0}
    (line,) = ended.stderr.splitlines()
    assert "host of rank 1 was " in line
    assert "is now node7: start each rank where it was, or a new run" in line
    assert broken.journals[0].read_bytes() == before


def test_one_process_alone_is_told_to_start_all_ranks(broken):
    folder = broken.journals[0].parent
    done = called("run", "--resume", folder)
    assert done.returncode == 2
    assert f"{folder} is a run of 3 ranks: start each as before" in done.stderr


def test_just_what_was_lost_is_measured_again_even_if_rank_0_is_killed_meanwhile(broken):
    assert [cell.place for cell in broken.run.results[0].cells if cell.lost == 2] == COST
    assert measured(broken) == PASSED
    killed = resumed(broken, program=harmed(0, "SIGKILL", "Prepare"))
    assert killed.exits == {0: 137, 1: 3, 2: 3}
    assert "measuring 3 cells again that the loss of rank 2 had cost" in killed.stderr
    assert killed.run.lost.number == 0
    assert measured(broken) == PASSED + COST[:1]
    whole = resumed(broken)
    assert whole.exits == {0: 0, 1: 0, 2: 0}, whole.stderr
    assert measured(broken) == PASSED + COST
    assert (whole.run.lost, len(whole.run.resumed)) == (None, 2)
    assert whole.run.finished is not None
    (result,) = whole.run.results
    assert {cell.status for cell in result.cells} == {"pass"}
    again = resumed(broken)
    assert again.exits == {0: 0, 1: 0, 2: 0}
    assert "is complete: nothing left to measure" in again.stderr
    assert measured(broken) == PASSED + COST
