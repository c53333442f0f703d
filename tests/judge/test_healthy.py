"""The bounds of verdicts on collectives come from figures of healthy machines, whose list, bounds
and page agree."""

from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

import pytest
import yaml

from command_kit import called
from judge_kit import run_of
from linkgauge.backends.sim.description import load
from linkgauge.engine.workers.worker import LocalWorker
from linkgauge.judge.expected.across import Carried, across
from linkgauge.judge.expected.dram import Ceilings
from linkgauge.judge.expected.exchange_rates import SWITCHED_OFF, ExchangeRates
from linkgauge.judge.expected.healthy import bounds_of, rows, table
from linkgauge.judge.expected.routes import Paths
from linkgauge.judge.verdict import judge
from linkgauge.model.operations.collective import Collective, has_root, reduces
from linkgauge.model.settings import Settings, Simulation

ROWS = rows()
ROOT = Path(__file__).parents[2]


def bound_of(row):
    """What one of a row's machines should reach, and how many devices it has."""
    simulation = Simulation(*load(row.machine))
    machine = LocalWorker(Settings((1,), simulation=simulation)).survey(["sim"])
    work = Collective(
        row.operation, reduction="sum" if reduces(row.operation) else None,
        root=0 if has_root(row.operation) else None,
    )  # fmt: skip
    notes = () if row.algorithm == "nvls" or row.hosts > 1 else (SWITCHED_OFF,)
    devices = tuple(device.memory for device in machine.all_devices)
    return ExchangeRates(Paths(machine, Ceilings()), work, notes).bound(devices), len(devices)


def limits_of(row, algorithm):
    """What several hosts should reach, if the log tells this algorithm."""
    bound, devices = bound_of(row)
    number, speed = map(int, row.adapters.removesuffix("G").split(" x "))
    carried = Carried(number * speed * 1e9 / 8, "")
    return across(bound, Collective(row.operation), row.hosts, devices, carried, algorithm)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.machine} {row.operation} {row.source}")
def test_the_expected_figure_beside_each_row_is_todays(row):
    bound, devices = bound_of(row)
    assert devices * row.hosts == row.ranks
    if row.hosts > 1:
        bound = limits_of(row, "nvlstree" if row.algorithm == "nvls" else "ring").bound
    assert bound.achievable / 1e9 == pytest.approx(row.expected, rel=1e-3)


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row.hosts > 1], ids=lambda row: f"{row.hosts} {row.source}"
)
def test_published_figures_of_several_hosts_are_ok_and_half_of_them_is_low(row):
    """Where no word names the algorithm of two hosts, a figure is ok from what rings reach: so half
    of two figures by trees, whose network carries little more than rings need, is not low."""
    best, share = max(row.reached.values()) * 1e9, max(row.shares)  # once the call has started
    rings = row.algorithm == "ring"
    told = limits_of(row, "ring" if rings else "nvlstree")
    untold = limits_of(row, "")
    for limits in (told, untold):
        assert share >= limits.bounds.perhaps * (1 - 1e-9)
    assert best / 2 < told.bounds.low * told.bound.achievable
    is_low = best / 2 < untold.bounds.low * untold.bound.achievable
    assert is_low or (not rings and row.adapters in ("8 x 200G", "8 x 100G"))


def test_published_runs_of_several_hosts_reach_what_is_expected():
    """Within 8 % for four of five, and each other one has a reason."""
    several = [row for row in ROWS if row.hosts > 1]
    assert len(several) >= 15
    assert all(2 <= row.hosts <= 20 for row in several)
    far = [row for row in several if abs(max(row.reached.values()) / row.expected - 1) > 0.08]
    assert len(far) <= len(several) / 5
    assert all(bool(row.why) == (row in far) for row in several)


def test_no_healthy_figure_is_low_and_few_are_perhaps_low():
    shares = [(share, bounds_of(*row.kind[:2], row.ranks)) for row in ROWS for share in row.shares]
    assert len(shares) > 50
    assert not [share for share, bounds in shares if share < bounds.low]
    assert sum(share < bounds.perhaps for share, bounds in shares) / len(shares) < 0.05
    assert all(bounds.low < bounds.perhaps < 1 for bounds in table().values())


def test_the_bounds_are_those_that_operators_ask_for():
    asked = [row for row in ROWS if row.asked is not None]
    assert {row.machine for row in asked} == {"8 x H100 SXM", "8 x H200", "8 x MI300X"}
    for row in asked:
        low = bounds_of(*row.kind[:2], row.ranks).low * row.expected
        assert low == pytest.approx(row.asked, rel=0.08), row.machine


def test_the_page_has_the_bounds():
    loader = SourceFileLoader("bounds", str(ROOT / "tools" / "bounds"))
    tool = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(tool)
    for path in tool.PAGES:
        page = path.read_text("utf-8")
        assert tool.renewed(page) == page, "make screens renews it"


DGX = load("dgx-h200-8")[1]
RINGS = {name: value for name, value in yaml.safe_load(DGX).items() if name != "collectives"}


def largest(*, text=DGX, faults=(), benchmarks=("all_reduce",)):
    """The verdict on an all_reduce of 512 MiB."""
    results = judge(run_of("eight", text, *benchmarks, faults=faults)).results
    return next(cell for one in results for cell in one.cells if "512 MiB" in cell.column).verdict


@pytest.mark.parametrize(
    ("rate", "word"),
    [("38%", "low"), ("50%", "low"), ("63%", "low"), ("90.5%", "ok"), ("100%", "ok")],
)
def test_an_all_reduce_of_eight_h200s(rate, word):
    """At 184, 242, 305, 437 and 482 GB/s."""
    faults = () if rate == "100%" else (f"slow sim:3 rate={rate}",)
    assert largest(faults=faults) == word


def test_as_without_nvls_is_perhaps_low_unless_a_link_is_the_reason():
    """360 GB/s: rings, or a slow link below reductions in the switch."""
    pairs = ("device_to_device_memcpy_read_sm", "device_to_device_memcpy_write_sm")
    assert largest(text=yaml.safe_dump(RINGS)) == "perhaps low"
    assert largest(text=yaml.safe_dump(RINGS), benchmarks=("all_reduce", *pairs)) == "perhaps low"
    slow = ("slow sim:3 rate=75%",)
    assert largest(faults=slow) == "perhaps low"  # nothing else was measured
    assert largest(faults=slow, benchmarks=("all_reduce", *pairs)) == "low"


LOG = """# Collective test starting: all_reduce_perf
# Using devices
{ranks}
#                                                              out-of-place                       in-place
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)
{rows}
"""  # noqa: E501


def log_of(rate):
    ranks = "\n".join(
        f"#  Rank  {n} Group  0 Pid 100 on n1 device  {n} [0x1{n}] NVIDIA H200" for n in range(8)
    )
    sizes = [1 << power for power in range(29, 34)]
    lines = []
    for size in sizes:
        side = f"{1.75 * size / rate / 1e3:.1f}  {rate / 1.75:.2f}  {rate:.2f}      0"
        lines.append(f"{size:12d} {size // 4:12d}     float     sum      -1  {side}  {side}")
    return LOG.format(ranks=ranks, rows="\n".join(lines))


@pytest.mark.parametrize(
    ("rate", "word", "code"),
    [(180, "low", 1), (300, "low", 1), (360, "perhaps low", 0), (430, "perhaps low", 0),
     (476, "ok", 0)],
)  # fmt: skip
def test_a_log_without_a_word_of_nvls(rate, word, code, tmp_path):
    (tmp_path / "log.txt").write_text(log_of(rate))
    done = called("judge", "log.txt", cwd=tmp_path)
    assert done.returncode == code, done.stdout
    assert f"8 GiB  {word}\n" in done.stdout
