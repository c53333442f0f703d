"""Two slow measurements in a row are a degradation, two good ones end it; chance is neither."""

import random

import pytest
from msgspec.structs import replace

from configurations_kit import cell, result
from linkgauge.judge.degradation import Degradation, Seen
from linkgauge.model.history import CellOf, EarlierRun, Figure
from linkgauge.model.watch import Degraded, Recovered

OF = CellOf("host_to_device_memcpy_ce", "cuda", 64, "0", "1", "cuda:1 -> cuda:0 by ce")
BETTER = {OF.sheet: "higher"}


def seen(*figures, verdict="unknown", status="pass", better="higher", **more):
    """A cell with a visit of one sample for each figure."""
    found = replace(
        cell("0", "1", figures[0] if figures else 1.0),
        samples=figures, visits=((1,),) * len(figures), status=status, verdict=verdict, **more,
    )  # fmt: skip
    return Seen(OF, found, replace(result(OF.benchmark, found), better=better))


def after(figures, follow=None, **more):
    """What is said of each measurement."""
    follow = follow or Degradation(0.1)
    events = [
        follow.observe(seen(figure, **more), float(number), "now")
        for number, figure in enumerate(figures)
    ]
    return [None if event is None else type(event) for event in events], follow


def test_two_in_a_row():
    events, follow = after([100.0] * 5 + [80.0, 80.0, 80.0, 100.0, 100.0])
    assert events == [*[None] * 6, Degraded, None, None, Recovered]
    assert follow.degraded() == ()


def test_one_is_none():
    events, _ = after([100.0] * 5 + [80.0, 100.0, 80.0, 100.0])
    assert set(events) == {None}


def test_both_visits_of_one_probe_count():
    _, follow = after([100.0] * 5)
    event = follow.observe(seen(80.0, 81.0), 6.0, "now")
    assert isinstance(event, Degraded)
    assert (event.why, event.usual, event.earlier, event.unit) == ("history", 100.0, 5, "B/s")


def test_a_smaller_loss_than_asked_for_is_none():
    assert set(after([100.0] * 5 + [91.0] * 5)[0]) == {None}
    assert Degraded in after([100.0] * 5 + [91.0] * 5, Degradation(0.05))[0]


def test_a_loss_within_what_earlier_figures_scatter_by_is_none():
    draw = random.Random(1)
    figures = [100.0 * (1 + draw.gauss(0, 0.08)) for _ in range(300)]
    assert set(after(figures)[0]) == {None}


def test_times_are_worse_when_they_are_longer():
    assert Degraded in after([1.0] * 5 + [1.3] * 2, better="lower")[0]
    assert set(after([1.0] * 5 + [0.7] * 2, better="lower")[0]) == {None}


def test_what_is_low_needs_no_history():
    events, follow = after([50.0, 50.0, 50.0], verdict="low")
    assert events == [None, Degraded, None]
    assert follow.whys() == {"expected"}


@pytest.mark.parametrize("status", ["fail", "error", "timeout"])
def test_what_is_broken_counts_at_once_and_once(status):
    follow = Degradation(0.1)
    first = follow.observe(seen(status=status, reason="because"), 0.0, "now")
    assert (first.why, first.reason) == (status, "because")
    assert follow.observe(seen(status=status), 1.0, "now") is None
    assert follow.whys() == {status}


def test_suspects_are_measured_once_more():
    _, follow = after([100.0] * 5)
    slow, good = seen(80.0), seen(99.0)
    assert list(follow.suspects([slow, good])) == [slow]
    assert list(follow.suspects([seen(80.0, 100.0)])) == [], "the last visit was well"


def earlier(*figures):
    """Runs with these figures, in the order of time."""
    return [
        EarlierRun(None, {OF: Figure("B/s", "higher", "pass", figure=one)}, None, {})
        for one in figures[::-1]
    ]


def test_the_history_tells_what_is_usual():
    follow = Degradation(0.1)
    follow.learn(earlier(*[100.0, 100.5, 99.5] * 3), BETTER)
    assert isinstance(follow.observe(seen(80.0, 80.0), 0.0, "now"), Degraded)


def test_a_history_that_ends_worse_does_not_make_that_usual():
    noise = [1 + 0.002 * (n % 3) for n in range(12)]
    worse = [*(100.0 * one for one in noise), *(60.0 * one for one in noise)]
    follow = Degradation(0.1)
    follow.learn(earlier(*worse), BETTER)
    event = follow.observe(seen(60.0, 60.0), 0.0, "now")
    assert event.usual == pytest.approx(100.2, rel=0.01)


def test_a_history_that_ends_better_makes_that_usual():
    noise = [1 + 0.002 * (n % 3) for n in range(12)]
    better = [*(60.0 * one for one in noise), *(100.0 * one for one in noise)]
    follow = Degradation(0.1)
    follow.learn(earlier(*better), BETTER)
    assert follow.observe(seen(70.0, 70.0), 0.0, "now").usual == pytest.approx(100.2, rel=0.01)


def test_what_was_usual_stays_while_it_is_degraded():
    events, _ = after([100.0] * 5 + [60.0] * 200 + [100.0] * 2)
    assert events.count(Degraded) == events.count(Recovered) == 1
    assert events[-1] is Recovered
