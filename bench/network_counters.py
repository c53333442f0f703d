"""What it costs a cell that counters of networks are read before and after it.

    python bench/network_counters.py [ROUNDS]

Two ranks in threads of this process measure a cell by TCP over the loopback, in turns with and
without the readings. Prints the ratio of the times of each pair, and what the two readings take of
a cell's time: of processor time, which other programs do not change much."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from statistics import median

from turns import ratio, take_turns

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from linkgauge.engine.measuring.adapter_counters import AdapterCounters
from linkgauge.machine.interfaces import read_interfaces
from linkgauge.model.transfer import Cell, Report
from net_ranks import Pair, run

SAMPLES, SAMPLE_SECONDS = 20, 0.02
"""The samples of a cell, and the least seconds of each."""


def main(rounds: int) -> None:
    pair, counters = Pair(), AdapterCounters(0, ("a", "b"), read_interfaces())
    copy = pair.copy("host:0@0 -> host:0@1 by nic:0.tcp")
    cell = Cell("0", "1", (copy.transfer,), Report.FIRST)
    readings: list[float] = []

    def measured(*, with_counters: bool) -> float:
        began, cpu = time.monotonic(), time.process_time()
        if with_counters:
            counters.begin([cell])
            readings.append(time.process_time() - cpu)
        for _ in range(SAMPLES):
            ends = time.monotonic() + SAMPLE_SECONDS
            while time.monotonic() < ends:
                run(pair, [copy])
                while pair.made:
                    pair.made.pop().close()
        if with_counters:
            cpu = time.process_time()
            counters.end({})
            readings[-1] += time.process_time() - cpu
        return time.monotonic() - began

    taken = take_turns(
        {
            "with": lambda: measured(with_counters=True),
            "without": lambda: measured(with_counters=False),
        },
        rounds,
    )
    pair.close()
    print(f"time with the readings to time without: {ratio(taken['with'], taken['without'])}")
    share = median(readings) / median(taken["without"])
    print(f"two readings: {median(readings) * 1e3:.2f} ms of processor time, {share:.2%} of a cell")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
