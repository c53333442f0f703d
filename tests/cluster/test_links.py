"""Rank 0 hears all ranks at once, and says which one ended the run."""

import threading

import pytest

from linkgauge.engine.ranks.commands import Ping, Pong, ReadClock
from linkgauge.machine.processes.channel import Broke, encode
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
from linkgauge.model.ranks import LostRank, RankLost
from ranks_kit import GONE, LONG, SOON, Fake, done, linked, refused


@pytest.fixture(autouse=True)
def _short(monkeypatch):
    monkeypatch.setattr("linkgauge.engine.workers.messages.SIGN_SECONDS", SOON)


def says(value):
    return Fake(lambda command: done(value))


def silent(**more):
    return Fake(lambda command: None, **more)


def has_said(*replies):
    """Its replies are there before any question, however slow the machine is."""
    return silent(ready=replies)


class TestAnswers:
    def test_are_in_the_order_of_ranks_whoever_is_first(self):
        last = threading.Event()

        def slow(command):
            last.wait(LONG)
            return done(0.0)

        def fast(command):
            last.set()
            return done(2.0)

        with linked(Fake(slow), says(1.0), Fake(fast)) as links:
            assert list(links.ask((2, 0, 1), ReadClock(), float).items()) == [
                (0, 0.0), (1, 1.0), (2, 2.0)
            ]  # fmt: skip


def _framed(reply):
    message = encode(reply)
    return len(message).to_bytes(4, "little") + message


class TestRefusals:
    @pytest.mark.parametrize(
        ("kind", "error", "said"),
        [
            ("unsupported", Unsupported, "no"),
            ("size", Unsupported, "no"),
            ("imex", Unsupported, "no"),
            ("peer", NoPeerAccess, "no"),
            ("memory", AllocationError, "rank 1: no"),
            ("lost", DeviceLost, "rank 1: no"),
            ("timeout", TookTooLong, "rank 1: no"),
            ("set-aside", DeviceBusy, r"rank 1 \(box, process 101\): no"),
            ("interrupted", InputError, r"rank 1 \(box, process 101\): no"),
            ("call", BackendError, "rank 1: no"),
            ("wrong-bytes", BackendError, "rank 1: no"),
        ],
    )
    def test_are_raised_as_what_they_were(self, kind, error, said):
        with linked(says(0), Fake(lambda command: refused(kind))) as links:
            with pytest.raises(error, match=f"^{said}$") as caught:
                links.ask(links.all, ReadClock(), int)
            assert type(caught.value) is error
            assert links.lost is None


class TestLoss:
    """Whichever rank it is, and whatever the run is at, it is named."""

    def lost(self, links, asked=(0,)):
        links.doing = "measuring"
        with pytest.raises(RankLost) as caught:
            links.ask(asked, ReadClock(), int)
        assert links.lost is caught.value
        return caught.value

    def test_of_a_rank_that_is_asked(self):
        with linked(says(0), Fake(lambda command: GONE)) as links:
            ended = self.lost(links, (0, 1))
        assert ended.lost == LostRank(1, "ended", "measuring", "box", 101)
        assert ended.kind == "crash"
        assert str(ended) == "rank 1 (box, process 101) ended while measuring"

    def test_of_a_rank_that_was_not_asked(self):
        gone = says(2)
        with linked(silent(), says(1), gone) as links:
            gone.end()
            ended = self.lost(links)
        assert (ended.lost.number, ended.lost.how) == (2, "ended")

    def test_of_a_rank_that_cannot_be_asked(self):
        gone = says(1)
        with linked(says(0), gone) as links:
            gone.end()
            for _ in range(2):
                with pytest.raises(RankLost, match=r"rank 1 .* ended"):
                    links.ask((1,), ReadClock(), int)

    def test_of_a_rank_that_met_an_unexpected_error(self):
        with linked(says(0), Fake(lambda command: Broke("KeyError: 3"))) as links:
            ended = self.lost(links, (0, 1))
        assert (ended.lost.how, ended.kind) == ("failed (KeyError: 3)", "exit")

    @pytest.mark.parametrize(
        "sent", [_framed({"type": "Dance"}), b"\x01\x00\x00\x00\xc1", b"\x00\x00\x00\x00"]
    )
    def test_of_a_rank_that_sends_garbage(self, sent):
        with linked(says(0), Fake(lambda command: sent)) as links:
            ended = self.lost(links, (0, 1))
        assert (ended.lost.number, ended.kind) == (1, "call")
        assert ended.lost.how.startswith("sent an unreadable message (")


class TestSilence:
    def lost(self, *fakes, asked=(0, 1)):
        with linked(*fakes, limit=SOON) as links:
            links.doing = "measuring"
            with pytest.raises(RankLost) as caught:
                links.ask(asked, ReadClock(), int)
        assert caught.value.kind == "timeout"
        return caught.value.lost

    def test_without_a_sign_of_life_is_of_the_culprit(self):
        """Rank 0 waits for rank 1 as others do, and says so."""
        lost = self.lost(has_said(Pong()), silent(on_ping=()))
        assert (lost.number, lost.how) == (1, "gives no sign of life after 0.05 s")

    def test_of_living_ranks_is_of_the_first_of_them(self):
        alive = has_said(Pong()), has_said(Pong())
        lost = self.lost(has_said(done(0)), *alive, asked=(0, 1, 2))
        assert (lost.number, lost.how) == (1, "is stuck after 0.05 s")

    @pytest.mark.parametrize("starved", [1, 2])
    def test_does_not_count_while_a_rank_waits_for_a_cpu(self, monkeypatch, starved):
        """Whichever of the ranks it is: another one may wait for it."""
        monkeypatch.setattr("linkgauge.engine.workers.messages.SIGN_SECONDS", 0.5)
        ranks = [Starved(1.5 if number == starved else 0.0) for number in (1, 2)]
        with linked(says(0), *ranks, limit=SOON) as links:
            assert links.ask((1, 2), ReadClock(), int) == {1: 2, 2: 2}
            assert links.lost is None

    @pytest.mark.parametrize("signs", [(Pong(), done(1)), (done(1), Pong()), (done(1),)])
    def test_ends_with_an_answer_that_is_late(self, monkeypatch, signs):
        monkeypatch.setattr("linkgauge.engine.workers.messages.SIGN_SECONDS", LONG)
        with linked(says(0), silent(on_ping=signs), limit=SOON) as links:
            assert links.ask((0, 1), ReadClock(), int) == {0: 0, 1: 1}
            assert links.lost is None


class Starved(Fake):
    """A rank that gives a sign of life once, which says that it `waited` so long for a CPU, and
    then answers."""

    def __init__(self, waited):
        self.signs = [Pong(waited), done(2)]
        super().__init__(lambda command: None, on_ping=())

    def hears(self, command):
        if isinstance(command, Ping):
            self._reply(self.signs.pop(0))


class TestGoingOn:
    """Without a rank that is gone, where the others have no part in what it does."""

    def ask(self, links, ranks):
        links.goes_on = True
        links.doing = "measuring"
        return links.ask(ranks, ReadClock(), int)

    def test_only_questions_that_ask_it_fail(self):
        with linked(says(0), Fake(lambda command: GONE), says(2)) as links:
            for _ in range(2):
                with pytest.raises(RankLost, match=r"rank 1 .* ended while measuring"):
                    self.ask(links, (0, 1, 2))
            assert self.ask(links, (0, 2)) == {0: 0, 2: 2}
            assert (links.lost, links.is_over, links.all) == (None, False, (0, 2))
            assert links.there((0, 1, 2)) == {0, 2}

    def test_the_answers_of_the_others_are_heard_before(self):
        """Rank 2 answers only once rank 1 is gone: nothing is taken for the next answer."""
        gone = threading.Event()

        def late(command):
            gone.wait(LONG)
            return done(2)

        def ends(command):
            gone.set()
            return GONE

        with linked(says(0), Fake(ends), Fake(late)) as links:
            with pytest.raises(RankLost, match="rank 1 "):
                self.ask(links, (1, 2))
            gone.set()
            assert links.ask((2,), ReadClock(), int) == {2: 2}

    def test_one_that_gives_no_sign_of_life_is_gone(self):
        with linked(says(0), silent(on_ping=()), says(2), limit=SOON) as links:
            with pytest.raises(RankLost, match=r"rank 1 .* gives no sign of life") as caught:
                self.ask(links, (0, 1, 2))
            assert caught.value.kind == "timeout"
            assert self.ask(links, (0, 2)) == {0: 0, 2: 2}


class TestLeaving:
    @pytest.mark.parametrize("last_words", [(), (done(1), done(2)), (b"\x10\x00\x00\x00half",)])
    def test_who_does_not_end_is_not_waited_for(self, last_words):
        stays = has_said(*last_words)
        with linked(says(0), stays) as links:
            links.await_ends(SOON)
            links.await_ends(0.0)
