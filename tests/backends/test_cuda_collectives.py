"""Collectives on emulated GPUs, by a library that carries out NCCL's calls on the CPU."""

import pytest

from collective_kit import works_in_each_place
from cuda_emulator import emulated
from linkgauge.backends import iterations
from linkgauge.backends.cuda.nccl import calls as collective_calls
from linkgauge.backends.cuda.nccl import collectives
from linkgauge.backends.protocol import CollectingGroup, Copy, Wrong, follows, run
from linkgauge.model.errors import BackendError, Unsupported
from linkgauge.model.notation import parse_transfer
from linkgauge.model.operations.collective import NUMBERS, REDUCTIONS, Collective
from nccl_kit import library_in, nccl_of

RANKS = 4


@pytest.fixture(scope="module", params=["2.28", "before"])
def library(tmp_path_factory, request):
    return library_in(tmp_path_factory.mktemp("nccl"), since_2_28=request.param == "2.28")


@pytest.fixture
def backend(library, monkeypatch):
    opened, _ = emulated(RANKS)
    monkeypatch.setattr(
        collective_calls, "address_of", lambda name: iterations.address_of(library, name)
    )
    monkeypatch.setattr(collectives, "open_nccl", lambda: nccl_of(library))
    yield opened
    opened.close()


def group_of(backend, work, ranks=RANKS, size=4096):
    copies = []
    for rank, needed in enumerate(work.buffer_bytes(size, ranks)):
        transfer = parse_transfer(f"cuda:{rank} -> cuda:{rank} by ccl")
        assert backend.refusal(transfer) is None
        ends = (
            backend.allocate(transfer.source, one, transfer.engine) if one else None
            for one in needed
        )
        copies.append(Copy(transfer, *ends, size, 1))
    return backend.prepare(copies, work)


WORKS = [one for one in works_in_each_place(root=2) if one.values[0].is_checked]


@pytest.mark.parametrize("work", WORKS)
def test_each_is_carried_out_right(backend, work):
    group = group_of(backend, work)
    assert follows(group, CollectingGroup)
    timing = run(group, 2)
    assert len(timing.seconds) == RANKS
    assert min(timing.seconds) > 0
    assert group.check() == Wrong()
    assert [len(times) for times in group.iterations(3)] == [3] * RANKS


@pytest.mark.parametrize("work", WORKS)
def test_an_element_altered_in_one_rank_is_found(backend, library, work):
    group = group_of(backend, work)
    rank = 2 if work.has_root else 1
    library.spoil(rank)
    wrong = group.check()
    library.spoil(-1)
    if work.collective == "hypercube":  # what is wrong in one rank is passed on
        assert wrong.count >= 1
    else:
        assert wrong == Wrong(1, rank, 5)
    assert group.check() == Wrong()


@pytest.mark.parametrize("number", list(NUMBERS))
def test_of_each_type_and_reduction(backend, number):
    small = number in ("half", "bfloat16", "f8e4m3", "f8e5m2")
    for reduction in REDUCTIONS:
        if (reduction == "avg" and small) or (reduction == "mulsum" and number != "float"):
            continue  # of which the library on the CPU knows nothing
        work = Collective("all_reduce", number, reduction)
        assert group_of(backend, work).check() == Wrong(), reduction


def test_buffers_are_registered_if_asked_for(backend, library):
    before = len(library.lines())
    group = group_of(backend, Collective("all_gather", registered="local"))
    group.close()
    made = library.lines()[before:].decode().split()
    assert made == ["(", *["register"] * 2 * RANKS, ")", *["deregister"] * 2 * RANKS]
    with pytest.raises(Unsupported, match="has no ncclCommWindowRegister"):
        group_of(backend, Collective("all_gather", registered="symmetric"))


def test_what_nccl_does_not_take_is_unsupported_and_names_the_call(backend):
    with pytest.raises(Unsupported, match=r"does not accept it: ncclBroadcast: invalid argument"):
        backend.collectives.nccl.call("ncclBroadcast", 0, 0, 0, 99, 0, 0, 0)


def test_other_errors_have_the_name_of_the_call(backend):
    error = backend.collectives.nccl.error("ncclAllReduce", 1)
    assert isinstance(error, BackendError)
    assert str(error).startswith("ncclAllReduce: error")


def test_a_rank_has_its_own_gpu(backend):
    work = Collective("all_reduce", reduction="sum")
    transfer = parse_transfer("cuda:0 -> cuda:0 by ccl")
    ends = [backend.allocate(transfer.source, 64, transfer.engine) for _ in range(2)]
    copies = [Copy(transfer, *ends, 64, 1)] * 2
    with pytest.raises(Unsupported, match="ranks share a GPU"):
        backend.prepare(copies, work)


def test_parts_are_within_one_memory(backend):
    transfer = parse_transfer("cuda:0 -> cuda:1 by ccl")
    assert "a rank's part" in backend.refusal(transfer)


def test_the_library_is_named(backend, monkeypatch):
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    transfer = parse_transfer("cuda:0 -> cuda:0 by ccl")
    backend.refusal(transfer)
    first, *variables = backend.remarks(transfer)
    assert first.startswith("NCCL 2.28.9 (")
    assert "NCCL_ALGO=Ring" in variables


def test_graphs_are_launched_once_for_each_device(backend, library):
    group = group_of(backend, Collective("all_reduce", reduction="sum", graphed=True))
    group.arm(3)
    before = len(library.lines())
    group.open()
    group.wait()
    assert library.lines()[before:].decode().split() == ["graph"] * RANKS
    group.close()


def test_blocking_calls_wait_each_time(backend):
    group = group_of(backend, Collective("all_reduce", reduction="sum", blocking=True))
    assert min(run(group, 3).seconds) > 0


def test_a_call_that_fails_leaves_no_group_open(backend, library):
    group = group_of(backend, Collective("all_reduce", reduction="sum"))
    library.refuse(2)
    with pytest.raises(Unsupported, match="ncclAllReduce"):
        group.check()
    assert library.open_groups() == 0
    assert group.check() == Wrong()
