"""What bounds an AI workload, by what each part of the machine reaches alone."""

import pytest

from command_kit import called
from fakes import machine
from linkgauge.judge.verdict import judge
from linkgauge.model.documents.result import CellResult, Result, Run
from linkgauge.model.notation import parse_transfers
from linkgauge.model.operations.workload import Demands, Rates, WorkDone, Workload
from linkgauge.model.settings import Settings
from linkgauge.model.stats.summary import summarize
from linkgauge.model.transfer import Report
from linkgauge.report.files import write_run

RATES = Rates(operations=100e12, memory=1e12, to_device=50e9, to_host=50e9, between_devices=200e9)


def measured(demands, workload=None, rates=RATES):
    """A run of a workload that took a second for this."""
    work = WorkDone(1.0, 10**9, Demands(**demands), rates)
    cell = CellResult(
        "0", "0", parse_transfers("null -> null by host:0.cpu"), Report.FIRST, "pass",
        bytes=0, samples=(10.0,) * 6, summary=summarize([10.0] * 6), operation="workload",
        workload=workload or Workload("prefill"), work=work,
    )  # fmt: skip
    result = Result(
        benchmark="ai_inference", title="", backend="host", size=1, unit="tokens/s",
        better="higher", status="pass", cells=(cell,),
    )  # fmt: skip
    return Run(
        id="1", label="l", command=(), started="s", finished="f", machine=machine(),
        settings=Settings((1,)), results=(result,),
    )  # fmt: skip


def shown(folder, *work, **more):
    """What `linkgauge show` says of it."""
    write_run(folder, measured(*work, **more))
    return " ".join(called("show", folder, "--matrix", COLUMNS=400).stdout.split())


@pytest.mark.parametrize(
    ("demands", "bound"),
    [
        ({"operations": 80e12, "memory_bytes": 0.2e12}, "compute at 0 (80%"),
        ({"operations": 5e12, "memory_bytes": 0.7e12}, "memory at 0 (70%"),
        ({"memory_bytes": 0.1e12, "to_device": 48e9}, "host link at 0 (96%"),
        ({"to_device": 10e9, "to_host": 30e9}, "host link at 0 (60%"),
        ({"operations": 30e12, "between_devices": 120e9}, "device link at 0 (60%"),
        ({"operations": 30e12, "launching": 0.95}, "launch at 0 (95%"),
        # A host that is through early waits at the end, which counts as handing over.
        ({"operations": 90e12, "launching": 0.99}, "compute at 0 (90%"),
        ({"operations": 60e12, "launching": 0.5}, "compute at 0 (60%"),
        # Nothing bounds what nothing explains to a half.
        ({"operations": 30e12, "memory_bytes": 0.4e12}, "no part alone at 0 (40%"),
    ],
)
def test_what_would_take_most_of_the_time_alone_bounds_it(demands, bound, tmp_path):
    assert f"bounded by {bound}" in shown(tmp_path, demands)


def test_without_rates_nothing_is_said(tmp_path):
    assert "bounded" not in shown(tmp_path, {"operations": 1.0}, rates=Rates())


@pytest.mark.parametrize(
    ("demands", "workload", "said"),
    [
        ({"to_device": 48e9}, Workload("streamed"), "keep the weights"),
        ({"to_device": 48e9}, Workload("offload"), "linkgauge doctor"),
        ({"operations": 90e12}, Workload("prefill", numbers="fp32"), "fp32"),
        ({"operations": 90e12}, Workload("prefill"), "full rate"),
        ({"operations": 1e12, "launching": 0.9}, Workload("decode"), "CUDA graphs"),
    ],
)
def test_each_bound_has_its_advice(demands, workload, said, tmp_path):
    assert said in shown(tmp_path, demands, workload)


@pytest.mark.parametrize(
    ("demands", "verdict", "achievable"),
    [
        ({"operations": 80e12, "memory_bytes": 0.2e12}, ("ok", None), 10 / 0.8),
        ({"operations": 30e12, "launching": 0.95}, ("ok", None), 10 / 0.95),
        ({"operations": 30e12}, ("not judged", "no-limit"), None),
    ],
)
def test_what_a_part_explains_is_ok_and_held_against_its_roof(demands, verdict, achievable):
    """Ten tokens a second, while the part would be busy for so much of it."""
    cell = judge(measured(demands)).results[0].cells[0]
    assert (cell.verdict, cell.not_judged) == verdict
    assert cell.expected.achievable == (None if achievable is None else pytest.approx(achievable))
