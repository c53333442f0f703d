"""Meetings of the ranks of a cell, as rank 0 sees them."""

import msgspec
import pytest

from linkgauge.engine.ranks.clocks import Clocks
from linkgauge.engine.ranks.commands import Meet, PartyLeft, Said, TakePart
from linkgauge.engine.ranks.meeting import Meetings
from linkgauge.engine.workers.messages import Measure
from linkgauge.engine.workers.outcomes import FIRST
from linkgauge.machine.processes.channel import Done
from linkgauge.model.ranks import LostRank, RankLost

PART = TakePart(Measure((), 1, FIRST), (0, 2), (), False)
LOST = RankLost(LostRank(2, "ended", "measuring"), "crash")
RAW = msgspec.Raw(b"\xc0")


class LosesOneLater:
    """Links to two ranks that come to a meeting. Rank 2 is lost while its clock is asked."""

    def __init__(self, lost=None):
        self.lost = lost
        self.sent = []

    def round(self, commands, _=0):
        self.sent.append(dict(commands))
        first = len(self.sent) == 1
        return {r: Meet(Said(RAW, None), 1, True, False) if first else Done(RAW) for r in commands}

    def there(self, ranks):
        return {rank for rank in ranks if rank != 2}

    def check_there(self, _):
        raise LOST


class NoClock(Clocks):
    def ahead(self, _):
        raise LOST


@pytest.mark.parametrize(
    ("ends", "told"), [(None, [{0: PartyLeft("rank 2 has left the cell")}]), (LOST, [])]
)
def test_who_waits_is_told_of_a_rank_that_is_lost_while_its_clock_is_asked(ends, told):
    """Else the next cell's command would reach who still waits at the meeting of this one."""
    links = LosesOneLater(ends)
    meetings = Meetings(links)
    meetings._clocks = NoClock(links)
    with pytest.raises(RankLost):
        meetings.carry_out(PART, 0)
    assert links.sent[1:] == told
