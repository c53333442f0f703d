"""Two slow measurements in a row are a degradation, two good ones end it; chance is neither."""

import random

import pytest
from msgspec.structs import replace

from configurations_kit import cell, result
from linkgauge.model.by_name import by_name
from linkgauge.model.documents.history import EarlierRun, Figure, SeriesId
from linkgauge.model.notation import parse_transfers
from linkgauge.rooms.watch.degradation import Degradation, WatchedCell
from linkgauge.rooms.watch.events import Degraded, Recovered

OF = SeriesId("host_to_device_memcpy_ce", "cuda", 64, "0", "1", 0, "cuda:1 -> cuda:0 by ce")
PASSED = by_name(Figure, OF, unit="B/s", better="higher", status="pass")
BETTER = {OF.table: "higher"}


def seen(*figures, verdict="not judged", status="pass", better="higher", **more):
    """A cell with a repetition of one sample for each figure."""
    found = replace(
        cell("0", "1", figures[0] if figures else 1.0),
        samples=figures, repetitions=((1,),) * len(figures), status=status, verdict=verdict, **more,
    )  # fmt: skip
    return WatchedCell(OF, found, replace(result(OF.benchmark, found), better=better))


def after(figures, follow=None, **more):
    """What is said of each measurement."""
    follow = follow or Degradation(0.1)
    events = [
        follow.observe(seen(figure, **more), float(number), "now")
        for number, figure in enumerate(figures)
    ]
    return [None if event is None else type(event) for event in events], follow


USUAL = [100.0] * 5
BY_CHANCE = random.Random(1)
SCATTERED = [100.0 * (1 + BY_CHANCE.gauss(0, 0.08)) for _ in range(300)]


@pytest.mark.parametrize(
    ("figures", "more", "said"),
    [
        ([*USUAL, 80.0, 80.0, 80.0, 100.0, 100.0], {}, {6: Degraded, 9: Recovered}),
        ([*USUAL, 80.0, 100.0, 80.0, 100.0], {}, {}),
        # A smaller loss than asked for, or than earlier figures scatter by, is none.
        ([*USUAL, *[91.0] * 5], {}, {}),
        ([*USUAL, *[91.0] * 5], {"follow": Degradation(0.05)}, {6: Degraded}),
        (SCATTERED, {}, {}),
        # Times are worse when they are longer.
        ([*[1.0] * 5, 1.3, 1.3], {"better": "lower"}, {6: Degraded}),
        ([*[1.0] * 5, 0.7, 0.7], {"better": "lower"}, {}),
        # What is low needs no history.
        ([50.0] * 3, {"verdict": "low"}, {1: Degraded}),
        # What was usual stays while it is degraded.
        ([*USUAL, *[60.0] * 200, 100.0, 100.0], {}, {6: Degraded, 206: Recovered}),
    ],
)
def test_two_in_a_row_begin_and_end_it(figures, more, said):
    events, follow = after(figures, **more)
    assert {n: event for n, event in enumerate(events) if event} == said
    assert bool(follow.whys()) == (Recovered not in said.values() and bool(said))


def test_both_repetitions_of_one_probe_count():
    _, follow = after(USUAL)
    event = follow.observe(seen(80.0, 81.0), 6.0, "now")
    assert (event.why, event.usual, event.earlier, event.unit) == ("history", 100.0, 5, "B/s")


@pytest.mark.parametrize("status", ["fail", "error", "timeout"])
def test_what_is_broken_counts_at_once_and_once(status):
    follow = Degradation(0.1)
    first = follow.observe(seen(status=status, reason="because"), 0.0, "now")
    assert (first.why, first.reason) == (status, "because")
    assert follow.observe(seen(status=status), 1.0, "now") is None
    assert follow.whys() == {status}


def earlier(*figures):
    """Runs with these figures, in the order of time."""
    return [EarlierRun(None, (replace(PASSED, figure=one),), None, {}) for one in figures[::-1]]


NOISE = [1 + 0.002 * (n % 3) for n in range(12)]
AT_100, AT_60 = [100.0 * one for one in NOISE], [60.0 * one for one in NOISE]


@pytest.mark.parametrize(
    ("history", "now"), [(AT_100, 80.0), ([*AT_100, *AT_60], 60.0), ([*AT_60, *AT_100], 70.0)]
)
def test_the_history_tells_what_is_usual_at_its_best(history, now):
    """One that ends worse does not make that usual."""
    follow = Degradation(0.1)
    follow.learn(earlier(*history), BETTER)
    event = follow.observe(seen(now, now), 0.0, "now")
    assert event.usual == pytest.approx(100.2, rel=0.01)


def probed(text, loss, seed, probes=8):
    """Whether a loss is reported within so many probes, at noise of 0.3 %, after as many."""
    dice, follow = random.Random(seed), Degradation()
    transfers = parse_transfers(text)
    events = [
        follow.observe(
            seen(100.0 * (1 - loss * (n >= probes)) * (1 + dice.gauss(0, 0.003)),
                 transfers=transfers), float(n), "now",
        )
        for n in range(2 * probes)
    ]  # fmt: skip
    return [n for n, event in enumerate(events) if event is not None]


BETWEEN, TO_HOST = "cuda:0 -> cuda:1 by ce", "cuda:0 -> host:0 by ce"


def test_five_percent_between_devices_are_found_within_eight_probes():
    assert all(probed(BETWEEN, 0.05, seed) for seed in range(50))
    assert not any(probed(BETWEEN, 0.0, seed, 100) for seed in range(50))


def test_where_healthy_figures_are_far_off_a_loss_is_larger():
    assert not any(probed(TO_HOST, 0.05, seed) for seed in range(20))
    assert all(probed(TO_HOST, 0.15, seed) for seed in range(20))
