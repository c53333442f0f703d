"""Ranks meet by a name that only their launch has, and by TCP with a token."""

import threading

import pytest

from linkgauge.cluster import wire
from linkgauge.cluster.wire import (
    NotReached,
    connect_here,
    is_ours,
    listen_anywhere,
    listen_here,
)
from linkgauge.model.errors import InputError
from ranks_kit import LONG, SOON, job, launch


@pytest.fixture
def ours():
    return launch(1, 2, name=job())


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(wire, "AGAIN_SECONDS", 0.001)


class TestHere:
    def test_rank_0_may_come_last(self, ours):
        found = []
        waiting = threading.Thread(target=lambda: found.append(connect_here(ours, LONG)))
        waiting.start()
        with listen_here(ours):
            waiting.join()
            found[0].close()

    def test_other_launches_do_not_meet(self, ours):
        with (
            listen_here(launch(0, 2, name=job())),
            pytest.raises(NotReached, match=r"did not appear within 0\.05 s"),
        ):
            connect_here(ours, SOON)

    def test_a_second_rank_0_is_refused(self, ours):
        with (
            listen_here(ours),
            pytest.raises(InputError, match=f"launch {ours.job} has a rank 0.*Address already"),
        ):
            listen_here(ours)


class TestName:
    @pytest.mark.parametrize("longest", ["j" * 255, "ö" * 100, "\udcff" * 90])
    def test_a_launch_of_any_name_has_one_of_its_own(self, longest):
        one, other = (launch(name=f"{longest}{n}{job()}") for n in range(2))
        with listen_here(one), listen_here(other), connect_here(one, LONG) as connected:
            assert is_ours(connected)


class TestUsers:
    def test_another_users_rank_0_is_not_obeyed(self, ours, monkeypatch):
        """Anybody may take the name."""
        monkeypatch.setattr(wire, "is_ours", lambda end: False)
        with listen_here(ours), pytest.raises(NotReached):
            connect_here(ours, SOON)


class TestThere:
    def test_tokens_cannot_be_guessed(self):
        tokens = set()
        for _ in range(4):
            listening, (_, _, token) = listen_anywhere()
            listening.close()
            tokens.add(token)
            assert len(token) >= 16
        assert len(tokens) == 4
