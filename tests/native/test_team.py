"""A team is safe to close at any moment."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator

import pytest

from linkgauge._native import Job, Op, Team
from native.arena import CPUS, settles_at, threads_alive

SIZE = 100_000


@pytest.fixture
def job() -> Iterator[Job]:
    held = ctypes.create_string_buffer(SIZE)
    yield Job(Op.READ, ctypes.addressof(held), 0, SIZE, 0, CPUS * 2)
    del held


def test_a_team_closes_from_every_state(job: Job) -> None:
    before = threads_alive()
    for step in range(4):
        team = Team([job])
        if step > 0:
            team.arm(10**12)  # would take years, so that closing must cut it short
        if step > 1:
            team.open()
        if step < 3:
            team.close()
        del team
    assert settles_at(before)


def test_closing_ends_a_wait_in_another_thread(job: Job) -> None:
    team = Team([job])
    team.arm(10**12)
    team.open()
    raised: list[RuntimeError] = []

    def wait() -> None:
        try:
            team.wait()
        except RuntimeError as error:
            raised.append(error)

    waiter = threading.Thread(target=wait)
    waiter.start()
    team.close()
    waiter.join(60)
    assert len(raised) == 1
