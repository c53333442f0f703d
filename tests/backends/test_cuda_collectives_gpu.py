"""Collectives by NCCL on real GPUs: every one with one rank, and with two where there are two."""

import pytest

from collective_kit import works_in_each_place
from cuda_kit import on_gpus
from linkgauge.backends.protocol import Copy, Wrong, run
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.collective import NUMBERS, REDUCTIONS, Collective

SIZE = 1 << 20


@pytest.fixture(scope="module")
def backend():
    opened = on_gpus()
    refused = opened.refusal(parse_transfer("cuda:0 -> cuda:0 by ccl"))
    if refused is not None:
        pytest.skip(str(refused))
    yield opened
    opened.close()


def collected(backend, work, ranks, size=SIZE, loops=3):
    """Seconds of a collective, the times of its iterations, and what is wrong with its result."""
    copies, held = [], []
    for rank, (sent, received) in enumerate(work.buffer_bytes(size, ranks)):
        transfer = parse_transfer(f"cuda:{rank} -> cuda:{rank} by ccl")
        ends = [
            backend.allocate(transfer.source, needed, transfer.engine) if needed else None
            for needed in (sent, received)
        ]
        held += filter(None, ends)
        copies.append(Copy(transfer, *ends, size, 1))
    group = backend.prepare(copies, work)
    try:
        for _ in range(2):
            timing = run(group, loops)
        wrong = group.check() if work.is_checked else Wrong()
        return timing.seconds, group.iterations(4), wrong
    finally:
        group.close()
        for buffer in held:
            buffer.free()


class Cases:
    ranks = 1

    @pytest.mark.parametrize("work", list(works_in_each_place(root=0)))
    def test_each_is_carried_out_right(self, backend, work):
        if self.ranks == 1 and work.collective == "hypercube" and work.in_place:
            with pytest.raises(Unsupported, match="does nothing"):
                collected(backend, work, 1)
            return
        seconds, iterations, wrong = collected(backend, work, self.ranks)
        assert wrong == Wrong()
        assert len(seconds) == len(iterations) == self.ranks
        assert all(one > 0 for one in seconds)
        assert all(time > 0 for times in iterations for time in times)

    @pytest.mark.parametrize("number", list(NUMBERS))
    def test_of_each_type(self, backend, number):
        divides = ("avg", "mulsum")
        # Of a single rank, NCCL 2.28 scales no 8-bit floating-point numbers.
        left_out = divides if self.ranks == 1 and number.startswith("f8") else ()
        for reduction in (one for one in REDUCTIONS if one not in left_out):
            work = Collective("all_reduce", number, reduction)
            assert collected(backend, work, self.ranks, size=4096)[2] == Wrong(), reduction

    @pytest.mark.parametrize(
        "how",
        [{"blocking": True}, {"aggregated": 4}, {"graphed": True}, {"registered": "local"},
         {"registered": "symmetric"}, {"graphed": True, "aggregated": 2}],
        ids=str,
    )  # fmt: skip
    def test_in_each_way(self, backend, how):
        work = Collective("all_reduce", reduction="sum", **how)
        assert collected(backend, work, self.ranks)[2] == Wrong()

    def test_of_nothing(self, backend):
        work = Collective("all_gather")
        seconds, _, wrong = collected(backend, work, self.ranks, size=8)
        assert wrong == Wrong()
        assert min(seconds) > 0


@pytest.mark.gpu
class TestOneRank(Cases):
    pass


@pytest.mark.gpu_pairs
class TestTwoRanks(Cases):
    ranks = 2

    def test_in_groups_of_one(self, backend):
        work = Collective("all_reduce", reduction="sum", split="MOD 2")
        assert collected(backend, work, 2)[2] == Wrong()
