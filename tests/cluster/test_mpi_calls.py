"""The calls of all ranks together, carried out in plain Python, leave in every rank's memory what
the collective is, whatever the number of ranks."""

import ctypes
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collective_kit import carried_out, sent, stored
from linkgauge.backends.mpi.calls import (
    MOST_ELEMENTS,
    OPERATIONS,
    TYPES,
    Calls,
    GroupPlace,
    check_work,
)
from linkgauge.model.errors import Unsupported
from linkgauge.model.operations.collective import (
    COLLECTIVE_NAMES,
    NUMBERS,
    Collective,
    has_root,
    reduces,
)

IN_PLACE, COMM, ALONE, TYPE, SEED = (1 << 64) - 1, 77, 55, 66, 7
MPI = SimpleNamespace(
    IN_PLACE=-1,
    COMM_SELF=ALONE,
    _handleof=lambda one: one,
    **dict.fromkeys(TYPES.values(), TYPE),
    **{name: name for name in OPERATIONS.values()},
)
FOLD = {"SUM": sum, "MAX": max, "MIN": min}


@pytest.fixture(autouse=True, scope="module")
def _named():
    """A function's address is its name."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("linkgauge.backends.mpi.calls.library", lambda mpi: None)
        patch.setattr("linkgauge.backends.mpi.calls.address_of", lambda functions, name: name)
        yield


class World:
    """Ranks whose numbers are int64, in memory of this process."""

    def __init__(self, calls, one=8):
        self.calls = [[made.call for made in own] for own in calls]
        self.next = [0] * len(calls)
        self.posted = {}
        self.sent = {}
        self.one = one

    def read(self, address, count):
        return ctypes.string_at(address, count * self.one) if count else b""

    def write(self, address, data):
        ctypes.memmove(address, data, len(data))

    def run(self):
        while any(at < len(own) for at, own in zip(self.next, self.calls, strict=True)):
            moved = [self.step(rank) for rank in range(len(self.calls))]
            assert any(moved) or self.together(), "all wait for ever"

    def step(self, rank):
        """One call of messages; whether it was made."""
        if self.next[rank] >= len(self.calls[rank]):
            return False
        name, given = self.calls[rank][self.next[rank]]
        if name == "MPI_Irecv":
            into, count, _, source, tag, _, request = given
            self.posted[rank, request] = (into, count, source, tag)
        elif name == "MPI_Send":
            data, count, _, to, tag, _ = given
            self.sent.setdefault((rank, to, tag), []).append(self.read(data, count))
        elif name == "MPI_Wait":
            into, count, source, tag = self.posted[rank, given[0]]
            arrived = self.sent.get((source, rank, tag))
            if not arrived:
                return False
            assert len(arrived[0]) == count * self.one
            self.write(into, arrived.pop(0))
        elif given[-1] == ALONE:
            data, count, _, into, *_ = given
            self.write(into, self.read(data, count))
        else:
            return False
        self.next[rank] += 1
        return True

    def together(self):
        """The collective that all ranks are at."""
        at = [own[place] for own, place in zip(self.calls, self.next, strict=True)]
        ((name,),) = ({name for name, _ in at},)
        getattr(self, name)([given for _, given in at])
        self.next = [place + 1 for place in self.next]
        return True

    def MPI_Bcast(self, given):  # noqa: N802
        root = given[0][3]
        data = self.read(given[root][0], given[root][1])
        for into, count, *_ in given:
            assert len(data) == count * self.one
            self.write(into, data)

    def _numbers(self, address, count):
        return list((ctypes.c_int64 * count).from_buffer_copy(self.read(address, count)))

    def _fold(self, given, count):
        """Of all ranks, with their numbers in place or not."""
        rows = []
        for send, receive, *_ in given:
            rows.append(self._numbers(receive if send == IN_PLACE else send, count))
        names = {one[4] for one in given}
        fold = FOLD[names.pop()]
        return [fold(row) for row in zip(*rows, strict=True)]

    def _put(self, into, numbers):
        self.write(into, (ctypes.c_int64 * len(numbers))(*numbers))

    def MPI_Allreduce(self, given):  # noqa: N802
        whole = self._fold(given, given[0][2])
        for _, receive, *_ in given:
            self._put(receive, whole)

    def MPI_Reduce(self, given):  # noqa: N802
        root = given[0][5]
        self._put(given[root][1], self._fold(given, given[0][2]))

    def MPI_Reduce_scatter_block(self, given):  # noqa: N802
        count = given[0][2]
        whole = self._fold(given, count * len(given))
        for rank, (_, receive, *_) in enumerate(given):
            self._put(receive, whole[rank * count : (rank + 1) * count])

    def _gathered(self, given, at):
        """What a rank gathers of all, whose share may be in place."""
        count, size = given[0][1], given[0][1] * self.one
        shares = [
            self.read(receive + rank * size if send == IN_PLACE else send, count)
            for rank, (send, _, _, receive, *_) in enumerate(given)
        ]
        self.write(given[at][3], b"".join(shares))

    def MPI_Allgather(self, given):  # noqa: N802
        for at in range(len(given)):
            self._gathered(given, at)

    def MPI_Gather(self, given):  # noqa: N802
        self._gathered(given, given[0][6])

    def MPI_Scatter(self, given):  # noqa: N802
        root = given[0][6]
        size = given[0][1] * self.one
        for rank, (_, count, _, receive, *_) in enumerate(given):
            if receive != IN_PLACE:
                self.write(receive, self.read(given[root][0] + rank * size, count))

    def MPI_Alltoall(self, given):  # noqa: N802
        count, size = given[0][1], given[0][1] * self.one
        for rank, (_, _, _, receive, *_) in enumerate(given):
            shares = [self.read(send + rank * size, count) for send, *_ in given]
            self.write(receive, b"".join(shares))


@st.composite
def works(draw):
    name = draw(st.sampled_from(COLLECTIVE_NAMES))
    ranks = 1 << draw(st.integers(0, 3)) if name == "hypercube" else draw(st.integers(1, 7))
    reduction = draw(st.sampled_from(["sum", "max", "min"])) if reduces(name) else None
    root = draw(st.integers(0, ranks - 1)) if has_root(name) else None
    work = Collective(name, "int64", reduction, root, draw(st.booleans()))
    return (work if work.is_checked else Collective(name, "int64")), ranks


def made_by_all(work, size, ranks):
    """The calls of all ranks and their buffers, with what they send."""
    counts, parts = work.counts(size, ranks), []
    for rank, own in enumerate(work.buffer_bytes(size, ranks)):
        send, receive = (ctypes.create_string_buffer(b"\xff" * most, most + 8) for most in own)
        place = GroupPlace(rank, ranks, ctypes.addressof(send), ctypes.addressof(receive))
        calls = Calls(MPI, COMM, work, counts, place)
        given = [stored("int64", sent(work, ranks, SEED, rank, at)) for at in range(counts.send)]
        if work.collective not in ("broadcast", "scatter") or rank == work.root:
            ctypes.memmove(calls.given, b"".join(given), len(given) * 8)
        parts.append((calls, send, receive))
    return counts, parts


@given(works(), st.integers(0, 600))
def test_calls_are_the_collective(made, size):
    work, ranks = made
    counts, parts = made_by_all(work, size, ranks)
    World([calls.once() for calls, *_ in parts]).run()
    wanted = carried_out(work, counts, ranks, SEED)
    for (calls, *_), numbers in zip(parts, wanted, strict=True):
        if numbers is not None:
            found = ctypes.string_at(calls.result, counts.receive * 8)
            assert found == b"".join(stored("int64", number) for number in numbers)


@given(works(), st.integers(0, 600))
def test_calls_have_no_more_arguments_than_the_native_loop_passes_on(made, size):
    work, ranks = made
    for calls, *_ in made_by_all(work, size, ranks)[1]:
        for _, (_, arguments) in calls.once():
            assert len(arguments) <= 11
            words = [word for word in arguments if isinstance(word, int)]
            assert all(0 <= word < 1 << 64 for word in words)


@pytest.mark.parametrize(
    ("name", "function"), [("alltoall", "MPI_Alltoall"), ("sendrecv", "MPI_Sendrecv_replace")]
)
def test_what_is_not_checked_in_place_is_called_in_place(name, function):
    work = Collective(name, "int64", in_place=True)
    _, parts = made_by_all(work, 256, 4)
    ((called, (_, arguments)),) = parts[1][0].once()
    assert called == function
    receive = ctypes.addressof(parts[1][2])
    assert receive in arguments
    if name == "sendrecv":
        assert arguments[3:6:2] == (2, 0), "to the next, from the one before"


class TestRefusals:
    @pytest.mark.parametrize("number", sorted(NUMBERS))
    def test_of_types_name_those_that_there_are(self, number):
        work = Collective("all_gather", number)
        if number in TYPES:
            check_work(work, 64, 4)
        else:
            with pytest.raises(Unsupported, match=f"no type {number}: give one of int8, "):
                check_work(work, 64, 4)

    @pytest.mark.parametrize(
        ("work", "size", "why"),
        [
            (Collective("all_gather", graphed=True), 64, "no graphs"),
            (Collective("all_gather", registered="local"), 64, "registers no buffers"),
            (Collective("broadcast", root=4), 64, "no root 4 in a group of 4"),
            (Collective("broadcast", root=2, split="MOD 2"), 64, "no root 2 in a group of 2"),
            (Collective("hypercube", split="DIV 3"), 64, "power of two of ranks, not 3"),
            (Collective("all_reduce", "int8"), MOST_ELEMENTS + 1, "at most 2147483647 elements"),
        ],
    )
    def test_say_why(self, work, size, why):
        with pytest.raises(Unsupported, match=why):
            check_work(work, size, 4)
