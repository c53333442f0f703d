"""GPUs of processes on several machines: copies take fabric handles where these reach, else NCCL,
and what neither carries out is skipped with the reasons."""

import socket
import threading
from contextlib import ExitStack

import pytest
from msgspec.structs import replace

from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.cuda import collectives
from linkgauge.backends.cuda.member import BY_FABRIC, BY_IPC, BY_NCCL, open_cuda
from linkgauge.backends.protocol import Pattern
from linkgauge.engine.ranks.agent import Agent
from linkgauge.engine.ranks.links import Links
from linkgauge.engine.ranks.messages import Prepare, Reach, Token
from linkgauge.engine.ranks.patience import Patience
from linkgauge.engine.ranks.remote import RankBackend
from linkgauge.machine.channel import Channel
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from nccl_kit import library_in, nccl_of
from ranks_kit import LONG, SIZE, copies, launch, measured, rank

WRITE = parse_transfer("cuda:0@0 -> cuda:1@1 by ce")
READ = parse_transfer("cuda:0@0 -> cuda:1@1 by cuda:1@1.ce")
KERNEL = parse_transfer("cuda:0@0 -> cuda:1@1 by sm")
BACK = parse_transfer("cuda:1@1 -> cuda:0@0 by ce")
TO_THIRD = parse_transfer("cuda:0@0 -> cuda:2@2 by ce")


@pytest.fixture(scope="session")
def library(tmp_path_factory):
    return library_in(tmp_path_factory.mktemp("nccl"))


@pytest.fixture(autouse=True)
def _nccl(library, monkeypatch):
    monkeypatch.setattr(collectives, "open_nccl", lambda: nccl_of(library))


class Machines:
    """Ranks with an emulated GPU each, on machines of these names, and rank 0's `backend`. `heard`
    is what each rank was asked."""

    def __init__(self, held, *hosts):
        self.bindings, self.members = [], []
        self.heard = [[] for _ in hosts]
        channels = {}
        for number, host in enumerate(hosts):
            opened, bindings = emulated(len(hosts), kernel="plain")
            self.bindings.append(bindings)
            self.members.append(open_cuda(launch(number, len(hosts)), opened))
            self.members[number]._machine = host
            ours, theirs = socket.socketpair()
            channels[number] = Channel(ours)
            held.callback(channels[number].close, 0.0)
            self._serve(held, number, Channel(theirs))
        ranks = [rank(number, host) for number, host in enumerate(hosts)]
        self.links = Links(channels, ranks, Patience(limit=LONG))
        held.callback(self.links.close)
        self.backend = RankBackend("cuda", self.links, [one.device() for one in self.members])
        self.backend._clocks.ahead = lambda ranks: dict.fromkeys(ranks, 0.0)

    def _serve(self, held, number, channel):
        agent = Agent(channel, launch(number), lambda of_another: None)
        agent._opened, own = self.members[number], agent._carry_out

        def carry_out(command):
            self.heard[number].append(command)
            return own(command)

        agent._carry_out = carry_out
        thread = threading.Thread(target=agent.serve, daemon=True)
        thread.start()
        held.callback(channel.close, 0.0)
        held.callback(thread.join, LONG)

    def of(self, kind):
        """How often each rank was asked this."""
        return [sum(isinstance(one, kind) for one in heard) for heard in self.heard]

    def fail(self, call, status=Status.CUDA_ERROR_NOT_PERMITTED):
        for bindings in self.bindings:
            bindings.failing[call] = status

    def filled(self, *transfers, **how):
        """Copies of patterned memory, of which no byte has arrived."""
        made = [replace(copy, seed=7, **how) for copy in copies(self.backend, *transfers)]
        for copy in made:
            self.backend.fill(copy.source, SIZE, Pattern.WORDS, 7, inverted=False)
            self.backend.fill(copy.destination, SIZE, Pattern.WORDS, 7, inverted=True)
        return made

    def wrong(self, copy):
        return self.backend.first_mismatch(copy.destination, SIZE, Pattern.WORDS, 7)


@pytest.fixture
def launched():
    with ExitStack() as held:
        yield lambda *hosts: Machines(held, *hosts)


@pytest.fixture
def apart(launched):
    """Two machines that no NVLink domain has in common."""
    made = launched("node7", "node8")
    made.fail("cuMemCreate")
    return made


class TestWay:
    """IPC within a machine; between machines fabric handles, then NCCL, then none."""

    def way(self, machines, transfer=WRITE):
        (copy,) = machines.filled(transfer)
        machines.backend.prepare([copy])
        return machines.backend.remarks(transfer)

    def test_within_a_machine_is_ipc(self, launched):
        machines = launched("node7", "node7")
        assert BY_IPC in self.way(machines)
        assert machines.of(Reach) == [0, 0], "nothing has to be asked"
        assert machines.bindings[1].of("cuMemCreate") == []

    @pytest.mark.parametrize("transfer", [WRITE, READ, KERNEL], ids=str)
    def test_within_an_nvlink_domain_is_by_fabric_handles(self, launched, transfer):
        machines = launched("node7", "node8")
        assert BY_FABRIC in self.way(machines, transfer)
        assert machines.of(Token) == [0, 0]
        owner = transfer.engine.owner.rank
        created = [len(one.of("cuMemCreate")) for one in machines.bindings]
        assert created == [owner, 1 - owner], "of what the engine's own machine does not have"

    def test_without_an_imex_channel_is_nccl(self, apart):
        first, library, *_ = self.way(apart)
        assert first == BY_NCCL
        assert library.startswith("NCCL 2.28.9 (")

    def test_without_nccl_is_none_and_the_remedy_is_said(self, apart, monkeypatch):
        def absent():
            raise Unsupported("no NCCL for Python: pip install '.[nccl13]'")

        monkeypatch.setattr(collectives, "open_nccl", absent)
        with pytest.raises(Unsupported) as caught:
            self.way(apart)
        assert str(caught.value) == (
            "cuda:1@1 is on node8, cuda:0 on node7: CUDA IPC does not leave a machine; "
            "no NCCL for Python: pip install '.[nccl13]'"
        )
        assert apart.of(Prepare) == [0, 0], "no rank waits for another one's part"

    def test_of_ranks_that_share_a_gpu_is_none(self, apart):
        apart.backend._shared = {"cuda:1@1"}
        with pytest.raises(Unsupported, match="ranks share a GPU: NCCL needs one for each"):
            self.way(apart)


class TestPassed:
    """What NCCL sends and receives."""

    @pytest.mark.parametrize("transfer", [WRITE, READ, KERNEL, BACK], ids=str)
    def test_arrives_and_is_timed_by_the_engine_s_rank(self, apart, transfer):
        (copy,) = apart.filled(transfer)
        assert apart.wrong(copy) == 0
        timing = measured(apart.backend.prepare([copy]), 3)
        assert apart.wrong(copy) is None
        assert len(timing.seconds) == 1
        assert timing.seconds[0] > 0

    def test_runs_beside_what_engines_reach(self, launched):
        machines = launched("node7", "node8", "node7")
        machines.fail("cuMemCreate")
        mixed = machines.filled(WRITE, TO_THIRD)
        timing = measured(machines.backend.prepare(mixed), 2)
        assert [machines.wrong(copy) for copy in mixed] == [None, None]
        assert len(timing.seconds) == 2
        assert machines.backend.remarks(WRITE)[0] == BY_NCCL
        assert BY_IPC in machines.backend.remarks(TO_THIRD)

    def test_a_wrong_byte_is_found(self, apart, library):
        (copy,) = apart.filled(WRITE, warm_ups=0)
        group = apart.backend.prepare([copy])
        apart.backend.fill(copy.destination, SIZE, Pattern.WORDS, 7, inverted=True)
        library.spoil(1)
        measured(group)
        assert apart.wrong(copy) == 5

    def test_what_breaks_is_founded_anew(self, apart, monkeypatch):
        copy = apart.filled(WRITE)

        def broken(*arguments):
            raise BackendError("ncclCommInitRank", "unhandled system error")

        for member in apart.members:
            monkeypatch.setattr(member.backend.collectives.nccl, "join", broken)
        with pytest.raises(BackendError, match="ncclCommInitRank"):
            apart.backend.prepare(copy)
        monkeypatch.undo()
        for member in apart.members:
            member.backend.collectives._nccl = nccl_of(self.library_of(member))
        measured(apart.backend.prepare(copy))
        assert apart.of(Token) == [2, 0]

    def library_of(self, member):
        return member.backend.collectives.nccl._core.library
