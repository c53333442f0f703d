"""GPUs of processes, each of which opens the others' memory: on several machines copies take fabric
handles where these reach, else NCCL, and what neither carries out is skipped with the reasons."""

import pytest

from cuda_emulator import emulated
from cuda_kit import Status
from linkgauge.backends.cuda import flags
from linkgauge.backends.cuda.nccl import collectives
from linkgauge.backends.cuda.rank import BY_FABRIC, BY_IPC, BY_NCCL, CudaRank
from linkgauge.backends.protocol import Copy, Pattern
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from nccl_kit import library_in, nccl_of
from ranks_kit import SIZE, Ranks, copies, launch, measured

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


class Machines(Ranks):
    """Ranks with an emulated GPU each, on machines of these names."""

    def __init__(self, *hosts):
        opened = [emulated(len(hosts), kernel="plain") for _ in hosts]
        self.bindings = [bindings for _, bindings in opened]
        members = [CudaRank(launch(n, len(hosts)), one, hosts) for n, (one, _) in enumerate(opened)]
        super().__init__("cuda", len(hosts), hosts, members)

    def times(self, name):
        """How often each rank was asked this."""
        return [len(self.of(name).get(rank, ())) for rank in range(len(self.backends))]

    def fail(self, call, status=Status.CUDA_ERROR_NOT_PERMITTED):
        for bindings in self.bindings:
            bindings.failing[call] = status


def filled(backend, *transfers, **how):
    """Copies of patterned memory, of which no byte has arrived."""
    made = copies(backend, *transfers, **how)
    for copy in made:
        backend.fill(copy.source, SIZE, Pattern.WORDS, 7, inverted=False)
        backend.fill(copy.destination, SIZE, Pattern.WORDS, 7, inverted=True)
    return made


def wrong(backend, copy):
    return backend.first_mismatch(copy.destination, SIZE, Pattern.WORDS, 7)


@pytest.fixture
def apart():
    """Two machines that no NVLink domain has in common."""
    made = Machines("node7", "node8")
    made.fail("cuMemCreate")
    return made


class TestWay:
    """IPC within a machine; between machines fabric handles, then NCCL, then none."""

    def way(self, machines, transfer=WRITE):
        def call(backend):
            backend.prepare(filled(backend, transfer))
            return backend.remarks(transfer)

        return machines.result(call)

    def test_within_a_machine_is_ipc(self):
        machines = Machines("node7", "node7")
        assert BY_IPC in self.way(machines)
        assert machines.times("apart") == [0, 0], "nothing has to be asked"
        assert machines.bindings[1].of("cuMemCreate") == []
        own = [parse_transfer(f"cuda:0@0 -> cuda:0@0 by {kind}") for kind in ("ce", "ccl")]
        keys = {machines.backends[0].reach(one.source, one.engine) for one in own}
        assert len(keys) == 2, "NCCL has memory of its own, which no other process opens"

    @pytest.mark.parametrize("transfer", [WRITE, READ, KERNEL], ids=str)
    def test_within_an_nvlink_domain_is_by_fabric_handles(self, transfer):
        machines = Machines("node7", "node8")
        assert BY_FABRIC in self.way(machines, transfer)
        assert machines.times("token") == [0, 0]
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
        assert apart.times("prepare") == [0, 0], "no rank waits for another one's part"

    def test_of_ranks_that_share_a_gpu_is_none(self, apart):
        for backend in apart.backends:
            backend.shared = frozenset({"cuda:1@1"})
        with pytest.raises(Unsupported, match="ranks share a GPU: NCCL needs one for each"):
            self.way(apart)


class TestPassed:
    """What NCCL sends and receives."""

    @pytest.mark.parametrize("transfer", [WRITE, READ, KERNEL, BACK], ids=str)
    def test_arrives_and_is_timed_by_the_engine_s_rank(self, apart, transfer):
        def call(backend):
            (copy,) = filled(backend, transfer)
            assert wrong(backend, copy) == 0
            group = backend.prepare([copy])
            seconds = measured(group, 3).seconds
            return len(seconds), seconds[0] > 0, wrong(backend, copy)

        assert apart.result(call) == (1, True, None)

    def test_runs_beside_what_engines_reach(self):
        machines = Machines("node7", "node8", "node7")
        machines.fail("cuMemCreate")

        def call(backend):
            mixed = filled(backend, WRITE, TO_THIRD)
            timing = measured(backend.prepare(mixed), 2)
            assert [wrong(backend, copy) for copy in mixed] == [None, None]
            return len(timing.seconds), backend.remarks(WRITE), backend.remarks(TO_THIRD)

        count, passed, direct = machines.result(call)
        assert (count, passed[0]) == (2, BY_NCCL)
        assert BY_IPC in direct

    def test_a_wrong_byte_is_found(self, apart, library):
        def call(backend):
            (copy,) = filled(backend, WRITE, warm_ups=0)
            group = backend.prepare([copy])
            backend.fill(copy.destination, SIZE, Pattern.WORDS, 7, inverted=True)
            library.spoil(1)
            measured(group)
            return wrong(backend, copy)

        assert apart.result(call) == 5

    def test_what_breaks_is_founded_anew(self, apart, monkeypatch):
        def broken(*arguments):
            raise BackendError("ncclCommInitRank", "unhandled system error")

        members = [one.member for one in apart.members]
        for member in members:
            monkeypatch.setattr(member.backend.collectives.nccl, "join", broken)
        with pytest.raises(BackendError, match="ncclCommInitRank"):
            apart.result(lambda backend: backend.prepare(filled(backend, WRITE)))
        monkeypatch.undo()
        for member in members:
            member.backend.collectives._nccl = nccl_of(
                member.backend.collectives.nccl._core.library
            )
        apart.each(lambda backend: measured(backend.prepare(filled(backend, WRITE))))
        assert apart.times("token") == [2, 0]


class TestFlags:
    @pytest.fixture(autouse=True)
    def _patient(self, monkeypatch):
        monkeypatch.setattr(flags, "LIMIT", 60)

    def prepared(self, backend, transfer, *buffers):
        return backend.prepare([Copy(transfer, *buffers, flags.BYTES, 7)], "flag-ping-pong")

    @pytest.mark.parametrize("text", ["cuda:0@0 -> cuda:1@1 by sm", "cuda:1@1 -> cuda:0@0 by sm"])
    def test_bounce_between_processes(self, text):
        transfer = parse_transfer(text)

        def call(backend):
            both = [backend.allocate(m, flags.BYTES, transfer.engine) for m in transfer.memories]
            group = self.prepared(backend, transfer, *both)
            assert (group.policy.steps, group.most_loops) == (2, flags.MOST)
            samples = []
            for _ in range(2):
                group.arm(1, 3)
                group.open()
                samples.append(group.wait())
            begins = group._group._begins is not None
            return begins, [(len(one.seconds), len(one.progress[0])) for one in samples]

        found = Machines("node7", "node7").each(call)
        begins = transfer.source.rank
        assert found == {begins: (True, [(1, 4)] * 2), 1 - begins: (False, [(1, 4)] * 2)}

    def test_between_no_two_memories_are_refused(self):
        none = parse_transfer("cuda:0@0 -> null by sm")
        with pytest.raises(Unsupported, match="flags bounce by a kernel"):
            Machines("node7").result(lambda backend: self.prepared(backend, none, None, None))
