"""A member answers each command once, gives a sign of life meanwhile, and leaves with rank 0."""

import socket
import threading
import time
from contextlib import contextmanager

import pytest

from fakes import device
from linkgauge.engine.ranks import commands as messages
from linkgauge.engine.ranks import member_loop as module
from linkgauge.engine.ranks.commands import Pong, decode_reply
from linkgauge.engine.ranks.member_links import Deadlines
from linkgauge.engine.ranks.member_loop import Agent
from linkgauge.engine.workers import process
from linkgauge.machine.processes.channel import Broke, Channel, Done, Reason, Refused, encode
from linkgauge.model.errors import (
    AllocationError,
    BackendError,
    DeviceBusy,
    DeviceLost,
    InputError,
    NoPeerAccess,
    TookTooLong,
    Unsupported,
)
from linkgauge.model.hardware.inventory import Inventory
from linkgauge.model.settings import Settings
from ranks_kit import LONG, SOON, launch, rank

INVENTORY = Inventory()
OPEN = messages.Open("fake", Settings((1,)))


class FakeMember:
    """`fails` with this error."""

    others_wait, nics, gpu, lacks_gpu = False, (), None, None

    def __init__(self):
        self.fails = None
        self.closed = 0
        self.progress, self.enough = 0, threading.Event()
        self.stuck = threading.Event()
        self.stuck.set()

    def devices(self):
        return (device(0, "fake", pci="0000:aa:00.0"),)

    def make_progress(self):
        self.progress += 1
        if self.progress > 3:
            self.enough.set()

    def close(self):
        self.closed += 1

    def __getattr__(self, name):
        def call(*arguments):
            self.stuck.wait(LONG)
            if self.fails is not None:
                raise self.fails
            return {"look": INVENTORY}.get(name)

        return call


class First:
    """Rank 0's end, and the agent at the other one."""

    def __init__(self, deadlines=None):
        ours, theirs = socket.socketpair()
        self.channel, self.other = Channel(ours), Channel(theirs)
        self.left = []
        self.gone = threading.Event()
        self.agent = Agent(self.other, launch(1, 2), self._leave, deadlines)
        self.error = None
        self.thread = threading.Thread(target=self._serve)
        self.thread.start()

    def _leave(self, lost):
        self.left.append(lost)
        self.gone.set()

    def _serve(self):
        try:
            self.agent.serve()
        except Exception as error:  # noqa: BLE001  # whatever it is
            self.error = error

    def ask(self, command):
        self.channel.send(encode(command))
        return self.hear()

    def hear(self):
        return decode_reply(self.channel.receive(time.monotonic() + LONG))

    def result(self, command, kind):
        return _decoded(self.ask(command), kind)


def _decoded(done, kind):
    assert isinstance(done, Done), done
    return done.of(kind)


@pytest.fixture
def member(monkeypatch):
    made = FakeMember()
    monkeypatch.setattr(module, "open_rank", lambda *_, **__: made)
    return made


@contextmanager
def serving(deadlines=None):
    first = First(deadlines)
    try:
        yield first
    finally:
        first.channel.close(0.0)
        first.thread.join()
        first.other.close(0.0)


@pytest.fixture
def first(member):
    """An agent whose member is open."""
    with serving() as first:
        first.result(OPEN, messages.Present)
        yield first


class TestCommands:
    @pytest.mark.parametrize("problem", [Unsupported("no GPU"), InputError("no MPI")])
    def test_open_says_why_it_has_none(self, monkeypatch, problem):
        def fails(*_, **__):
            raise problem

        monkeypatch.setattr(module, "open_rank", fails)
        with serving() as first:
            assert first.result(OPEN, messages.Present) == messages.Present(None, str(problem))
            refused = first.ask(messages.ReadAccelerators())
        assert refused == Refused(Reason("call", "member: nothing is open"))

    def test_its_device_is_held_until_the_run_is_over(self, first, member):
        assert first.result(messages.Hold(), type(None)) is None
        with serving() as another:
            another.result(OPEN, messages.Present)
            refused = another.ask(messages.Hold())
            assert refused.reason.kind == "set-aside"
            assert "fake:0 (0000:aa:00.0) is being measured by process" in refused.reason.text
            first.channel.send(encode(messages.EndRun()))
            first.thread.join()
            assert another.result(messages.Hold(), type(None)) is None


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "kind"),
        [
            (Unsupported("no"), "unsupported"), (NoPeerAccess("no"), "peer"),
            (BackendError("cuX", "no"), "call"), (AllocationError("cuX", "no"), "memory"),
            (DeviceLost("cuX", "no"), "lost"), (TookTooLong("cuX", "no"), "timeout"),
            (DeviceBusy("no"), "set-aside"), (InputError("no"), "interrupted"),
        ],
    )  # fmt: skip
    def test_are_refusals_after_which_it_goes_on(self, first, member, error, kind):
        member.fails = error
        refused = first.ask(messages.ReadAccelerators())
        assert refused == Refused(Reason(kind, str(error)))
        member.fails = None
        assert first.result(messages.ReadAccelerators(), Inventory) == INVENTORY

    def test_that_are_unexpected_end_it(self, first, member):
        member.fails = KeyError(3)
        assert first.ask(messages.ReadAccelerators()) == Broke("KeyError: 3")
        first.thread.join()
        assert isinstance(first.error, KeyError)
        assert member.closed == 1


class TestSigns:
    def test_an_idle_member_makes_progress_if_others_depend_on_it(self, member):
        member.others_wait = True
        with serving() as first:
            first.result(OPEN, messages.Present)
            assert member.enough.wait(LONG)
            assert first.result(messages.ReadAccelerators(), Inventory) == INVENTORY

    def test_a_sign_says_how_long_the_member_waited_for_cpus_since_its_work_began(
        self, monkeypatch, first, member
    ):
        waits = {"1": 5.0, "2": 1.0}
        monkeypatch.setattr(process, "waits_for_cpu", lambda _: dict(waits))
        member.stuck.clear()
        first.channel.send(encode(messages.ReadAccelerators()))
        assert first.ask(messages.Ping()) == Pong(0.0)
        waits["2"] = 4.0
        first.channel.send(encode(messages.Met({})))  # continues the work
        assert first.ask(messages.Ping()) == Pong(3.0)
        member.stuck.set()


class TestEnd:
    @pytest.mark.parametrize("last_words", [b"", b"\x04\x00", b"\x01\x00\x00\x00\xc1"])
    def test_of_rank_0_without_a_word_is_at_once(self, first, member, last_words):
        member.stuck.clear()
        first.channel.send(encode(messages.ReadAccelerators()))
        first.channel.socket.sendall(last_words)
        first.channel.socket.shutdown(socket.SHUT_RDWR)
        assert first.gone.wait(LONG)
        assert [str(lost) for lost in first.left] == ["rank 0 ended while joining"]
        member.stuck.set()
        first.thread.join()
        assert member.closed == 1

    def test_of_rank_0_that_has_said_who_it_is_is_named(self, first):
        first.channel.send(encode(messages.Admitted(rank(0))))
        first.channel.socket.shutdown(socket.SHUT_RDWR)
        assert first.gone.wait(LONG)
        (lost,) = first.left
        assert str(lost) == "rank 0 (box, process 100) ended while controlling the run"


class TestSilenceOfRank0:
    @pytest.fixture(autouse=True)
    def _short(self, monkeypatch):
        monkeypatch.setattr("linkgauge.engine.workers.messages.SIGN_SECONDS", SOON)

    def test_that_goes_on_when_it_is_asked_for_a_sign_ends_the_member_whatever_it_is_at(
        self, member
    ):
        with serving(Deadlines(limit=LONG)) as first:
            opened = messages.Open("fake", Settings((1,), timeout=SOON))
            assert isinstance(first.ask(opened), Done)
            member.stuck.clear()
            first.channel.send(encode(messages.ReadAccelerators()))
            assert first.hear() == messages.Ping()
            assert first.gone.wait(LONG)
            (lost,) = first.left
            assert lost.how == "gives no sign of life after 0.05 s"
            member.stuck.set()

    def test_that_a_sign_ends_does_not(self, monkeypatch):
        monkeypatch.setattr("linkgauge.engine.workers.messages.SIGN_SECONDS", LONG)
        with serving(Deadlines(limit=SOON)) as first:
            for _ in range(3):
                assert first.hear() == messages.Ping()
                first.channel.send(encode(Pong()))
            assert first.left == []
