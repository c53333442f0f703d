"""How far another rank's clock is ahead is known as well as its answers are fast."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkgauge.engine.ranks import clocks as module
from linkgauge.engine.ranks.clocks import EXCHANGES, FRESH, Clocks, compare
from linkgauge.engine.ranks.commands import ReadClock
from ranks_kit import rank


class Network:
    """Links to ranks whose clocks are ahead, over which questions and answers take their time;
    `now` is what rank 0's clock reads."""

    def __init__(self, ahead, delays=((1e-4, 1e-4),), hosts=("here", "there", "elsewhere")):
        self.now = 1000.0
        self.ahead = ahead
        self.delays = list(delays)
        self.asked = []
        self.ranks = {n: rank(n, host) for n, host in enumerate(hosts)}
        self.time = SimpleNamespace(monotonic=lambda: self.now)

    def one(self, number, command, kind):
        assert (command, kind) == (ReadClock(), float)
        there, back = self.delays[len(self.asked) % len(self.delays)]
        self.asked.append(number)
        self.now += there
        read = self.now + self.ahead[number]
        self.now += back
        return read


@pytest.fixture
def network(monkeypatch):
    def made(*arguments, **options):
        network = Network(*arguments, **options)
        monkeypatch.setattr(module, "time", network.time)
        return network

    return made


delay = st.floats(1e-6, 1.0)


@given(
    st.floats(-1e6, 1e6), st.lists(st.tuples(delay, delay), min_size=EXCHANGES, max_size=EXCHANGES)
)
def test_the_error_is_never_more_than_is_said(ahead, delays):
    with pytest.MonkeyPatch.context() as patch:
        network = Network({1: ahead}, delays)
        patch.setattr(module, "time", network.time)
        found = compare(network, 1)
    assert abs(found.ahead - ahead) <= found.unsure + 1e-9
    assert found.unsure == pytest.approx(min(map(sum, delays)) / 2, abs=1e-9)


class TestClocks:
    def test_of_two_ranks_on_another_machine_are_rank_0s_never(self, network):
        links = network({1: 5.0, 2: 5.0}, hosts=("here", "there", "there"))
        assert Clocks(links).ahead((1, 2)) == pytest.approx({1: 5.0, 2: 5.0})

    def test_are_compared_anew_when_they_may_have_drifted(self, network):
        links = network({1: 5.0})
        clocks = Clocks(links)
        clocks.ahead((1,))
        links.ahead[1] = 6.0
        links.now += FRESH / 2
        assert clocks.ahead((1,)) == pytest.approx({1: 5.0})
        assert len(links.asked) == EXCHANGES
        links.now += FRESH
        assert clocks.ahead((1,)) == pytest.approx({1: 6.0})
        assert len(links.asked) == 2 * EXCHANGES
