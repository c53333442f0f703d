"""Which of several parts explains the losses in a table."""

import math

from linkgauge.judge.blame.cases import Case
from linkgauge.judge.blame.causes import suspects
from linkgauge.judge.blame.explain import Search
from linkgauge.judge.blame.table import Row
from linkgauge.model.hardware.part import Part


def table(whole, inner, lost):
    """Six classes of cells that lose alike through `whole`. Those of three of them use `inner`,
    too, and a peer of each class uses neither."""
    found = []
    for peers, cells in enumerate((4, 4, 4, 1, 1, 1)):
        for parts in (*[{whole, inner} if cells > 1 else {whole}] * cells, set()):
            case = Case(len(found), None, None, frozenset(parts), frozenset(parts), None)
            loss = lost if parts else 0.0
            found.append(Row(case=case, peers=peers, lost=loss, relative=loss, slow=bool(parts)))
    return found


def test_classes_that_lose_alike_are_explained_by_what_they_share():
    whole, inner = Part("node", "host:0"), Part("PCIe link", "PCIe link of sim:0")
    rows = table(whole, inner, math.log(0.945))
    search = Search(rows, suspects(rows))
    assert [one.part for one in search.chosen] == [whole]
