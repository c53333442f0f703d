"""A team starts together, takes turns, and is safe to close at any moment."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest

from linkgauge._native import (
    Job,
    Kind,
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


def test_an_armed_team_waits_asleep(team: Team) -> None:
    team.arm(1)
    time.sleep(0.05)  # long enough for its threads to stop spinning
    team.open()
    assert len(team.wait()) == 1


def test_more_threads_than_cpus(arena: Arena) -> None:
    fill(arena.address, LARGE, 2, Pattern.WORDS, False, CPUS)
    job = Job(Op.READ, arena.address, 0, LARGE, 0, CPUS[:1] * 16)
    with team_of(job, job, job) as team:
        for loops in (1, 2, 50):
            assert sample(team, loops) == [xor_of(arena.bytes)] * 3


def test_more_threads_than_bytes() -> None:
    arena = Arena(1, 0)
    with team_of(Job(Op.WRITE, 0, arena.address, 1, 4, CPUS[:1] * 8)) as team:
        sample(team, 1000)
    assert np.array_equal(arena.bytes, expected(1, 4, Pattern.CONSTANT))
    assert arena.guarded()


def test_two_teams_take_turns(arena: Arena) -> None:
    job = Job(Op.READ, arena.address, 0, LARGE, 0, CPUS)
    with team_of(job) as one, team_of(job) as other:
        for team in (one, other):
            team.arm(1)
        for team in (other, one):
            team.open()
        assert one.wait()[0].checksum == other.wait()[0].checksum


def test_many_samples_in_order(team: Team) -> None:
    spans = []
    for _ in range(500):
        team.arm(1)
        team.open()
        spans += team.wait()
    assert all(earlier.end <= later.begin for earlier, later in pairwise(spans))


@pytest.mark.parametrize("laps", [1, 5])
def test_a_span_tells_when_each_lap_ended(team: Team, laps: int) -> None:
    team.arm(3, laps)
    team.open()
    for span in team.wait():
        assert len(span.progress) == laps + 1
        assert span.passes == 3 * laps
        assert span.begin <= span.progress[0] <= span.progress[-1] <= span.end
        assert span.progress == sorted(span.progress)


def test_spans_are_on_the_clock_of_monotonic(team: Team) -> None:
    before = time.monotonic()
    team.arm(3)
    team.open()
    (span,) = team.wait()
    assert before <= span.begin <= span.end <= time.monotonic()


def test_a_team_at_rest_uses_no_cpu_time(team: Team) -> None:
    sample(team)
    before = time.process_time()
    time.sleep(0.3)
    assert time.process_time() - before < 0.15


def test_the_gil_is_free_while_a_team_runs(team: Team) -> None:
    team.arm(20_000)
    team.open()
    waiter = threading.Thread(target=team.wait)
    waiter.start()
    waiter.join(60)  # would never return if wait held the GIL and something needed it
    assert not waiter.is_alive()


def test_this_thread_stays_where_it_may_run(team: Team) -> None:
    sample(team)
    fill_me = Arena(64, 0)
    fill(fill_me.address, 64, 1, Pattern.WORDS, False, CPUS[:1])
    assert sorted(os.sched_getaffinity(0)) == CPUS


@pytest.mark.parametrize("member", [Kind.HUGE, Pattern.SPLIT, Op.COPY])
def test_enums_are_integers(member: int) -> None:
    assert member == 2


def test_job_keeps_what_it_was_given() -> None:
    job = Job(Op.WRITE, 0, 4096, 7, 11, [CPUS[0], CPUS[0]])
    assert (job.op, job.source, job.destination, job.size) == (Op.WRITE, 0, 4096, 7)
    assert (job.seed, job.cpus) == (11, [CPUS[0], CPUS[0]])


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


def test_endless_jobs_alone_go_on_until_somebody_waits(arena: Arena) -> None:
    job = Job(Op.WRITE, 0, arena.address, LARGE, 7, CPUS, endless=True)
    assert job.endless
    with team_of(job) as team:
        for _ in range(3):
            team.arm(1)
            team.open()
            time.sleep(0.02)
            asked = time.monotonic()
            (span,) = team.wait()
            assert span.passes >= 1
            assert span.end >= asked
    assert bool((arena.bytes == expected(LARGE, 7, Pattern.CONSTANT)).all())


def test_a_team_of_endless_jobs_closes_while_it_runs(arena: Arena) -> None:
    before = threads_alive()
    with team_of(Job(Op.READ, arena.address, 0, LARGE, 0, CPUS, endless=True)) as team:
        team.arm(1)
        team.open()
    assert settles_at(before)
