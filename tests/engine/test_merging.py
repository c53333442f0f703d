"""A cell from its repetitions: all samples, one figure, one interval, the worst of what
happened."""

import pytest
from msgspec.structs import replace

from linkgauge.engine.measuring.merging import merge, with_ranges
from linkgauge.model.documents.result import CellResult, TransferFigure
from linkgauge.model.notation import parse_transfers
from linkgauge.model.notes import NotRepeated
from linkgauge.model.recorded import RECORDED
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.stats.intervals import estimates
from linkgauge.model.transfer import Report
from repetition_kit import whole

SETTINGS = Settings((64,), precision=0.01, max_time=1.0)
FIXED = {"transfers": parse_transfers("fake:0 -> fake:1 by sm"), "report": Report.FIRST}


def repetition(*samples, status="pass", reason=None, gates=None, **more):
    gates = (tuple(gates) if gates else (1,) * len(samples),) if samples else ()
    return CellResult(
        "0", "1", status=status, reason=reason, samples=samples, repetitions=gates,
        **(FIXED | {"seconds": 0.06} | more),
    )  # fmt: skip


def merged(*repetitions, settings=SETTINGS):
    return whole(*repetitions, settings=settings)


def test_cpu_time_and_seconds_add_up_so_that_longer_repetitions_weigh_more():
    cell = merged(
        repetition(1.0, seconds=0.1, cpu_seconds=0.2), repetition(2.0, seconds=0.3, cpu_seconds=0.2)
    )
    assert (cell.seconds, cell.cpu_seconds) == pytest.approx((0.4, 0.4))
    assert cell.cpus == pytest.approx(1.0)


def test_the_interval_is_of_repetitions_and_says_so():
    cell = merged(repetition(1.0, 1.0), repetition(1.02, 1.02), repetition(0.98, 0.98))
    low, high = cell.summary.ci95
    assert low < 0.98 < 1.02 < high  # 4.3 standard deviations of the median of three
    interval = cell.interval
    assert (interval.basis, interval.coverage, interval.degrees, interval.pooled) == (
        "repetitions", 0.95, 2, 1,
    )  # fmt: skip


def test_samples_that_agree_within_each_repetition_do_not_make_it_narrow():
    few = merged(repetition(1.0), repetition(1.1), repetition(1.05))
    many = merged(*(repetition(*[figure] * 50, gates=[50]) for figure in (1.0, 1.1, 1.05)))
    assert many.summary.ci95 == pytest.approx(few.summary.ci95)


def test_one_repetition_says_nothing_of_another_run():
    cell = merged(repetition(*[1.0 + n / 100 for n in range(9)]))
    assert (cell.interval, cell.summary.ci95) == (None, None)
    assert cell.summary.median == 1.04


def test_wrong_bytes_in_any_repetition_fail_the_cell():
    bad = repetition(1.0, status="fail", reason="wrong at byte 7", verified=False)
    cell = merged(repetition(1.0, verified=True), bad)
    assert (cell.status, cell.reason, cell.verified) == ("fail", "wrong at byte 7", False)
    assert cell.samples == (1.0, 1.0)


def test_what_is_skipped_later_keeps_its_figures_and_says_why():
    cell = merged(repetition(1.0), repetition(status="skip", reason="set aside"))
    assert (cell.status, cell.samples) == ("pass", (1.0,))
    assert NotRepeated("set aside") in cell.notes


@pytest.mark.parametrize("order", [1, -1])
def test_alike_cells_share_the_samples_of_their_repetitions_but_not_what_happened(order):
    shared = repetition(1.0), repetition(1.1)
    cells = [(*shared, repetition(status="skip", reason="set aside")), shared, shared]
    skipped, *others = merge(cells[::order], SETTINGS)[::order]
    assert skipped.samples is others[0].samples is others[1].samples
    assert skipped.summary is not None
    assert others[0].summary is others[1].summary
    said = [NotRepeated("set aside") in one.notes for one in (skipped, *others)]
    assert said == [True, False, False]


def test_two_modes_are_reported_and_the_larger_is_the_headline():
    fast, slow = [396 + n / 10 for n in range(6)], [356 + n / 10 for n in range(3)]
    cell = merged(repetition(*fast[:3], *slow[:2]), repetition(*fast[3:], slow[2]))
    larger, smaller = cell.modes
    assert (larger.gates, smaller.gates) == (6, 3)
    assert cell.summary.median == larger.median == pytest.approx(396.25)
    assert smaller.median == pytest.approx(356.1)
    low, high = cell.summary.ci95
    assert low <= smaller.median < larger.median <= high  # another run may show either


def test_parts_have_intervals_of_their_own_repetitions():
    def both(one, other):
        parts = (TransferFigure(0, 64, (one,), None), TransferFigure(1, 64, (other,), None))
        return repetition(one + other, parts=parts)

    simulated = replace(SETTINGS, simulation=Simulation("x", ""))
    cell = merged(both(1.0, 2.0), both(1.01, 2.0), both(0.99, 2.0), settings=simulated)
    first, second = cell.parts
    assert first.samples == (1.0, 1.01, 0.99)
    assert first.summary.ci95[0] < 0.99
    assert second.summary.ci95 == pytest.approx((2.0, 2.0))


def test_of_what_is_hidden_more_is_better_and_of_its_times_less():
    transfers = parse_transfers("null -> null by fake:0.sm & host:0 -> fake:0 by ce")
    shares, times = tuple(0.5 + n / 100 for n in range(11)), tuple(1.0 + n for n in range(11))
    cell = CellResult(
        "H2D", "0", transfers, Report.HIDDEN, "pass", samples=shares, repetitions=((1,) * 11,),
        parts=(TransferFigure(0, 0, times, None), TransferFigure(1, 64, times, None)),
    )  # fmt: skip
    found = merged(cell, settings=Settings((64,), samples=11))
    assert found.summary.slow_p95 < found.summary.median
    assert all(part.summary.slow_p95 > part.summary.median for part in found.parts)


@pytest.mark.parametrize(
    ("text", "report", "operation", "kind"),
    [
        ("cuda:0 -> cuda:0 by ce", Report.FIRST, "copy", "within a device"),
        ("cuda:0 -> cuda:1 by sm", Report.FIRST, "copy", "between devices"),
        ("host:0 -> host:0 by cpu*1", Report.FIRST, "copy", "host memory"),
        ("host:0 -> host:0 by cpu", Report.FIRST, "copy", "host memory by several threads"),
        ("host:0 -> host:0 by cpu*1", Report.LATENCY, "chase", "thread latency"),
        ("host:0 -> opencl:0 by ce", Report.FIRST, "copy", "host and device"),
        ("host:0 -> null by cuda:0.sm", Report.LATENCY, "chase", "latency"),
        ("host:0 -> cuda:0 by ce", Report.LATENCY, "timed-copy", "host latency"),
        ("null -> null by cuda:0.sm", Report.RATE, "matmul-fp32", "products"),
        ("cuda:0 -> cuda:1 by ce & host:0 -> host:0 by cpu", Report.TOTAL, "copy",
         "host and device"),
    ],
)  # fmt: skip
def test_what_only_a_new_process_changes_is_that_of_the_kind_of_path(text, report, operation, kind):
    def of(figure):
        return replace(repetition(figure), transfers=parse_transfers(text), report=report,
                       operation=operation)  # fmt: skip

    samples = [[1.0], [1.2], [0.8], [1.0], [1.2], [0.8], [1.0], [1.0]]
    found = merged(*(of(one) for (one,) in samples))
    (expected,) = estimates([samples], RECORDED[kind])
    assert found.summary.ci95 == expected.interval(1.0)
    assert found.interval.coverage == 0.95
    simulated = replace(SETTINGS, simulation=Simulation("x", ""))
    assert merged(*(of(1.0) for _ in range(8)), settings=simulated).summary.ci95 == (1.0, 1.0)


@pytest.mark.parametrize("report", [Report.FIRST, Report.BEST])
@pytest.mark.parametrize("text", ["host:0 -> cuda:0 by ce", "host:0 -> host:0 by cpu"])
def test_a_kept_cell_is_read_with_the_range_that_its_run_stated(text, report):
    """Also if the cell fixes its number of samples, and only a doubtful one was repeated."""
    of = {"report": report, "transfers": parse_transfers(text)}
    again = [repetition(1.0, 1.01, **of), repetition(1.02, 1.0, **of)]
    cells = [[repetition(1.0, 1.1, **of)], again, [repetition(1.1, 1.0, **of)]]
    found = merge(cells, SETTINGS)
    assert with_ranges(found, SETTINGS) == found
