"""A rank keeps its memory windows for the cells of a pass, as far as all ranks have room."""

import ctypes
from types import SimpleNamespace

import pytest

from linkgauge.backends.mpi import rank as of_rank
from linkgauge.backends.mpi.rank import MpiRank
from linkgauge.model.memory import Memory
from ranks_kit import launch

PAIR, OTHERS, SIZE = (0, 1), (0, 2), 1 << 16


class FakeMpi:
    """MPI as rank 0 sees it. `agreed` is what the ranks agree on; None stands for rank 0's own
    answer. Windows that are not freed are in `open`."""

    MIN = "min"

    def __init__(self, agreed):
        self.agreed, self.open, self.made = agreed, [], 0
        self.COMM_WORLD = self
        self.size, self.rank = 4, 0
        self.Win = self

    def Get_library_version(self):  # noqa: N802
        return "fake"

    def Get_group(self):  # noqa: N802
        return SimpleNamespace(Incl=lambda ranks: ranks)

    def Create_group(self, ranks):  # noqa: N802
        return self

    def Free(self):  # noqa: N802
        """Frees a communicator."""

    def allreduce(self, own, op):
        return own if self.agreed is None else min(own, self.agreed)

    def Allocate(self, size, unit, comm):  # noqa: N802
        memory = ctypes.create_string_buffer(size)
        window = SimpleNamespace(tomemory=lambda: memory, Lock_all=int, Unlock_all=int, Sync=int)
        window.Free = lambda: self.open.remove(window)
        self.open.append(window)
        self.made += 1
        return window

    def Get_address(self, memory):  # noqa: N802
        return ctypes.addressof(memory)


@pytest.fixture
def opened(monkeypatch):
    def of(agreed=None, room=1 << 30):
        monkeypatch.setattr(of_rank, "_room", lambda: room)
        mpi = FakeMpi(agreed)
        return MpiRank(launch(size=4), mpi), mpi

    return of


def repetition(rank, number, ranks=PAIR, size=SIZE, buffers=1):
    """One repetition of a copy between these ranks. Returns the window of its buffers."""
    asked = [
        SimpleNamespace(memory=Memory("host", 0, rank=one), size=size)
        for one in ranks
        for _ in range(buffers)
    ]
    parts = rank.windows(asked, ranks, number)
    for part in parts[:buffers]:
        part.fill(size, of_rank.Pattern.WORDS, 7, inverted=False)
        assert part.first_mismatch(size, of_rank.Pattern.WORDS, 7) is None
    rank.leave()
    (window,) = {id(part.window): part.window for part in parts}.values()
    return window


def test_cells_of_a_pass_share_a_window_and_the_next_pass_has_a_new_one(opened):
    rank, mpi = opened()
    first = repetition(rank, 0)
    other = repetition(rank, 0, OTHERS)
    assert repetition(rank, 0, size=SIZE // 2) == first
    assert repetition(rank, 0, OTHERS) == other
    assert (mpi.made, len(mpi.open)) == (2, 2)
    assert repetition(rank, 1) != first
    assert (mpi.made, len(mpi.open)) == (3, 2)


def test_a_cell_that_needs_more_gets_a_larger_window(opened):
    rank, mpi = opened()
    small = repetition(rank, 0)
    large = repetition(rank, 0, buffers=2)
    assert large != small
    assert repetition(rank, 0) == large
    assert (mpi.made, len(mpi.open)) == (2, 1)


def test_a_later_pass_allocates_once_what_the_pass_before_needed(opened):
    rank, mpi = opened()
    for buffers in (1, 2):
        repetition(rank, 0, buffers=buffers)
    for number in (1, 2):
        assert repetition(rank, number) == repetition(rank, number, buffers=2)
    assert (mpi.made, len(mpi.open)) == (4, 1)


def test_what_no_longer_has_room_is_not_needed_again(opened):
    rank, mpi = opened(room=2 * SIZE)
    repetition(rank, 0, buffers=2)
    repetition(rank, 0, OTHERS, buffers=2)  # only for a repetition
    rank._room = SIZE
    repetition(rank, 1)
    assert repetition(rank, 1) == repetition(rank, 1)
    assert [len(window.tomemory()) for window in mpi.open] == [SIZE]


@pytest.mark.parametrize(("agreed", "room"), [(0, 1 << 30), (None, 0)])
def test_where_a_rank_has_no_room_windows_last_for_a_repetition(opened, agreed, room):
    rank, mpi = opened(agreed, room)
    for made in (1, 2):
        repetition(rank, 0)
        assert (mpi.made, mpi.open) == (made, [])


def test_in_the_end_all_are_freed(opened):
    rank, mpi = opened()
    repetition(rank, 0)
    repetition(rank, 0, OTHERS)
    rank.close()
    assert mpi.open == []
