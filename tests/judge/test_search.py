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


def test_a_drift_that_each_class_shows_from_a_cell_of_its_own_is_one_cause():
    """The fastest peer of local copies has lost, too, and the slots bound copies until the link
    between the nodes has fallen below them: the lines of the classes begin at 9, 1 and 24."""
    device, link, near = (Part("device", name) for name in ("sim:2", "link", "near"))
    rows = []
    for peers, (parts, begin) in enumerate(
        (({device}, 9), ({device, link}, 1), ({device, link, near}, 24))
    ):
        for number in range(peers, 54, 6):
            for own in (parts, {near} if near in parts else set()):
                lost = -0.017 * max(0, number - begin) if own is parts else 0.0
                case = Case(number, None, None, frozenset(own), frozenset(own), None)
                rows.append(Row(case=case, peers=peers, lost=lost, relative=lost, slow=lost < -0.1))
    rows.sort(key=lambda row: row.number)
    search = Search(rows, suspects(rows))
    assert [(one.part, one.drifts) for one in search.chosen] == [(device, True)]
    (level,) = search.best.levels.values()
    assert abs(level + 0.017) < 0.0005
