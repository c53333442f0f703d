"""All members of a run are one backend: it allocates, fills, starts and verifies where that is."""

import pytest

from fakes import device
from linkgauge.backends.member import Allocate, Ended, Prepared
from linkgauge.backends.protocol import Pace, Pattern
from linkgauge.engine.ranks import messages
from linkgauge.engine.ranks.clocks import LEAD_SECONDS, MOST_LEAD_SECONDS
from linkgauge.engine.ranks.remote import RankBackend, SimRankBackend
from linkgauge.machine.channel import Reason
from linkgauge.model.errors import AllocationError, NoPeerAccess, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.ranks import LostRank, RankLost
from ranks_kit import SIZE, Ranks, allocated, copies, done, linked, measured, refused

PUSH = parse_transfer("cuda:0@0 -> cuda:1@1 by ce")
PULL = parse_transfer("cuda:0@0 -> cuda:1@1 by cuda:1@1.ce")
THIRD = parse_transfer("cuda:0@0 -> cuda:1@1 by cuda:2@2.ce")
SHARED = parse_transfer("cuda:0@0 -> cuda:2@2 by ce")
SIM = parse_transfer("sim:0@0 -> sim:1@1 by ce")
SIM_BACK = parse_transfer("sim:1@1 -> sim:0@0 by ce")


@pytest.fixture
def ranks():
    return Ranks()


@pytest.fixture
def links(ranks):
    with linked(*ranks.fakes) as links:
        yield links


@pytest.fixture
def backend(links):
    return RankBackend("cuda", links, [device(n, "cuda") for n in range(3)])


class TestQuestions:
    def test_say_of_which_kind_a_refusal_is(self, backend, ranks):
        ranks.special[0, messages.Refuses] = done(Reason("peer", "does not reach"))
        refusal = backend.refusal(PUSH)
        assert isinstance(refusal, Unsupported)
        assert (refusal.kind, str(refusal)) == ("peer", "does not reach")

    @pytest.mark.parametrize(
        ("transfer", "shared"), [(PUSH, False), (PULL, False), (SHARED, True)], ids=str
    )
    def test_of_a_device_that_ranks_share_have_a_remark(self, links, transfer, shared):
        backend = RankBackend("cuda", links, (), {"cuda:2@2", "cuda:2@3"})
        said = backend.remarks(transfer)
        assert any("ranks share a device and take turns" in line for line in said) is shared

    def test_of_interfaces_are_answered_by_what_both_ends_have(self, links, ranks):
        over = parse_transfer("host:0@0 -> host:0@1 by nic:1.tcp")
        refused = RankBackend("net", links, ()).refusal(over)
        assert "rank 0 (box) has no nic:1: there are none" in refused
        assert ranks.of(messages.Refuses) == {}

    def test_of_ucx_are_answered_without_other_engines_beside_it(self, backend, ranks):
        by_ucx = parse_transfer("cuda:0@0 -> cuda:1@1 by ucx")
        assert "ucx is measured without engines of other kinds" in backend.refusal(by_ucx)
        assert ranks.of(messages.Refuses) == {}

    def test_of_a_rank_that_is_gone_name_it(self, backend, links):
        lost = RankLost(LostRank(1, "ended", "measuring", "box"))
        links.gone[1] = lost
        with pytest.raises(RankLost, match=r"rank 1 \(box\) ended while measuring"):
            backend.refusal(PUSH)
        assert backend.refusal(SHARED) is None


class TestMemory:
    def test_that_cannot_be_had_is_an_error_of_its_owner(self, backend, ranks):
        ranks.special[1, Allocate] = refused("memory", "none left")
        with pytest.raises(AllocationError, match="rank 1: none left"):
            allocated(backend, PUSH)

    def test_is_filled_and_checked_by_its_owner(self, backend, ranks):
        _, buffer = allocated(backend, PUSH)
        backend.fill(buffer, SIZE, Pattern.CONSTANT, 7, inverted=True)
        assert backend.first_mismatch(buffer, SIZE, Pattern.WORDS, 7) == 7
        assert backend.checksum(buffer, SIZE) == 99
        assert ranks.of(messages.Fill) == {1: [messages.Fill(1, SIZE, 1, 7, inverted=True)]}
        assert ranks.of(messages.Mismatch) == {1: [messages.Mismatch(1, SIZE, 0, 7)]}
        assert ranks.of(messages.Checksum) == {1: [messages.Checksum(1, SIZE)]}

    def test_is_let_go_of_by_those_that_opened_it_before_its_owner_frees_it(self, backend, ranks):
        order = []
        for number in range(3):
            fake = ranks.fakes[number]
            fake.answer = lambda command, n=number, was=fake.answer: (
                (order.append(n) if isinstance(command, messages.Free) else None) or was(command)
            )
        (copy,) = copies(backend, THIRD)
        backend.prepare([copy]).close()
        copy.destination.free()
        assert order[-1] == 1
        assert sorted(order) == [0, 1, 2], "those that took part may have opened it"
        copy.destination.free()
        assert len(order) == 3, "freed once"


class TestGroups:
    def test_take_the_pace_that_suits_all_who_time(self, backend, ranks):
        paces = {0: Pace(0.1, 2, most=32, steps=2), 1: None, 2: Pace(0.2, 1, most=8, steps=2)}
        for number, pace in paces.items():
            ranks.special[number, messages.Prepare] = done(Prepared(pace, 10 * (number + 1)))
        group = backend.prepare(copies(backend, THIRD))
        assert group.pace == Pace(0.2, 2, most=8, steps=2)
        assert group.most_loops == 10

    @pytest.mark.parametrize(
        ("kind", "error"), [("peer", NoPeerAccess), ("memory", AllocationError)]
    )
    def test_that_one_cannot_prepare_are_closed_by_all(self, backend, ranks, kind, error):
        """The others have prepared their part."""
        ranks.special[0, messages.Prepare] = refused(kind)
        with pytest.raises(error):
            backend.prepare(copies(backend, PUSH))
        assert set(ranks.of(messages.Close)) == {0, 1}


AHEAD = {0: 0.0, 1: 5000.0, 2: -300.0}


class TestSeveralEngines:
    """Each is told by its own clock when to start, and says by it when it has started."""

    @pytest.fixture(autouse=True)
    def _clocks(self, backend):
        backend._clocks.ahead = lambda ranks: {rank: AHEAD[rank] for rank in ranks}

    def group(self, backend, ranks, *, late, seconds=(0.25, 0.125)):
        ranks.ended[0] = lambda at: Ended(at, {0: seconds[0]})
        ranks.ended[1] = lambda at: Ended(at + late, {1: seconds[1]})
        return backend.prepare(copies(backend, PUSH, PULL))

    @pytest.mark.parametrize(
        ("share", "said"),
        [(0.0, None), (0.009, None), (0.011, "1%"), (0.09, "1%"), (0.11, "10%"), (0.9, "10%"),
         (1.1, "100%"), (-0.11, "10%")],
    )  # fmt: skip
    def test_that_start_apart_say_so(self, backend, ranks, share, said):
        """By shares of the shortest copy's time."""
        group = self.group(backend, ranks, late=share * 0.125)
        measured(group)
        expected = (
            () if said is None else (f"ranks started more than {said} of a sample's time apart",)
        )
        assert group.remarks() == expected
        assert backend.remarks(PUSH) == ("by it", *expected)

    @pytest.mark.parametrize(
        ("third", "counts"),
        [("cuda:0@0 -> cuda:2@2 by ce", False), ("host:0@0 -> host:0@2 by msg", True)],
    )
    def test_wait_for_a_rank_without_an_engine_only_if_it_takes_part(
        self, backend, ranks, third, counts
    ):
        """Its memory is reached whatever it does; a message takes both."""
        self.group(backend, ranks, late=0.0)
        ranks.ended[2] = lambda at: Ended(at + 5.0, {})
        ranks.ended[0] = lambda at: Ended(at, {0: 0.25, 2: 0.25})
        group = backend.prepare(copies(backend, PUSH, PULL, parse_transfer(third)))
        measured(group)
        assert bool(group.remarks()) is counts

    def test_a_warm_up_of_fewer_loops_does_not_count(self, backend, ranks):
        lates = iter((2.0, 0.0, 0.05, 0.0, 2.0))
        group = self.group(backend, ranks, late=0.0)
        ranks.ended[1] = lambda at: Ended(at + next(lates) * 0.125, {1: 0.125})
        measured(group, 1)
        assert "more than 100%" in group.remarks()[0]
        measured(group, 4)
        assert group.remarks() == ()
        measured(group, 4)
        assert "more than 1%" in group.remarks()[0]
        measured(group, 4)
        assert "more than 1%" in group.remarks()[0], "the greatest of all samples counts"
        measured(group, 2)
        assert "more than 1%" in group.remarks()[0]

    def test_are_told_earlier_if_one_is_late(self, backend, ranks):
        group = self.group(backend, ranks, late=10 * LEAD_SECONDS)
        ahead = [group._clocks.lead]
        for _ in range(10):
            measured(group)
            ahead.append(group._clocks.lead)
        assert ahead[:3] == [LEAD_SECONDS, 2 * LEAD_SECONDS, 4 * LEAD_SECONDS]
        assert ahead[-1] == MOST_LEAD_SECONDS


class TestSimulated:
    """Each member simulates the whole machine, whose clock starts all copies together."""

    @pytest.fixture
    def backend(self, links):
        return SimRankBackend("sim", links, ())

    def test_all_do_all(self, backend, ranks):
        copies(backend, SIM)[0].source.free()
        backend.prepare(copies(backend, SIM, SIM_BACK))
        backend.fill(backend.allocate(SIM.source, SIZE, SIM.engine), SIZE, Pattern.WORDS, 7, False)
        for kind in (Allocate, messages.Free, messages.Prepare, messages.Fill):
            assert set(ranks.of(kind)) == {0, 1, 2}

    def test_enters_a_phase_with_all(self, backend, ranks):
        backend.enter({3: [SIM]}, "measure", 1, 2)
        entered = messages.Enter({3: (SIM,)}, "measure", 1, 2)
        assert ranks.of(messages.Enter) == {n: [entered] for n in range(3)}
