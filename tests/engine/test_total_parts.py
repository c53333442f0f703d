"""No total is above the sum of its parts, whatever runs at the same time.

Random pairs and triples of transfers on every backend that needs no GPU. Trials are those of
tests/campaigns.yml.
"""

import os
import random
from contextlib import closing

import pytest

from campaigns import trials
from linkgauge.backends.sim.description import load
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.documents.result import PlannedCell
from linkgauge.model.notation import parse_transfers
from linkgauge.model.settings import Settings, Simulation
from linkgauge.model.transfer import Report
from repetition_kit import whole

NAME = "totals: no sample is above the sum of its parts"
ROUNDED = 1e-9
HOST = ("host:0 -> host:0 by cpu", "host:0 -> null by cpu", "null -> host:0/pageable by cpu")
OPENCL = (
    "host:0 -> opencl:0 by ce", "opencl:1 -> host:0 by ce", "opencl:0 -> opencl:0 by sm",
    "host:0 -> null by opencl:1.sm", "opencl:0 -> host:0 by sm",
)  # fmt: skip
STAGED = ("opencl:0 -> host:0/staging by ce & host:0/staging -> null by cpu",)
MACHINES = {"dgx-h200-8": 8, "pcie-tree-8": 8, "ring-8": 8, "riscv-2gpu": 2}
"""Simulated machines, and how many devices they have."""


def on_host(drawn):
    most = min(3, len(os.sched_getaffinity(0)))
    threads = drawn.choice(["", *(f"*{count}" for count in range(1, most + 1))])
    return f"{drawn.choice(HOST)}{threads}{size(drawn)}"


def size(drawn):
    return drawn.choice(("", "", " x2", " x5"))


def host(drawn):
    return None, [on_host(drawn) for _ in range(drawn.choice((2, 3)))]


def opencl(drawn):
    import opencl_kit  # noqa: F401  (skips where there is no OpenCL)

    if drawn.random() < 0.1:
        return None, [*STAGED]
    own = [f"{drawn.choice(OPENCL)}{size(drawn)}" for _ in range(drawn.choice((1, 2)))]
    return None, [*own, *(on_host(drawn) for _ in range(drawn.randint(len(own) == 1, 1)))]


def sim(drawn):
    name, devices = drawn.choice([*MACHINES.items()])
    fault = (f"slow sim:{drawn.randrange(devices)} rate=40%",) if drawn.random() < 0.5 else ()

    def one():
        ends = drawn.sample(["host:0", *(f"sim:{index}" for index in range(devices))], 2)
        arrow = drawn.choice(("->", "->", "<->"))
        kind = "sm" if arrow == "<->" else drawn.choice(("ce", "sm"))
        return f"{ends[0]} {arrow} {ends[1]} by {kind}{size(drawn)}"

    return Simulation(*load(name), fault), [one() for _ in range(drawn.choice((2, 3)))]


def result_of(draw, number):
    """The result of a drawn cell, as all of a command's cells are measured."""
    drawn = random.Random(f"{draw.__name__} {number}")
    simulation, transfers = draw(drawn)
    bytes_each = drawn.choice((4096, 100_003, 1 << 20, 8 << 20))
    settings = Settings(
        (bytes_each,), samples=drawn.choice((1, 4)), loops=drawn.choice((None, None, 1, 3, 67)),
        max_time=0.2, simulation=simulation,
    )  # fmt: skip
    report = drawn.choice((Report.TOTAL, Report.TOTAL, Report.TOTAL, Report.SPAN, Report.SUM))
    planned = PlannedCell("0", "0", parse_transfers(" & ".join(transfers)), report)
    with closing(LocalWorker(settings)) as worker:
        return whole(worker.measure([planned], bytes_each)[0])


@pytest.mark.parametrize("draw", [host, opencl, sim])
def test_no_sample_is_above_the_sum_of_its_parts(draw, holds):
    held = 0
    for number in range(trials(NAME)):
        result = result_of(draw, number)
        assert result.status == "pass", (number, str(result), result.reason)
        sums = [sum(own) for own in zip(*(part.samples for part in result.parts), strict=True)]
        assert len(sums) == len(result.samples) >= 1
        both = list(zip(result.samples, sums, strict=True))
        if result.definition in ("serial", "span"):
            held += all(own <= many * (1 + ROUNDED) for own, many in both)
        else:
            held += all(own == pytest.approx(many, rel=ROUNDED) for own, many in both)
    holds(NAME, held, trials(NAME), draw.__name__)
