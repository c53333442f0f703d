"""A member carries out its part of what rank 0 asks, with memories as its backend knows them."""

import time

import pytest

from fakes import FakeBackend, content, device
from linkgauge.backends.protocol import Pace, Pattern, Wrong
from linkgauge.cluster.member import BackendMember, await_time
from linkgauge.cluster.members import SimMember, open_member
from linkgauge.cluster.messages import Allocate, Begin, Lent, SharedCopy
from linkgauge.model.collective import Collective
from linkgauge.model.errors import BackendError, InputError, Unsupported
from linkgauge.model.memory import Memory
from linkgauge.model.notation import parse_memory, parse_transfer
from linkgauge.model.settings import Settings
from ranks_kit import launch
from sim_kit import settings

SIZE = 1 << 12
OTHERS = parse_transfer("fake:0@0 -> fake:0@1 by ce")
MINE = parse_transfer("fake:1@1 -> fake:0@0 by ce")
LOCAL = parse_transfer("fake:1@1 -> fake:1@1 by ce")


@pytest.fixture
def backend():
    return FakeBackend("fake", [device(n) for n in range(2)])


@pytest.fixture
def member(backend):
    """Rank 1, whose device is the second one."""
    return BackendMember(1, backend, backend.devices()[1])


def allocate(member, number, memory, transfer=MINE):
    return member.allocate(Allocate(number, parse_memory(memory), SIZE, transfer.engine))


def shared(transfer, source=0, destination=0, size=SIZE, **more):
    lent = [
        Lent(number, memory, size, b"")
        for number, memory in zip((source, destination), transfer.memories * 2, strict=False)
    ]
    return SharedCopy(transfer, *lent, size, 7, **more)


class TestNames:
    def test_its_own_memory_has_no_rank_to_its_backend(self, member, backend):
        seen = []
        backend.refuse = lambda transfer: seen.append(str(transfer)) or "cannot"
        assert member.refusal(MINE) == "cannot"
        assert seen == ["fake:1 -> fake:0@0 by ce"]
        mine = member.transfer(parse_transfer("fake:0@0 -> fake:1@1 by ce"))
        assert str(mine) == "fake:0@0 -> fake:1 by ce", "a write by the other rank"


class TestBuffers:
    def test_are_known_by_their_number(self, member, backend):
        allocated = allocate(member, 4, "fake:1@1")
        assert allocated.placement.memory == "fake:1@1", "as the run names it"
        assert allocated.handle == b""
        member.fill(4, SIZE, Pattern.WORDS, 7, inverted=False)
        assert bytes(backend.buffers[0].data) == content(SIZE, Pattern.WORDS, 7, False)
        assert backend.buffers[0].memory == Memory("fake", 1)
        assert member.first_mismatch(4, SIZE, Pattern.WORDS, 7) is None
        assert member.first_mismatch(4, SIZE, Pattern.WORDS, 8) == 0
        assert member.checksum(4, SIZE) == backend.checksum(backend.buffers[0], SIZE)

    def test_are_freed_when_the_run_is_over(self, member, backend):
        for number in range(3):
            allocate(member, number, "fake:1@1")
        member.prepare([shared(LOCAL, 0, 1)], "copy")
        member.close()
        assert all(buffer.freed for buffer in backend.buffers)
        assert backend.open_groups == 0


class TestCopies:
    @pytest.fixture
    def member(self, member):
        for number in range(2):
            allocate(member, number, "fake:1@1")
        return member

    def test_are_its_own_alone(self, member, backend):
        prepared = member.prepare([shared(OTHERS), shared(LOCAL, 0, 1), shared(OTHERS)], "copy")
        assert isinstance(prepared.pace, type(FakeBackend().prepare([]).pace))
        member.arm(2, 1)
        ended = member.begin(Begin())
        assert list(ended.seconds) == [1], "by its place in the cell"
        assert ended.checksums == {1: None}
        assert [len(times) for times in ended.progress.values()] == [2]

    def test_prepared_anew_close_what_was_before(self, member, backend):
        for _ in range(3):
            member.prepare([shared(LOCAL, 0, 1)], "copy")
            assert backend.open_groups == 1
        member.prepare([shared(OTHERS)], "copy")
        assert backend.open_groups == 0
        member.close_group()


class Collects:
    """A group that carries a collective out: times by rank, and what is wrong."""

    def __init__(self, copies):
        self.numbers = range(len(copies))
        self.pace, self.most_loops = Pace(), 7
        self.found = Wrong()

    def iterations(self, count):
        return tuple(tuple(float(number) for _ in range(count)) for number in self.numbers)

    def check(self):
        return self.found

    def close(self):
        """Nothing to close."""


class TestCollectives:
    WORK = Collective("all_gather")
    PARTS = tuple(parse_transfer(f"fake:{n}@{n} -> fake:{n}@{n} by ccl") for n in range(3))

    def prepared(self, member):
        allocate(member, 0, "fake:1@1", self.PARTS[1])
        member.backend.prepare = lambda copies, operation: Collects(copies)
        return member.prepare([shared(part) for part in self.PARTS], self.WORK, (b"token",))

    def test_have_the_part_of_its_rank(self, member):
        assert self.prepared(member).most_loops == 7
        assert member.iterate(3) == (0.0, 0.0, 0.0)
        member._group.found = Wrong(2, 0, 5)
        assert member.check() == Wrong(2, 0, 5)

    def test_that_are_not_prepared_are_not_carried_out(self, member):
        for ask in (lambda: member.iterate(3), member.check):
            with pytest.raises(BackendError, match="none is prepared"):
                ask()
        for number in range(2):
            allocate(member, number, "fake:1@1")
        member.prepare([shared(LOCAL, 0, 1)], "copy")
        with pytest.raises(BackendError, match="none is prepared"):
            member.check()


class TestGate:
    def test_opens_at_once_if_that_has_passed(self, monkeypatch):
        slept = []
        monkeypatch.setattr(time, "sleep", slept.append)
        before = time.monotonic()
        assert await_time(before - 100.0) >= before
        assert await_time(None) >= before
        assert slept == []


SIM = parse_transfer("sim:0@0 -> sim:1@1 by ce")
BACK = parse_transfer("sim:1@1 -> sim:2@2 by ce")


class TestSimulated:
    @pytest.fixture
    def members(self):
        made = [open_member("sim", launch(n, 3), settings()) for n in range(3)]
        yield made
        for member in made:
            member.close()

    def test_a_rank_beyond_the_last_device_has_none(self):
        with pytest.raises(Unsupported, match="test has 4 devices: rank 4 has none"):
            SimMember(4, settings())

    def measured(self, members, *transfers, size=SIZE):
        """What each member answers; all do the same as they would by rank 0's commands."""
        copies = []
        for number, transfer in enumerate(transfers):
            ends = 2 * number, 2 * number + 1
            for member in members:
                for end, memory in zip(ends, transfer.memories, strict=True):
                    member.allocate(Allocate(end, memory, size, transfer.engine))
                member.fill(ends[0], size, Pattern.WORDS, 7, inverted=False)
                member.fill(ends[1], size, Pattern.WORDS, 7, inverted=True)
            copies.append(shared(transfer, *ends, size))
        prepared = [member.prepare(copies, "copy") for member in members]
        for member in members:
            member.arm(2, 1)
        return prepared, [member.begin(Begin()) for member in members]

    def test_each_times_its_own(self, members):
        prepared, ended = self.measured(members, SIM, BACK)
        assert [one.pace is not None for one in prepared] == [True, True, False]
        assert [list(one.seconds) for one in ended] == [[0], [1], []]
        assert all(seconds > 0 for one in ended for seconds in one.seconds.values())

    def test_all_see_the_same_machine(self, members):
        """What copies share, and how late it is, is the same to all."""
        self.measured(members, SIM, BACK)
        assert len({member.clock() for member in members}) == 1
        assert members[0].clock() > 0

    def test_copies_of_other_ranks_are_in_the_way(self):
        """Two ranks read one device: each member knows of both, although it times one."""
        rates = []
        for transfers in (
            ["sim:0@0 -> sim:1@1 by sim:1@1.ce"],
            ["sim:0@0 -> sim:1@1 by sim:1@1.ce"] * 2,
        ):
            made = [open_member("sim", launch(n, 3), settings()) for n in range(3)]
            _, ended = self.measured(made, *map(parse_transfer, transfers), size=64 << 20)
            rates.append(ended[1].seconds[0])
        assert rates[1] > 1.5 * rates[0]


def test_other_backends_share_no_memory_between_processes():
    with pytest.raises(InputError, match="backend opencl does nothing between processes"):
        open_member("opencl", launch(), Settings((SIZE,)))
