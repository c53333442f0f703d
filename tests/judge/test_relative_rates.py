"""Which of equal cells are slow: by more than chance, however many are compared."""

import random

import pytest
from msgspec.structs import replace

from doctor_kit import inventory, machine, measured
from linkgauge.judge.findings import Evidence
from linkgauge.judge.relative_rates import relative_rates
from linkgauge.model.statistics import summarize

BYTES = 1 << 32


def slow_of(figures, size=1 << 28):
    """How many of equal cells with these samples are slow."""
    result = measured()
    (cell,) = result.cells
    cells = tuple(
        replace(
            cell, column=str(number), samples=samples, summary=summarize(samples), bytes=BYTES,
            verdict="unknown",
        )
        for number, samples in enumerate(figures)
    )  # fmt: skip
    results = (replace(result, cells=cells, size=size),)
    return sum(rate.slow for rate in relative_rates(Evidence(machine(inventory()), None, results)))


def scattered(count, sigma, samples, draw):
    return [
        tuple(50e9 * draw.lognormvariate(0, sigma) for _ in range(samples)) for _ in range(count)
    ]


@pytest.mark.parametrize("samples", [3, 5, 9])
@pytest.mark.parametrize("sigma", [0.02, 0.05, 0.1])
def test_none_of_a_thousand_healthy_ones_is_slow(samples, sigma):
    draw = random.Random(f"{samples} {sigma} 2")
    assert slow_of(scattered(1000, sigma, samples, draw)) == 0


@pytest.mark.parametrize("count", [2, 8, 1000])
def test_one_that_lacks_a_quarter_is_slow_among_any_number(count):
    healthy = scattered(count, 0.01, 9, random.Random(count))
    lame = tuple(0.75 * sample for sample in healthy[0])
    assert slow_of([lame, *healthy[1:]]) == 1


def test_copies_that_take_no_longer_than_a_start_are_equal_at_one_size_only():
    """Their figures grow with the size, whatever links do."""
    result = measured()
    (cell,) = result.cells

    def of(size, seconds):
        own = replace(cell, bytes=size, samples=(size / seconds,) * 6, verdict="unknown",
                      summary=summarize((size / seconds,) * 6))  # fmt: skip
        return replace(result, cells=(own,), size=size)

    for seconds, slow in ((3e-6, 0), (3e-3, 1)):
        results = (of(1 << 28, seconds), of(1 << 29, seconds))
        rates = relative_rates(Evidence(machine(inventory()), None, results))
        assert sum(rate.slow for rate in rates) == slow
