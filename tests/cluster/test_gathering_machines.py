"""Ranks of several machines, and ranks that share CPUs: who finds rank 0, and in what time."""

import os
import socket
import threading

import pytest

from cluster.test_gathering import Visitor, _ends, card, close, served
from linkgauge.cluster import gathering as module
from linkgauge.cluster.gathering import (
    Gathering,
    join_seconds,
)
from linkgauge.cluster.launch import Launch, crowd_of
from linkgauge.model.errors import InputError
from ranks_kit import LONG, launch

__all__ = ["_ends"]


class TestSeveralMachines:
    """Rank 0's address goes to the others by MPI; whoever connects shows the token."""

    @pytest.fixture
    def mpi(self, monkeypatch):
        address, known = [], threading.Event()

        def exchanged(own, told):
            if told is not None:
                address.append(told)
                known.set()
            known.wait(LONG)
            _, port, token = address[0]
            return "localhost", port, token

        monkeypatch.setattr(module, "_exchanged", exchanged)
        return exchanged

    @pytest.mark.parametrize("token", [b"", b"guessed-by-one-else"])
    def test_a_wrong_token_is_not_admitted(self, mpi, token):
        away = [launch(n, 2, on_one_machine=False) for n in range(2)]
        visitors = []

        def visit():
            host, port, _ = mpi(away[1], None)
            end = socket.create_connection((host, port), LONG)
            visitors.append(Visitor(end, card(1, token=token, process=666)))
            visitors[0].hears()
            with served(away[1]):
                pass

        visiting = threading.Thread(target=visit)
        visiting.start()
        gathered = Gathering(away[0], LONG)
        assert gathered.links.ranks[1].process == os.getpid()
        close(gathered)
        visiting.join()

    def test_without_mpi_it_is_said_at_once(self, monkeypatch):
        def exchanged(own, told):
            raise InputError("no MPI for Python")

        monkeypatch.setattr(module, "_exchanged", exchanged)
        with pytest.raises(InputError, match=r"^no MPI for Python$"):
            Gathering(launch(0, 2, on_one_machine=False), LONG)


class TestCrowd:
    @pytest.mark.parametrize(
        ("cpus", "ranks", "seconds"), [(4, 4, 60.0), (4, 1, 60.0), (2, 8, 240.0), (1, 64, 480.0)]
    )
    def test_ranks_that_share_cpus_have_more_time_to_appear(
        self, monkeypatch, cpus, ranks, seconds
    ):
        monkeypatch.setattr(os, "cpu_count", lambda: cpus)
        monkeypatch.setattr(module, "JOIN_SECONDS", 60.0)
        crowded = Launch(0, ranks, 0, ranks)
        assert crowd_of(crowded) == ranks / cpus
        assert join_seconds(crowded, None) == seconds
        assert join_seconds(crowded, 3.5) == seconds, "that limits answers"
