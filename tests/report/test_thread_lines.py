"""The line below a matrix of work that each thread does by itself."""

import pytest

from linkgauge.model.counters import Counters, ThreadSteps, total
from linkgauge.model.notation import parse_transfer
from linkgauge.model.result import CellResult, Result
from linkgauge.model.transfer import Report
from linkgauge.report.thread_lines import thread_lines


def line(counters):
    cell = CellResult(
        "0", "2", (parse_transfer("null -> null by host:0.cpu*2"),), Report.RATE, "pass",
        counters=counters, operation="primes",
    )  # fmt: skip
    result = Result(
        benchmark="cpu_primes_all", title="", backend="host", size=0, unit="1/s", better="higher",
        status="pass", cells=(cell,),
    )  # fmt: skip
    return [text.plain for text in thread_lines(result)]


TWO = (ThreadSteps(0, 1100, 1.0), ThreadSteps(1, 900, 1.0))


@pytest.mark.parametrize(
    ("counters", "lines"),
    [
        (None, []),
        (Counters(seconds=2.0, page_faults=3), []),
        (Counters(threads=TWO[:1], involuntary=1), ["1 thread; 1 involuntary context switch"]),
        (
            Counters(seconds=2.0, threads=TWO, steal=0.01, involuntary=12),
            [
                (
                    "2 threads: 1000.00 events/s each, stddev 100.00 (10.00%); steal 0.50%; "
                    "12 involuntary context switches"
                )
            ],
        ),
        (
            Counters(seconds=2.0, threads=TWO[:1], cycles=5 * 10**9, instructions=6 * 10**9),
            ["1 thread; 2.50 GHz; 1.20 instructions a cycle"],
        ),
    ],
)
def test_it_says_how_alike_threads_were_and_what_disturbed_them(counters, lines):
    assert line(total([counters])) == lines
