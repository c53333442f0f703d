"""What a run says of other runs comes true: simulated runs whose variances are known."""

import math
import statistics

import pytest

from campaigns import FULL, trials
from linkgauge.benchmarks.catalog import select
from linkgauge.engine.controller import execute
from linkgauge.engine.kept.journal import Opened
from linkgauge.engine.plan import fabrics, lay_out, make_plan
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.model.settings import Settings, Simulation
from sim_kit import Silent

RIGHT = "ranges: another run's figure falls within"
MIXED = [("0.2%", "0.3%", "0.3%")]
OTHERS = [("0.5%", "0", "0"), ("0.1%", "0.5%", "0"), ("1%", "0.5%", "0.7%")]
MACHINE = """
source: a test
seed: {seed}
noise: {noise}
noise_buffers: {buffers}
noise_moments: {moments}
host: {{cpu_model: Example CPU, nodes: [{{cpus: 4, memory: 64G}}]}}
link_kinds:
  pcie5: {{kind: pcie, speed: 32, width: 16, latency: 300 ns}}
  mesh: {{kind: fabric, rate: 50 GB/s, latency: 400 ns}}
devices: [{{count: 2, model: Example Card, memory: 64G, memory_rate: 2 TB/s}}]
links:
  - {{kind: pcie5, each: sim:0..1, to: host:0}}
  - {{kind: mesh, mesh: sim:0..1}}
"""
NAMES = ("host_to_device_memcpy_ce", "device_to_device_memcpy_read_ce",
         "device_to_device_latency_sm", "device_local_copy")  # fmt: skip


def figures(**variances):
    """By cell: the figure and the interval of its run."""
    description = MACHINE.format(**variances)
    settings = Settings((64 << 20,), precision=0.02, max_time=1.0,
                        simulation=Simulation("test", description))  # fmt: skip
    worker = LocalWorker(settings)
    machine = worker.survey(("sim",))
    plan = make_plan(lay_out(select(NAMES, ()), fabrics(machine, ()), ()), machine, settings.sizes)
    opened = Opened(
        id="1", label="l", command=(), started="s", machine=machine, settings=settings, plan=plan
    )
    run = execute((opened,), worker, lambda record: None, Silent())
    return {
        (result.benchmark, cell.row, cell.column): cell.summary
        for result in run.results
        for cell in result.cells
    }


@pytest.mark.parametrize(("noise", "buffers", "moments"), MIXED + OTHERS * FULL)
def test_another_runs_figure_falls_within_as_often_as_the_interval_says(
    noise, buffers, moments, holds
):
    held = total = 0
    halves, medians = [], []
    exact = figures(seed=1, noise="0", buffers="0", moments="0")
    before = None
    for seed in range(trials(RIGHT)):
        found = figures(seed=seed, noise=noise, buffers=buffers, moments=moments)
        for name, summary in found.items():
            if before is not None:
                low, high = before[name].ci95
                held += low <= summary.median <= high
                total += 1
            low, high = summary.ci95
            halves.append((high - low) / 2 / exact[name].median)
            medians.append(summary.median / exact[name].median)
        before = found
    case = f"samples {noise}, buffers {buffers}, moments {moments}"
    holds(RIGHT, held, total, case)
    assert statistics.median(halves) <= 2.6 * math.sqrt(2) * statistics.stdev(medians)
