"""A total counts what moves while all of its transfers run, however their batches lie."""

import itertools

import pytest

from fakes import FakeBackend
from linkgauge.backends.protocol import Timing
from linkgauge.engine.measuring.sampler import headline, rates
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings
from linkgauge.model.transfer import Cell, Report
from repetition_kit import whole, worker_with

SIZE = 4096


def measure(backend, settings, *texts):
    """The totals of these cells, measured at the same time."""
    worker = worker_with(settings)
    worker.measure_with(backend)
    cells = [
        PlannedCell("0", str(number), parse_transfers(text), Report.TOTAL, number=number)
        for number, text in enumerate(texts)
    ]
    return [whole(repetition, settings=settings) for repetition in worker.measure(cells, SIZE)]


def batches(start, *seconds):
    return tuple(itertools.accumulate(seconds, initial=start))


@pytest.mark.parametrize(
    ("progress", "rates"),
    [
        ((batches(0.0, *[2.0] * 4), batches(0.01, *[1.0] * 8)), (1 / 8, 1 / 8)),
        # One starts before the other, alone and fast at first, and ends after it.
        ((batches(0.0, 0.1, 0.1, 1.0, 1.0, 1.0), batches(0.2, 1.0, 1.0, 1.0)), (1 / 5, 1 / 3)),
        # A batch of the long one lasts as long as all of the short one.
        ((batches(0.0, 1.0, 1.0), batches(0.0, 10.0, 10.0)), (1 / 2, 1 / 20)),
        (((0.0, 2.0), (0.0, 4.0)), (1 / 2, 1 / 4)),
        # It waits for its CPU as the other one ends: of the batch that it is in, a half counts.
        ((batches(0.0, 1.0, 1.0, 1.0, 1.0), batches(0.0, 1.0, 6.0, 1.0)), (1 / 4, 1 / 8)),
        # The same at the start of the window, and a batch that is too short for the clock.
        ((batches(0.0, 4.0, 1.0, 0.0, 1.0), batches(2.0, 2.0, 2.0)), (1 / 4 * 3.5 / 4, 1 / 4)),
        # It stands still while the other one runs.
        ((batches(0.0, 1.0, 1.0, 1.0), batches(0.0, 4.0, 1.0, 1.0)), None),
        (((0.0, 1.0), (1.0, 2.0)), None),
        (((0.0, 1.0), (0.95, 1.95)), None),
    ],
)
def test_a_total_is_of_what_each_has_while_all_run_or_one_after_another(progress, rates):
    """Shares of all bytes of a copy a second."""
    backend = FakeBackend()
    prepare, span = backend.prepare, max(ends[-1] for ends in progress)

    def prepared(copies, operation="copy"):
        group = prepare(copies)
        seconds = tuple(ends[-1] - ends[0] for ends in progress)
        group.wait = lambda: Timing(seconds, span, (None, None), progress)
        return group

    backend.prepare = prepared
    settings = Settings((SIZE,), samples=3, loops=2)
    text = "fake:0 -> fake:1 by ce & fake:2 -> fake:3 by ce"
    (cell,) = measure(backend, settings, text)
    whole = 2 / span if rates is None else sum(rates)
    assert cell.definition == ("serial" if rates is None else "sustained")
    assert cell.summary.median == pytest.approx(2 * SIZE * whole)
    own = rates or [1 / (ends[-1] - ends[0]) for ends in progress]
    assert [part.summary.median / (2 * SIZE) for part in cell.parts] == pytest.approx(list(own))


def test_a_later_sample_without_a_common_window_counts_over_its_span():
    transfers = parse_transfers("host:0 -> null by cpu & null -> host:0 by cpu")
    cell = Cell("0", "0", transfers, Report.TOTAL)
    timing = Timing((1.0, 1.0), 2.0, (), ((0.0, 1.0), (1.0, 2.0)))
    assert rates([10, 20], timing, "sustained") == (5.0, 10.0)
    assert rates([10, 20], timing, "serial") == (10.0, 20.0)
    for definition in ("sustained", "serial", "span"):
        assert headline(cell, [10, 20], timing, 1, definition) == 15.0


def test_the_span_of_a_cell_beside_another_one_is_from_its_first_start_to_its_last_end():
    backend = FakeBackend()
    prepare = backend.prepare
    progress = ((0.0, 1.0), (1.0, 3.0), (0.0, 4.0), (0.0, 4.0))

    def prepared(copies, operation="copy"):
        group = prepare(copies)
        seconds = tuple(ends[-1] - ends[0] for ends in progress)
        group.wait = lambda: Timing(seconds, 4.0, (None,) * 4, progress)
        return group

    backend.prepare = prepared
    texts = (
        f"fake:{a} -> fake:{b} by ce & fake:{b} -> fake:{a} by ce" for a, b in ((0, 1), (2, 3))
    )
    one, other = measure(backend, Settings((SIZE,), samples=3, loops=3), *texts)
    assert (one.definition, other.definition) == ("serial", "sustained")
    assert one.summary.median == pytest.approx(3 * 2 * SIZE / 3.0)
    assert other.summary.median == pytest.approx(3 * 2 * SIZE / 4.0)
