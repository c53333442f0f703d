"""Ranks meet by a name that only their launch has, and by TCP with a token."""

import os
import socket
import threading

import pytest

from linkgauge.cluster import wire
from linkgauge.cluster.wire import (
    NotReached,
    connect_here,
    connect_there,
    is_first,
    is_ours,
    listen_anywhere,
    listen_here,
    name_of,
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
    def test_ranks_meet_by_the_name_of_their_launch(self, ours):
        with listen_here(ours) as listening, connect_here(ours, LONG) as connected:
            accepted, _ = listening.accept()
            with accepted:
                connected.sendall(b"here I am")
                assert accepted.recv(9) == b"here I am"

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

    def test_who_is_not_there_in_time_is_not_waited_for(self, ours):
        with pytest.raises(NotReached):
            connect_here(ours, 0.0)

    def test_a_second_rank_0_is_refused(self, ours):
        with (
            listen_here(ours),
            pytest.raises(InputError, match=f"launch {ours.job} has a rank 0.*Address already"),
        ):
            listen_here(ours)

    def test_a_name_vanishes_with_who_has_it(self, ours):
        listen_here(ours).close()
        listen_here(ours).close()


class TestName:
    def test_is_of_the_user_and_the_launch(self, ours):
        name = name_of(ours, "0")
        assert name.startswith("\0linkgauge/")
        assert f"/{os.getuid()}/{ours.job}/" in name
        assert name_of(ours, "heir") != name

    @pytest.mark.parametrize("longest", ["j" * 255, "ö" * 100, "\udcff" * 90])
    def test_a_launch_of_any_name_has_one_of_its_own(self, longest):
        one, other = (launch(name=f"{longest}{n}{job()}") for n in range(2))
        with listen_here(one), listen_here(other), connect_here(one, LONG) as connected:
            assert is_ours(connected)


class TestUsers:
    def test_both_ends_are_this_users(self, ours):
        with listen_here(ours) as listening, connect_here(ours, LONG) as connected:
            accepted, _ = listening.accept()
            with accepted:
                assert is_ours(accepted)
                assert is_ours(connected)

    def test_another_users_are_not(self, ours, monkeypatch):
        one, other = socket.socketpair()
        monkeypatch.setattr(os, "getuid", lambda: 12_345_678)
        with one, other:
            assert not is_ours(one)

    def test_another_users_rank_0_is_not_obeyed(self, ours, monkeypatch):
        """Anybody may take the name."""
        monkeypatch.setattr(wire, "is_ours", lambda end: False)
        with listen_here(ours), pytest.raises(NotReached):
            connect_here(ours, SOON)


class TestThere:
    def test_ranks_on_other_machines_come_by_tcp(self):
        listening, (host, port, token) = listen_anywhere()
        assert host == socket.gethostname()
        with listening, connect_there("localhost", port, LONG) as connected:
            accepted, _ = listening.accept()
            with accepted:
                connected.sendall(token)
                assert accepted.recv(64) == token
                assert connected.gettimeout() is None

    def test_tokens_cannot_be_guessed(self):
        tokens = set()
        for _ in range(4):
            listening, (_, _, token) = listen_anywhere()
            listening.close()
            tokens.add(token)
            assert len(token) >= 16
        assert len(tokens) == 4

    def test_nobody_there_is_said_with_the_address(self):
        listening, (_, port, _) = listen_anywhere()
        listening.close()
        with pytest.raises(
            NotReached, match=f"cannot be reached at localhost:{port}: Connection ref"
        ):
            connect_there("localhost", port, LONG)

    def test_an_unknown_host_is_said(self, monkeypatch):
        def resolved(address, timeout):
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr(socket, "create_connection", resolved)
        with pytest.raises(NotReached, match=r"cannot be reached at nowhere\.invalid:1: Name or"):
            connect_there("nowhere.invalid", 1, LONG)


class TestHeir:
    def test_is_one_of_a_machine(self, ours):
        first = is_first(ours)
        assert first is not None
        with first:
            assert is_first(ours) is None
            assert is_first(launch(0, 2, name=job())).close() is None
        assert is_first(ours).close() is None
