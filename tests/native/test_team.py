"""A team starts together, takes turns, and is safe to close at any moment."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator

import pytest

from linkgauge._native import (
    Job,
    Op,
    Pattern,
    Team,
    fill,
)
from native.arena import (
    CPUS,
    LARGE,
    Arena,
    expected,
    sample,
    settles_at,
    team_of,
    threads_alive,
    xor_of,
)


@pytest.fixture
def arena() -> Arena:
    return Arena(LARGE, 1)


@pytest.fixture
def team(arena: Arena) -> Iterator[Team]:
    with team_of(Job(Op.READ, arena.address, 0, LARGE, 0, CPUS)) as team:
        yield team


def test_calls_out_of_order_raise(team: Team) -> None:
    for loops in (0, -1):
        with pytest.raises(ValueError, match="loops"):
            team.arm(loops)
    for call in (team.open, team.wait):
        with pytest.raises(RuntimeError):
            call()
    team.arm(1)
    with pytest.raises(RuntimeError, match="arm"):
        team.arm(1)
    with pytest.raises(RuntimeError, match="wait"):
        team.wait()
    team.open()
    for call in (team.open, lambda: team.arm(1)):
        with pytest.raises(RuntimeError):
            call()
    team.wait()
    sample(team)
    team.close()
    team.close()
    for call in (team.open, team.wait, lambda: team.arm(1)):
        with pytest.raises(RuntimeError, match="closed"):
            call()


def test_a_team_closes_from_every_state(arena: Arena) -> None:
    before = threads_alive()
    job = Job(Op.READ, arena.address, 0, LARGE, 0, CPUS * 2)
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


def test_closing_ends_a_wait_in_another_thread(arena: Arena) -> None:
    team = Team([Job(Op.READ, arena.address, 0, LARGE, 0, CPUS)])
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


def test_this_thread_stays_where_it_may_run(team: Team) -> None:
    sample(team)
    fill_me = Arena(64, 0)
    fill(fill_me.address, 64, 1, Pattern.WORDS, False, CPUS[:1])
    assert sorted(os.sched_getaffinity(0)) == CPUS


def test_an_endless_job_goes_on_until_the_others_have_ended(arena: Arena) -> None:
    arena.bytes[:] = expected(LARGE, 3, Pattern.WORDS)
    jobs = (
        Job(Op.WRITE, 0, arena.address + 8192, LARGE - 8192, 1, CPUS[:1]),
        Job(Op.READ, arena.address, 0, 4096, 0, CPUS[-1:], endless=True),
    )
    passes = []
    with team_of(*jobs) as team:
        # A thread that gets no CPU for a while catches up in a later sample.
        while len(passes) < 1000 and max(passes, default=0) <= 3:
            team.arm(3)
            team.open()
            bounded, endless = team.wait()
            assert bounded.passes == 3
            assert endless.passes >= 1
            assert endless.checksum == xor_of(arena.bytes[:4096])
            passes.append(endless.passes)
    assert max(passes) > 3
