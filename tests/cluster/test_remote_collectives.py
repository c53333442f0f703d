"""Collectives of all ranks: each times its own part and checks what it has."""

import pytest

from fakes import device
from linkgauge.backends.member import Ended
from linkgauge.backends.protocol import Collecting, Wrong, follows
from linkgauge.engine.ranks import messages
from linkgauge.engine.ranks.remote import RankBackend
from linkgauge.model.collective import Collective
from linkgauge.model.notation import parse_transfer
from ranks_kit import Ranks, copies, done, linked, measured

REDUCE = Collective("all_reduce", reduction="sum")
PARTS = [parse_transfer(f"host:0@{n} -> host:0@{n} by ccl") for n in range(4)]


@pytest.fixture
def ranks():
    return Ranks(4)


@pytest.fixture
def links(ranks):
    with linked(*ranks.fakes) as links:
        yield links


class TestCollectives:
    @pytest.fixture(params=["mpi", "cuda"])
    def backend(self, request, links):
        backend = RankBackend(request.param, links, [device(n, "cuda") for n in range(4)])
        backend._clocks.ahead = lambda ranks: dict.fromkeys(ranks, 0.0)
        return backend

    def prepared(self, backend, ranks, work=REDUCE):
        for number in range(4):
            ranks.special[number, messages.Token] = done(b"token %d" % number)
            ranks.ended[number] = lambda at, n=number: Ended(at or 0.0, {n: 0.5 + n})
        return backend.prepare(copies(backend, *PARTS), work)

    def test_are_of_all_ranks_each_of_which_times_its_part(self, backend, ranks):
        group = self.prepared(backend, ranks)
        assert follows(group, Collecting)
        timing = measured(group, 3)
        assert timing.seconds == (0.5, 1.5, 2.5, 3.5)
        assert timing.span == 3.5
        assert set(ranks.of(messages.Arm)) == {0, 1, 2, 3}

    def test_found_each_group_by_a_token_of_its_first_rank_once(self, backend, ranks):
        for _ in range(2):
            self.prepared(backend, ranks, Collective("all_gather", split="MOD 2"))
        self.prepared(backend, ranks)
        needed = backend.name == "cuda"
        asked = {rank: len(tokens) for rank, tokens in ranks.of(messages.Token).items()}
        assert asked == ({0: 2, 1: 1} if needed else {})
        for prepare in ranks.of(messages.Prepare).values():
            tokens = [one.tokens for one in prepare]
            expected = [(b"token 0", b"token 1")] * 2 + [(b"token 0",)]
            assert tokens == (expected if needed else [()] * 3)

    @pytest.mark.parametrize(
        ("found", "wrong"),
        [
            ([Wrong()] * 4, Wrong()),
            ([Wrong(), Wrong(2, 0, 5), Wrong(), Wrong(3, 0, 1)], Wrong(5, 1, 5)),
        ],
    )
    def test_add_up_what_is_wrong(self, backend, ranks, found, wrong):
        group = self.prepared(backend, ranks)
        for number, own in enumerate(found):
            ranks.special[number, messages.Check] = done(own)
        assert group.check() == wrong
