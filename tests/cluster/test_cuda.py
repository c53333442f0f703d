"""Ranks of one machine with a GPU each open each other's memory, and carry out their own part."""

import threading

import pytest

from cuda_emulator import emulated
from linkgauge.backends.cuda import flags
from linkgauge.backends.cuda.member import open_cuda
from linkgauge.backends.member import Allocate, Begin, Lent, Prepared, SharedCopy
from linkgauge.model.errors import Unsupported
from linkgauge.model.notation import parse_transfer
from ranks_kit import launch

SIZE = 1 << 16


class Ranks:
    """Two processes, each with a driver of its own, on a machine of so many GPUs."""

    def __init__(self, gpus=2):
        made = [emulated(gpus, kernel="plain") for _ in range(2)]
        self.bindings = [bindings for _, bindings in made]
        self.members = [open_cuda(launch(n, 2), made[n][0]) for n in range(2)]

    def allocated(self, transfer, size=SIZE):
        """Both ends, as a copy names them."""
        lent = []
        for number, memory in enumerate(transfer.memories):
            owner = self.members[memory.rank]
            command = Allocate(number, memory, size, transfer.engine)
            lent.append(Lent(number, memory, size, owner.allocate(command).handle))
        return SharedCopy(transfer, *lent, size, 7)

    def close(self):
        for member in self.members:
            member.close()


@pytest.fixture
def ranks():
    made = Ranks()
    yield made
    made.close()


class TestFlags:
    @pytest.fixture(autouse=True)
    def _patient(self, monkeypatch):
        monkeypatch.setattr(flags, "LIMIT", 60)

    @pytest.mark.parametrize(
        "transfer", ["cuda:0@0 -> cuda:1@1 by sm", "cuda:1@1 -> cuda:0@0 by sm"]
    )
    def test_bounce_between_processes(self, ranks, transfer):
        transfer = parse_transfer(transfer)
        copy = ranks.allocated(transfer, flags.BYTES)
        begins = transfer.source.rank
        prepared = [member.prepare([copy], "flag-ping-pong") for member in ranks.members]
        assert prepared[1 - begins] == Prepared()
        assert prepared[begins].pace.steps == 2
        assert prepared[begins].most_loops == flags.MOST
        for _ in range(2):
            ended = self.sample(ranks)
            assert list(ended[begins].seconds) == [0]
            assert len(ended[begins].progress[0]) == 4
            assert ended[1 - begins].seconds == {}

    def sample(self, ranks):
        for member in ranks.members:
            member.arm(1, 3)
        ended = {}
        threads = [
            threading.Thread(target=lambda n=n: ended.update({n: ranks.members[n].begin(Begin())}))
            for n in range(2)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return ended

    def test_between_no_two_memories_are_refused(self, ranks):
        copy = SharedCopy(parse_transfer("cuda:0@0 -> null by sm"), None, None, flags.BYTES, 7)
        with pytest.raises(Unsupported, match="flags bounce by a kernel"):
            ranks.members[0].prepare([copy], "flag-ping-pong")
