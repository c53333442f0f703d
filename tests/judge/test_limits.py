"""Limits are read without evaluating anything; a cell beyond one fails and says which."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from command_kit import called
from fakes import device, machine
from linkgauge.judge.limit_bounds import StatisticLimit, parse_bound
from linkgauge.judge.limits import read_limits
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.errors import InputError, NotationError
from linkgauge.model.hardware.inventory import Accelerator, Inventory
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.collective import Collective
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from linkgauge.model.units import UNITS
from linkgauge.report.files import write_run


def run_of(figure, *, name="host_to_device_memcpy_ce", unit="B/s",
           transfers="host:0 -> x:0 by ce", **more):  # fmt: skip
    samples = more.pop("samples", [figure * factor for factor in (0.8, 0.9, 1, 1, 1.1, 1.2)])
    better, size = more.pop("better", "higher"), more.pop("size", 1 << 20)
    accelerator = Accelerator(memory="x:0", model="Fake Card X1", memory_rate=4e12)
    here = replace(machine([device(0, "x")]), inventory=Inventory(accelerators=(accelerator,)))
    cell = CellResult("0", "0", parse_transfers(transfers), Report.FIRST,
                      more.pop("status", "pass"), bytes=size, samples=tuple(samples),
                      summary=summarize(samples, better), **more)  # fmt: skip
    result = Result(benchmark=name, title="", backend="x", size=size, unit=unit,
                    better=better, status=cell.status, cells=(cell,))  # fmt: skip
    return Run(id="1", label="l", command=(), started="s", finished="f",
               machine=here, settings=Settings((1 << 20,)),
               results=(result,))  # fmt: skip


def shown(run, text):
    """`linkgauge show --limits`, of a run that was kept."""
    with TemporaryDirectory() as folder:
        write_run(Path(folder), run)
        (Path(folder) / "limits.yml").write_text(text, "utf-8")
        return called("show", "run.json", "--limits", "limits.yml", "--json", cwd=Path(folder))


def read(text):
    """The limits of a file with this text."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "limits.yml"
        path.write_text(text, "utf-8")
        return read_limits(path)


def limited(run, *limits):
    """The result, as it is shown with these limits."""
    text = "limits:\n" + "".join(f"- {{{limit}}}\n" for limit in limits)
    done = shown(run, text)
    assert done.stdout, done.stderr
    (result,) = json.loads(done.stdout)["results"]
    return result


@pytest.mark.parametrize(
    ("text", "bound"),
    [
        ("≥ 50 GB/s", StatisticLimit("median", True, 50e9, "B/s")),
        (">=50GB/s", StatisticLimit("median", True, 50e9, "B/s")),
        ("p99 <= 25 us", StatisticLimit("p99", False, 25e-6, "s")),
        ("p99 ≤ 25 µs", StatisticLimit("p99", False, 25e-6, "s")),
        ("min ≥ 1.5e3 MB/s", StatisticLimit("min", True, 1.5e9, "B/s")),
        ("≥ 45 TFLOP/s", StatisticLimit("median", True, 45e12, "FLOP/s")),
        ("≥ 0.9 × achievable", StatisticLimit("median", True, 0.9, of="achievable")),
        (">= 90% of theoretical", StatisticLimit("median", True, 0.9, of="theoretical")),
        ("slow_p95 >= 33 GB/s", StatisticLimit("slow_p95", True, 33e9, "B/s")),
        ("max ≤ 1 x theoretical", StatisticLimit("max", False, 1.0, of="theoretical")),
        ("p50 >= 50 % * achievable", StatisticLimit("p50", True, 0.5, of="achievable")),
    ],
)  # fmt: skip
def test_bounds(text, bound):
    found = parse_bound(text)
    assert replace(found, value=pytest.approx(bound.value)) == bound


@pytest.mark.parametrize(
    ("text", "at", "problem"),
    [
        ("", 0, "expected '≥'"), ("50 GB/s", 0, "expected '≥'"),
        ("p98 ≥ 50 GB/s", 0, "expected '≥'"), ("≥ fast", 2, "expected a number"),
        ("≥ -1 GB/s", 2, "expected a number"), ("≥ 50", 4, "expected a unit"),
        ("≥ 50 GiB/s", 5, "expected a unit"), ("≥ 50 GB/s now", 10, "expected the end"),
        ("≥ 0.9 ×", 7, "expected an expected figure"),
        ("≥ 0.9 × possible", 8, "expected an expected figure"),
        ("≥ 90% achievable", 6, "expected '×' or 'of'"),
        ("≥ __import__('os')", 2, "expected a number"),
    ],
)  # fmt: skip
def test_a_wrong_bound_is_pointed_at(text, at, problem):
    with pytest.raises(NotationError) as caught:
        parse_bound(text)
    assert caught.value.position == at
    assert caught.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "limits.yml: expected a list of limits below 'limits:'"),
        ("[1, 2]", "below 'limits:'"),
        ("bounds: []", "below 'limits:'"),
        ("limits: 3", "limits.yml line 1: expected a list of limits"),
        (
            "limits:\n- ≥ 50 GB/s",
            "limits.yml line 2: a limit has the fields device, benchmark, limit",
        ),
        ("limits:\n- {model: X, limit: ≥ 1 GB/s}", "line 2: unknown field 'model': the fields are"),
        ("limits:\n- ? [a, b]\n  : 1", "line 2: a field name must be one of device"),
        ("limits:\n- {device: X}", "line 2: missing limit"),
        ("limits:\n- {limit: [1]}", "line 2: limit must be a string"),
        ("limits:\n- {limit: ≥ 1 GB/s, limit: ≥ 2 GB/s}", "line 2: limit appears twice"),
        ("limits:\n- limit: ≥ 1 GB/s\n- limit: ≥ 1", "limits.yml line 3: expected a unit"),
        ("limits: [", "limits.yml line 1: not YAML"),
        ("limits: !!python/name:os.system", "limits.yml line 1: expected a list"),
        ("a: \x00", "limits.yml: not YAML"),
        ("limits: " + "[" * 1000, "not YAML"),
    ],
)
def test_a_wrong_file_is_told_with_its_line(text, message):
    with pytest.raises(InputError) as caught:
        read(text)
    assert message in str(caught.value)


@given(st.text(max_size=60))
@example("≥ 1e99 TB/s")
def test_any_text_is_a_bound_or_a_notation_error(text):
    try:
        assert parse_bound(text).value >= 0
    except NotationError as error:
        assert 0 <= error.position <= len(text)


@given(st.text(max_size=80) | st.text(alphabet="limts:-{}[], \n≥0GB/&*!", max_size=80))
def test_any_file_is_limits_or_an_input_error(text):
    for document in (text, f"limits:\n- {text}"):
        try:
            read(document)
        except InputError:
            continue


KNOWN = run_of(1.45e12, name="device_local_copy", transfers="x:0 -> x:0 by ce", size=1 << 30)
"""Of 2 TB/s, of which 1.8 TB/s can be reached."""
PRODUCT = run_of(40e12, name="gpu_matmul", unit="FLOP/s")
SLOW = run_of(30e-6, name="host_device_latency_sm", unit="s", better="lower")
STALLING = [52e9] * 18 + [33e9] * 2
STALLED = run_of(1e-6, unit="s", better="lower", samples=[1e-6] * 18 + [9e-6] * 2)


def old(run):
    """Files of old versions lack percentiles of the slow side: they are those of the samples."""
    (result,) = run.results
    (cell,) = result.cells
    cell = replace(cell, summary=replace(cell.summary, slow_p95=None, slow_p99=None))
    return replace(run, results=(replace(result, cells=(cell,)),))


@pytest.mark.parametrize(
    ("run", "limit", "status"),
    [
        *((run_of(50e9), f"{statistic} ≥ 45 GB/s", status)
          for statistic, status in (("min", "fail"), ("max", "pass"), ("p50", "pass"),
                                    ("p95", "fail"), ("mean", "pass"))),
        (PRODUCT, "≥ 39 TFLOP/s", "pass"),
        (PRODUCT, "≥ 41 TFLOP/s", "fail"),
        (SLOW, "p99 <= 25 us", "fail"), (SLOW, "≤ 31 us", "pass"),
        (KNOWN, "≥ 0.7 × achievable", "pass"), (KNOWN, "≥ 90% of achievable", "fail"),
        (KNOWN, "≥ 0.7 × theoretical", "pass"), (KNOWN, "≥ 0.8 × theoretical", "fail"),
        # A percentile is of the slow side.
        *((kind(run_of(50e9, samples=STALLING)), f"{statistic} ≥ {least} GB/s", status)
          for statistic in ("p95", "p99", "slow_p95", "slow_p99")
          for least, status in ((30, "pass"), (50, "fail")) for kind in (old, lambda run: run)),
        (STALLED, "p99 ≤ 5 us", "fail"), (STALLED, "p99 ≤ 10 us", "pass"),
        # What did not pass keeps its reason.
        (run_of(1e9, status="error", reason="lost"), "≥ 50 GB/s", "error"),
    ],
)  # fmt: skip
def test_what_is_limited(run, limit, status):
    result = limited(run, f"limit: {limit}")
    assert result["status"] == result["cells"][0]["status"] == status
    assert status == "fail" or result["cells"][0]["reason"] == run.results[0].cells[0].reason


def test_a_share_of_what_nobody_knows_is_a_warning():
    result = limited(run_of(45e9), "limit: ≥ 0.9 × achievable")
    assert result["status"] == "pass"
    (warning,) = result["cells"][0]["warnings"]
    assert all(word in warning for word in ("≥ 0.9 × achievable", "limits.yml line 2"))


@pytest.mark.parametrize(("limit", "said"), [
    ("benchmark: hots_to_device_memcpy_ce, limit: ≥ 50 GB/s",
     "no benchmark matches 'hots_to_device_memcpy_ce': did you mean host_to_device_memcpy_ce?"),
    ("benchmark: hots_to_*, limit: ≥ 50 GB/s", "no benchmark matches 'hots_to_*': "),
    ("benchmark: all_reduce, limit: ≥ 460 GB/s",
     "this run does not measure all_reduce: limit only what it measures"),
    ("benchmark: host_*, limit: ≤ 5 us",
     "≤ 5 us does not fit host_to_device_memcpy_ce, measured in GB/s"),
    ("device: Fake Card X2, limit: ≥ 5 GB/s",
     "no device matches 'Fake Card X2': did you mean Fake Card X1?"),
])  # fmt: skip
def test_a_limit_that_fits_nothing_is_refused_with_what_comes_nearest(limit, said):
    done = shown(run_of(1e9), f"limits: [{{{limit}}}]")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"limits.yml line 1: {said}" in done.stderr


@pytest.mark.parametrize(
    ("limit", "fits"),
    [
        ("device: Fake*", True), ("benchmark: host_*_ce", True), ("device: Other*", False),
        ("benchmark: device_*", False), ("device: Test CPU", False),
    ],
)  # fmt: skip
def test_only_what_fits_is_limited(limit, fits):
    """A file may have limits of other models as long as any fits."""
    run, text = run_of(1e9), f"{limit}, limit: ≥ 50 GB/s"
    alone = shown(run, f"limits: [{{{text}}}]")
    assert alone.returncode == (1 if fits else 2)
    if limit.startswith("device"):
        some = shown(run, f"limits: [{{{text}}}, {{device: Fake*, limit: ≥ 1 GB/s}}]")
        assert some.returncode == fits


UNIT_LIMITS = [
    ("B/s", "higher", "≥ 2 GB/s"), ("B/s (STREAM)", "higher", "≥ 2 GB/s"),
    ("s", "lower", "≤ 500 ms"), ("s (collective)", "lower", "≤ 500 ms"),
    ("s (step)", "lower", "≤ 500 ms"), ("1/s", "higher", "≥ 2e9 events/s"),
    ("FLOP/s", "higher", "≥ 2 GFLOP/s"), ("1 (hidden)", "higher", "≥ 200 %"),
    ("tokens/s", "higher", "≥ 2e9 tokens/s"), ("requests/s", "higher", "≥ 2e9 requests/s"),
]  # fmt: skip


@pytest.mark.parametrize(("unit", "better", "limit"), UNIT_LIMITS)
def test_every_figure_can_be_limited_in_the_unit_that_it_is_shown_in(unit, better, limit):
    run = run_of(1.0 if better == "lower" or unit.startswith("1 (") else 1e9,
                 unit=unit, better=better)  # fmt: skip
    assert limited(run, f"limit: {limit}")["status"] == "fail"


def test_no_unit_is_left_out():
    assert {unit for unit, _, _ in UNIT_LIMITS} == set(UNITS)


def collective(sizes, seconds, ranks=8):
    """One of so many ranks, at each of these sizes."""
    work = Collective("all_reduce")
    cells = []
    for size, time in zip(sizes, seconds, strict=True):
        transfers = " & ".join(f"x:{n} -> x:{n} by ccl x{size}" for n in range(ranks))
        (cell,) = run_of(time, transfers=transfers, operation=work, unit="s (collective)",
                         better="lower").results[0].cells  # fmt: skip
        cells.append(replace(cell, column=f"{size}", bytes=size))
    run = run_of(1.0, unit="s (collective)", better="lower", name="all_reduce")
    result = replace(run.results[0], cells=tuple(cells))
    return replace(run, results=(result,))


@pytest.mark.parametrize(
    ("limit", "statuses"),
    [
        # 1 GiB among 8 ranks in 5 ms: 214.7 GB/s, and 7/4 of that on the bus, at the largest size.
        ("≥ 460 GB/s", ["pass", "fail"]), ("≥ 370 GB/s", ["pass", "pass"]),
        ("min ≥ 370 GB/s", ["pass", "fail"]),
        # Its time counts at every size.
        ("≤ 30 us", ["fail", "fail"]), ("≤ 50 us", ["pass", "fail"]),
    ],
)  # fmt: skip
def test_a_collective_is_limited_by_its_bus_bandwidth_or_its_time(limit, statuses):
    run = collective((8, 1 << 30), (40e-6, 5e-3))
    cells = limited(run, f"benchmark: all_reduce, limit: {limit}")["cells"]
    assert [cell["status"] for cell in cells] == statuses


def test_a_bus_bandwidth_that_there_is_not_is_a_warning():
    result = limited(collective((64,), (1e-6,), ranks=1), "limit: ≥ 1 GB/s")
    assert (result["status"], len(result["cells"][0]["warnings"])) == ("pass", 1)
