"""Ranks carry out a cell together: each allocates, fills, starts and verifies what is its own, and
all of them know the same of it."""

from types import SimpleNamespace

import msgspec
import pytest
from msgspec.structs import replace

from linkgauge.backends.protocol import CollectingGroup, Pattern, SamplingPolicy, Wrong, follows
from linkgauge.engine.ranks.clocks import LEAD_SECONDS, MOST_LEAD_SECONDS, PUNCTUAL
from linkgauge.engine.ranks.commands import Meet, Said
from linkgauge.engine.ranks.meeting import Meetings
from linkgauge.engine.ranks.spanning import SimSpanningBackend
from linkgauge.engine.ranks.worker import ClusterWorker
from linkgauge.model.errors import AllocationError, NoPeerAccess, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.collective import Collective
from linkgauge.model.ranks import LostRank, RankLost
from linkgauge.model.settings import Settings
from ranks_kit import SIZE, Fake, Ranks, copies, linked, measured

PUSH = parse_transfer("cuda:0@0 -> cuda:1@1 by ce")
PULL = parse_transfer("cuda:0@0 -> cuda:1@1 by cuda:1@1.ce")
THIRD = parse_transfer("cuda:0@0 -> cuda:1@1 by cuda:2@2.ce")
SHARED = parse_transfer("cuda:0@0 -> cuda:2@2 by ce")
SIM = parse_transfer("sim:0@0 -> sim:1@1 by ce")
SIM_BACK = parse_transfer("sim:1@1 -> sim:0@0 by ce")


@pytest.fixture
def ranks():
    return Ranks("cuda")


def said(*transfers, times=1):
    """What a group of these copies says of its starts, and its figure of the first of them."""

    def call(backend):
        group = backend.prepare(copies(backend, *transfers))
        for _ in range(times):
            measured(group)
        return group.starts.remarks(), backend.remarks(transfers[0])

    return call


class TestQuestions:
    def test_are_answered_by_the_engine_s_rank(self, ranks):
        refusal = NoPeerAccess("does not reach")
        ranks.special[0]["refusal"] = lambda transfer: refusal
        assert [backend.refusal(PUSH) for backend in ranks.backends] == [refusal, None, None]

    @pytest.mark.parametrize(
        ("transfer", "shared"), [(PUSH, False), (PULL, False), (SHARED, True)], ids=str
    )
    def test_of_a_device_that_ranks_share_have_a_remark(self, ranks, transfer, shared):
        for backend in ranks.backends:
            backend.shared = frozenset({"cuda:2@2", "cuda:2@3"})
        said = ranks.result(lambda backend: backend.remarks(transfer))
        assert any("ranks share a device and take turns" in line for line in said) is shared


class TestRank0:
    """What only is to be seen with all ranks in view is rank 0's to say."""

    @pytest.fixture
    def worker(self):
        with linked(*(Fake() for _ in range(3))) as links:
            yield ClusterWorker(SimpleNamespace(links=links), Settings(()))

    @pytest.mark.parametrize(
        ("backend", "text", "error", "says"),
        [
            ("net", "host:0@0 -> host:0@1 by nic:1.tcp", Unsupported,
             "rank 0 (box) has no nic:1: there are none"),
            ("cuda", "cuda:0@0 -> cuda:1@1 by ucx", Unsupported,
             "ucx is measured without engines of other kinds"),
            ("cuda", str(PUSH), RankLost, "rank 1 (box) ended while measuring"),
        ],
    )  # fmt: skip
    def test_refuses(self, worker, backend, text, error, says):
        worker._backend = backend
        worker.links.gone = {1: RankLost(LostRank(1, "ended", "measuring", "box"))}
        worker._check(SimpleNamespace(transfers=[SHARED]))
        if error is Unsupported:
            worker.links.gone = {}
        with pytest.raises(error) as refused:
            worker._check(SimpleNamespace(transfers=[parse_transfer(text)]))
        assert says in str(refused.value)

    def test_tells_a_start_earlier_if_one_was_late(self, worker):
        meetings, leads = Meetings(worker.links), []
        late = {n: Meet(Said(msgspec.Raw(b"\xc0")), start=True, late=n == 1) for n in (0, 1)}
        while meetings._clocks.lead < MOST_LEAD_SECONDS:
            leads.append(meetings._clocks.lead)
            assert all(one.at is not None for one in meetings._answers(late).values())
        assert leads[:3] == [LEAD_SECONDS, 2 * LEAD_SECONDS, 4 * LEAD_SECONDS]
        punctual = {n: replace(one, late=False) for n, one in late.items()}
        for _ in range(PUNCTUAL):
            assert meetings._clocks.lead == MOST_LEAD_SECONDS
            meetings._answers(punctual)
        assert meetings._clocks.lead == MOST_LEAD_SECONDS / 2
        for _ in range(10 * PUNCTUAL):
            meetings._answers(punctual)
        assert meetings._clocks.lead == LEAD_SECONDS, "a busy moment does not last for ever"

    def test_waits_no_longer_than_at_first_where_the_longest_lead_does_not_help(self, worker):
        meetings = Meetings(worker.links)
        late = {n: Meet(Said(msgspec.Raw(b"\xc0")), start=True, late=n == 1) for n in (0, 1)}
        while meetings._clocks.lead < MOST_LEAD_SECONDS:
            meetings._answers(late)
        for _ in range(PUNCTUAL):
            meetings._answers(late)
            assert meetings._clocks.lead == LEAD_SECONDS, "a CPU is lacking, not time"
        meetings._answers(late)
        meetings._answers(late)
        assert meetings._clocks.lead == 2 * LEAD_SECONDS


class TestMemory:
    def test_that_cannot_be_had_is_an_error_of_its_owner_and_ends_the_cell(self, ranks):
        """To the others it is a name, until they meet."""
        ranks.special[1]["allocate"] = AllocationError("cuMemAlloc", "none left")
        found = ranks.each(lambda backend: backend.prepare(copies(backend, PUSH)))
        assert isinstance(found[1], AllocationError)
        assert str(found[1]) == "rank 1: cuMemAlloc: none left"
        assert str(found[0]) == "the ranks: another has left"

    def test_is_filled_and_checked_by_its_owner(self, ranks):
        def call(backend):
            (copy,) = copies(backend, PUSH)
            backend.fill(copy.destination, SIZE, Pattern.CONSTANT, 7, inverted=True)
            at = backend.first_mismatch(copy.destination, SIZE, Pattern.WORDS, 7)
            return at, backend.checksum(copy.destination, SIZE)

        assert ranks.result(call) == (7, 99)
        ((memory, *filled),) = ranks.of("fill")[1]
        assert memory.memory == PUSH.destination
        assert filled == [SIZE, Pattern.CONSTANT, 7, True]
        assert ranks.of("first_mismatch") == {1: [(memory, SIZE, Pattern.WORDS, 7)]}
        assert ranks.of("checksum") == {1: [(memory, SIZE)]}

    def test_is_let_go_of_by_those_that_opened_it_before_its_owner_frees_it(self, ranks):
        def call(backend):
            (copy,) = copies(backend, THIRD)
            group = backend.prepare([copy])
            memory = copy.destination.here
            group.close()
            return copy.destination, memory

        found = ranks.each(call)
        own, opened = found[1][1], found[2][1]
        assert [buffer.here for buffer, _ in found.values()] == [None, own, None]
        assert (own.free.call_count, opened.free.call_count) == (0, 1)
        for _ in range(2):
            for buffer, _ in found.values():
                buffer.free()
        assert (own.free.call_count, opened.free.call_count) == (1, 1), "freed once"


class TestGroups:
    def test_take_the_policy_that_suits_all_who_time(self, ranks):
        policies = (
            SamplingPolicy(0.1, 2, most=32, steps=2),
            SamplingPolicy(9.0),
            SamplingPolicy(0.2, 1, most=8, steps=2),
        )
        for number, policy in enumerate(policies):
            ranks.special[number]["policy"] = policy, 10 * (number + 1)

        def call(backend):
            group = backend.prepare(copies(backend, PUSH, THIRD))
            return group.policy, group.most_loops

        assert ranks.result(call) == (SamplingPolicy(0.2, 2, most=8, steps=2), 10)

    @pytest.mark.parametrize("error", [NoPeerAccess("no"), AllocationError("cuX", "no")])
    def test_that_one_cannot_prepare_are_closed_by_all(self, ranks, error):
        """The others have prepared their part."""
        ranks.special[0]["prepare"] = error
        with pytest.raises(type(error)):
            ranks.result(lambda backend: backend.prepare(copies(backend, PUSH)), 0, 1)
        assert set(ranks.of("leave")) == {0, 1}
        assert ranks.special[1]["closed"]

    def test_that_fail_to_fill_do_so_for_all_when_they_start(self, ranks):
        ranks.special[1]["fill"] = AllocationError("cuX", "no")

        def call(backend):
            (copy,) = copies(backend, PUSH)
            group = backend.prepare([copy])
            backend.fill(copy.destination, SIZE, Pattern.WORDS, 7, inverted=True)
            return measured(group)

        with pytest.raises(AllocationError, match="rank 1: cuX: no"):
            ranks.result(call, 0, 1)


class TestSeveralEngines:
    """Each is told by its own clock when to start, and says by it when it has started."""

    def group(self, ranks, *, late, seconds=(0.25, 0.125)):
        ranks.ahead = {0: 0.0, 1: 5000.0, 2: -300.0}
        ranks.special[0]["begin"] = lambda at: (at, (seconds[0],))
        ranks.special[1]["begin"] = lambda at: (at + late, (seconds[1],))

    @pytest.mark.parametrize(
        ("share", "said_of_it"),
        [(0.0, None), (0.009, None), (0.011, "1%"), (0.09, "1%"), (0.11, "10%"), (0.9, "10%"),
         (1.1, "100%"), (-0.11, "10%")],
    )  # fmt: skip
    def test_that_start_apart_say_so(self, ranks, share, said_of_it):
        """By shares of the shortest copy's time."""
        self.group(ranks, late=share * 0.125)
        says = f"ranks started more than {said_of_it} of a sample's time apart"
        expected = () if said_of_it is None else (says,)
        assert ranks.result(said(PUSH, PULL), 0, 1) == (expected, ("by it", *expected))

    @pytest.mark.parametrize(
        ("third", "counts"),
        [("cuda:0@0 -> cuda:2@2 by ce", False), ("host:0@0 -> host:0@2 by msg", True)],
    )
    def test_wait_for_a_rank_without_an_engine_only_if_it_takes_part(self, ranks, third, counts):
        """Its memory is reached whatever it does; a message takes both."""
        self.group(ranks, late=0.0)
        ranks.special[2]["begin"] = lambda at: (at + 5.0, ())
        ranks.special[0]["begin"] = lambda at: (at, (0.25, 0.25))
        remarks, _ = ranks.result(said(PUSH, PULL, parse_transfer(third)))
        assert bool(remarks) is counts

    def test_a_warm_up_of_fewer_loops_does_not_count(self, ranks):
        lates = iter((2.0, 0.0, 0.05, 0.0, 2.0))
        self.group(ranks, late=0.0)
        ranks.special[1]["begin"] = lambda at: (at + next(lates) * 0.125, (0.125,))

        def call(backend):
            group = backend.prepare(copies(backend, PUSH, PULL))
            return [
                measured(group, n) and " ".join(group.starts.remarks()) for n in (1, 4, 4, 4, 2)
            ]

        first, none, *others = ranks.result(call, 0, 1)
        assert "more than 100%" in first
        assert none == ""
        assert all("more than 1%" in one for one in others), "the greatest of all counts"

    def test_say_that_one_was_late(self, ranks):
        self.group(ranks, late=10 * LEAD_SECONDS)
        ranks.result(said(PUSH, PULL, times=3), 0, 1)
        assert ranks.lates == [False, True, True]


class TestSimulated:
    """Each member simulates the whole machine, whose clock starts all copies together."""

    def test_all_do_all(self):
        ranks = Ranks("sim", kind=SimSpanningBackend)

        def call(backend):
            memory = copies(backend, SIM)[0].source
            memory.free()
            assert memory.here is None
            backend.prepare(copies(backend, SIM, SIM_BACK))
            buffer = backend.allocate(SIM.source, SIZE, SIM.engine)
            backend.fill(buffer, SIZE, Pattern.WORDS, 7, False)
            backend.enter({3: [SIM]}, "measure", 1, 2)

        ranks.result(call)
        for name in ("allocate", "prepare", "fill"):
            assert set(ranks.of(name)) == {0, 1, 2}
        assert ranks.of("enter") == {n: [({3: [SIM]}, "measure", 1, 2)] for n in range(3)}


REDUCE = Collective("all_reduce", reduction="sum")
PARTS = [parse_transfer(f"host:0@{n} -> host:0@{n} by ccl") for n in range(4)]


class TestCollectives:
    """Each rank times its own part and checks what it has."""

    @pytest.fixture(params=["mpi", "cuda"])
    def ranks(self, request):
        ranks = Ranks(request.param, 4)
        for number in range(4):
            ranks.special[number]["begin"] = lambda at, n=number: (at or 0.0, (0.5 + n,))
        return ranks

    def test_are_of_all_ranks_each_of_which_times_its_part(self, ranks):
        def call(backend):
            group = backend.prepare(copies(backend, *PARTS), REDUCE)
            assert follows(group, CollectingGroup)
            timing = measured(group, 3)
            return timing.seconds, timing.span

        assert ranks.result(call) == ((0.5, 1.5, 2.5, 3.5), 3.5)
        assert [special["armed"] for special in ranks.special] == [(3, 1)] * 4

    def test_found_each_group_by_a_token_of_its_first_rank_once(self, ranks):
        def call(backend):
            for _ in range(2):
                work = Collective("all_gather", split="MOD 2")
                backend.prepare(copies(backend, *PARTS), work).close()
            backend.prepare(copies(backend, *PARTS), REDUCE).close()

        ranks.result(call)
        needed = ranks.backends[0].name == "cuda"
        asked = {rank: len(tokens) for rank, tokens in ranks.of("token").items()}
        assert asked == ({0: 2, 1: 1} if needed else {})
        for found in ranks.of("found").values():
            tokens = [one[0] for one in found]
            expected = [(b"token 0", b"token 1")] * 2 + [(b"token 0",)]
            assert tokens == (expected if needed else [()] * 3)

    @pytest.mark.parametrize(
        ("found", "wrong"),
        [
            ([Wrong()] * 4, Wrong()),
            ([Wrong(), Wrong(2, 0, 5), Wrong(), Wrong(3, 0, 1)], Wrong(5, 1, 5)),
        ],
    )
    def test_add_up_what_is_wrong(self, ranks, found, wrong):
        for number, own in enumerate(found):
            ranks.special[number]["check"] = own

        def call(backend):
            return backend.prepare(copies(backend, *PARTS), REDUCE).check()

        assert ranks.result(call) == wrong
