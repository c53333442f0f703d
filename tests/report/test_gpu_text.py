"""What stands below products and the best of a few copies."""

import pytest

from linkgauge.model.inventory import Reading
from linkgauge.model.matmul import operations_of, size_of
from linkgauge.model.notation import parse_transfers
from linkgauge.model.result import CellResult, Result
from linkgauge.model.statistics import summarize
from linkgauge.model.transfer import Report
from linkgauge.report.console import make_console
from linkgauge.report.run_text import render_result

ORDER = 8192
READING = Reading(
    memory="cuda:0", count=40, clock_min=1.74e9, clock_max=1.98e9, temperature_max=61.0,
    power_max=698.4, throttled=("power cap",),
)  # fmt: skip


def product(device, milliseconds, *readings):
    rate = operations_of(ORDER) / (milliseconds * 1e-3)
    return CellResult(
        "FP32", str(device), parse_transfers(f"null -> null by cuda:{device}.sm"), Report.RATE,
        "pass", samples=(rate,) * 3, summary=summarize((rate,) * 3), readings=readings,
        operation="matmul-fp32",
    )  # fmt: skip


def result(name, *cells, **more):
    return Result(
        benchmark=name, title="t", backend="cuda", size=size_of(ORDER), better="higher",
        status="pass", cells=cells, sweep=True, **more,
    )  # fmt: skip


def lines(found):
    console = make_console()
    with console.capture() as captured:
        console.print(render_result(found))
    return captured.get().splitlines()


def test_a_product_has_its_time_and_the_state_of_its_device():
    other = Reading(memory="cuda:1", count=40, clock_min=1.98e9, clock_max=1.98e9, power_max=510.0)
    shown = lines(result("gpu_matmul", product(0, 21.5, READING), product(1, 22, other),
                         unit="FLOP/s"))  # fmt: skip
    assert shown[2:] == [
        "              0         1",
        "FP32      51.14     49.98",
        "time of a product (ms)",
        "              0         1",
        "FP32      21.50     22.00",
        "FP32 1740 to 1980 MHz, at most 698 W, at most 61 °C; throttled: power cap (cuda:0)",
        "",
    ]


def test_what_throttles_all_of_them_names_none():
    (*_, last, _) = lines(result("gpu_matmul", product(0, 21.5, READING), unit="FLOP/s"))
    assert last.endswith("; throttled: power cap")


@pytest.mark.parametrize("reading", [(), (Reading(memory="cuda:0", count=0),)])
def test_without_readings_nothing_is_said_of_the_device(reading):
    assert "time of a product (ms)" in lines(
        result("gpu_matmul", product(0, 20, *reading), unit="FLOP/s")
    )
    assert not any("MHz" in line for line in lines(
        result("gpu_matmul", product(0, 20, *reading), unit="FLOP/s")))  # fmt: skip


def test_the_best_is_the_figure_and_the_spread_stands_below():
    samples = tuple(gigabytes * 1e9 for gigabytes in (50.0, 55.0, 54.0, 53.0, 52.0))
    cell = CellResult(
        "H2D pinned", "0", parse_transfers("host:0 -> cuda:0 by ce"), Report.BEST, "pass",
        samples=samples, summary=summarize(samples), bytes=1 << 29,
    )  # fmt: skip
    assert cell.headline == 55e9
    shown = lines(result("gpu_bandwidth_best_of", cell, unit="B/s"))
    assert shown[2:-1] == [
        "                    0",
        "H2D pinned      55.00",
        "spread of the 5 (% of the best)",
        "                    0",
        "H2D pinned       9.09",
    ]
